//! Session events straight to bytes: no document tree on this path but the free-form details of a
//! `status` event, which exist before it.

use serde::Serialize;

use crate::event::Event;
use crate::ids::RequestId;
use crate::time::Timestamp;

mod details;

pub(super) use details::{error_details, warning_details};

/// Appends one whole line for request `id`: what [`event_tail`] made, then what [`cursor_tail`] made for
/// clients that said hello.
pub fn line(id: RequestId, tail: &[u8], cursor: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"id\":");
    put(out, &id);
    out.extend_from_slice(tail);
    out.extend_from_slice(cursor.unwrap_or_default());
    out.extend_from_slice(b"}\n");
}

/// Appends what follows the id in a line of `event`, up to the end of `details`.
pub fn event_tail(event: &Event, session: &str, out: &mut Vec<u8>) {
    match event {
        Event::Thinking { text }
        | Event::Delta { text }
        | Event::Steer { text }
        | Event::Done { text }
        | Event::Cancelled { text } => head(out, event.name(), text, Some(session)),
        Event::ModelStart { provider, model, .. } | Event::Usage { provider, model, .. } => {
            head(out, event.name(), &format_args!("{provider}/{model}"), Some(session));
        }
        Event::Status { label: data, .. }
        | Event::Workflow { label: data, .. }
        | Event::ImageView { name: data, .. }
        | Event::ToolStart { tool: data, .. }
        | Event::ToolDone { summary: data, .. }
        | Event::FileDiff { path: data, .. }
        | Event::Retry { line: data, .. }
        | Event::Warning { text: data, .. }
        | Event::Verification { command: data, .. }
        | Event::Recovered { reason: data, .. }
        | Event::Error { message: data, .. } => head(out, event.name(), data, Some(session)),
        Event::ProviderSwitched { from, to, reason } => {
            head(out, event.name(), &format_args!("{from} -> {to}: {reason}"), Some(session));
        }
    }
    details::event_details(event, out);
}

/// Appends the members that a client gets once it has said hello (extensions 1).
pub fn cursor_tail(generation: u64, seq: u64, at: Timestamp, turn: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"cursor\":{\"generation\":");
    put(out, &generation);
    out.extend_from_slice(b",\"seq\":");
    put(out, &seq);
    out.extend_from_slice(b"},\"ts\":");
    put(out, &at);
    out.extend_from_slice(b",\"turnId\":");
    put(out, turn);
}

/// Appends `event`, `data` and, if there is one, `sessionId`.
pub(super) fn head<D: Serialize + ?Sized>(out: &mut Vec<u8>, event: &str, data: &D, session: Option<&str>) {
    out.extend_from_slice(b",\"event\":");
    put(out, event);
    out.extend_from_slice(b",\"data\":");
    put(out, data);
    if let Some(session) = session {
        out.extend_from_slice(b",\"sessionId\":");
        put(out, session);
    }
}

/// Appends `value` as JSON.
pub(super) fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let start = out.len();
    // Writing to memory does not fail; a value that refuses to be written must not leave half of itself.
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests;
