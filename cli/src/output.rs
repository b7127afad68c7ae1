//! What a command prints: results on standard output, notes for people on standard error.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::render::escape::neutral;
use crate::render::style::Style;

/// How results are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// One JSON object, or one a line for lists, and nothing else.
    pub(crate) json: bool,
}

impl Output {
    /// Writes `value` as JSON, or `text` for people.
    pub(crate) fn result(self, value: &impl Serialize, text: impl FnOnce(Style) -> String) -> io::Result<()> {
        if self.json {
            return print(&json_lines(&serde_json::to_value(value)?));
        }
        print(&text(Style::stdout()))
    }
}

/// One object on a line; the elements of a list on a line each.
fn json_lines(value: &Value) -> String {
    match value.as_array() {
        Some(rows) => rows.iter().map(|row| format!("{row}\n")).collect(),
        None => format!("{value}\n"),
    }
}

/// Writes to standard output as it is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes to standard output as they are.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Writes a line for people to standard error, neutralised. Where nobody can read it, nothing is lost.
pub(crate) fn note(text: &str) {
    let line = format!("{}\n", neutral(text));
    if io::stderr().lock().write_all(line.as_bytes()).is_err() {
        tracing::debug!("standard error is closed");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_one_object_a_line() {
        assert_eq!(json_lines(&json!([{"a": 1}, {"a": [2]}])), "{\"a\":1}\n{\"a\":[2]}\n");
        assert_eq!(json_lines(&json!({"a": [1, 2]})), "{\"a\":[1,2]}\n");
        assert_eq!(json_lines(&json!([])), "");
    }
}
