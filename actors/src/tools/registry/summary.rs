//! One-line summaries of calls and results for clients (contract 3.2).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::tools::ToolReport;

/// Arguments that are shown.
const SHOWN_ARGUMENTS: usize = 3;
/// Characters of a shown argument.
const ARGUMENT_CHARS: usize = 60;
/// Characters of a shown result.
const RESULT_CHARS: usize = 160;

/// The first three scalar arguments of a call as `key: value`; empty if they do not parse.
#[must_use]
pub fn argument_summary(arguments: &str) -> String {
    let Ok(InOrder(arguments)) = serde_json::from_str(arguments) else { return String::new() };
    let shown = arguments.iter().filter_map(|(name, value)| Some(format!("{name}: {}", scalar(value)?)));
    shown.take(SHOWN_ARGUMENTS).collect::<Vec<_>>().join(", ")
}

/// The summary of a result, else the first line of its text.
#[must_use]
pub fn result_summary(report: &ToolReport) -> String {
    let text = if report.summary.is_empty() { &report.text } else { &report.summary };
    cut(text.lines().next().unwrap_or_default(), RESULT_CHARS)
}

fn scalar(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(cut(&text.replace("\r\n", " ").replace(['\n', '\r'], " "), ARGUMENT_CHARS))
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An object in the order it was written in, which a map does not keep.
struct InOrder(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for InOrder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrderVisitor)
    }
}

struct InOrderVisitor;

impl<'de> Visitor<'de> for InOrderVisitor {
    type Value = InOrder;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(InOrder(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_in_their_order() {
        let summary = argument_summary(r#"{"z":"a\r\nb\nc","list":[1],"a":true,"n":null,"m":1.5,"x":"no"}"#);
        assert_eq!(summary, "z: a b c, a: true, m: 1.5");
        assert_eq!(argument_summary(r#"{"path":"#), "");
        assert_eq!(argument_summary("[1]"), "");
        assert_eq!(argument_summary(""), "");
    }

    #[test]
    fn long_values_are_cut() {
        let summary = argument_summary(&format!(r#"{{"a":"{}"}}"#, "ä".repeat(61)));
        assert_eq!(summary, format!("a: {}…", "ä".repeat(60)));
        let whole = argument_summary(&format!(r#"{{"a":"{}"}}"#, "ä".repeat(60)));
        assert_eq!(whole, format!("a: {}", "ä".repeat(60)));
    }

    #[test]
    fn results_are_summed_up_by_their_first_line() {
        let mut report = ToolReport::failed(format!("{}\nmore", "x".repeat(161)));
        assert_eq!(result_summary(&report), format!("{}…", "x".repeat(160)));
        report.summary = "3 matches in 2 files".to_owned();
        assert_eq!(result_summary(&report), "3 matches in 2 files");
    }
}
