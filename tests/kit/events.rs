//! Reading event lines in assertions.

use serde_json::Value;

/// Whether a line answers its request for good.
pub fn is_terminal(line: &Value) -> bool {
    let event = line["event"].as_str().unwrap_or_default();
    matches!(event, "pong" | "result" | "done" | "cancelled" | "error" | "bye")
}

/// `event data` of each line, one readable word list for whole streams.
pub fn outline(lines: &[Value]) -> Vec<String> {
    lines.iter().map(|line| format!("{} {}", text(&line["event"]), text(&line["data"]))).collect()
}

/// The `data` of all lines of one event.
pub fn data_of(lines: &[Value], event: &str) -> Vec<String> {
    lines.iter().filter(|line| line["event"] == event).map(|line| text(&line["data"])).collect()
}

/// The lines of one event.
pub fn of<'a>(lines: &'a [Value], event: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// All answer text that streamed, joined.
pub fn streamed(lines: &[Value]) -> String {
    data_of(lines, "delta").concat()
}

/// The text of a JSON string; empty for anything else.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
