//! The JSONL dialect (contract 1.2 to 1.5, 3.1, extensions 2 and 6): one line to a request, answers and
//! session events to lines. An event is encoded once; each watcher's line only adds its own id.

use bytes::Bytes;
use serde::Serialize;

use crate::error::{ErrorCode, WireError};
use crate::event::Event;
use crate::ids::RequestId;
use crate::method::Method;

mod decode;
mod encode;

pub use decode::{Refused, Request, decode};
pub use encode::{cursor_tail, event_tail, line};

/// Terminal answers that are no session events.
const ANSWER_EVENTS: [&str; 3] = ["pong", "result", "bye"];

/// A line that answers request `id`.
#[must_use]
pub fn answer(id: RequestId, event: &str, data: &str) -> Bytes {
    answer_line(id, event, data, None)
}

/// A `warning` line for every client: id 0, no session.
#[must_use]
pub fn broadcast_warning(text: &str, code: &str) -> Bytes {
    let mut tail = Vec::new();
    encode::head(&mut tail, "warning", text, None);
    encode::warning_details(&mut tail, code);
    finished(0, &tail)
}

/// A line that answers request `id` and names its session: only `agent.steer` does so (contract 1.4).
#[must_use]
pub fn answer_in_session(id: RequestId, event: &str, data: &str, session: &str) -> Bytes {
    answer_line(id, event, data, Some(session))
}

/// A `result` line whose data is a JSON document.
#[must_use]
pub fn json_result<T: Serialize + ?Sized>(id: RequestId, value: &T) -> Bytes {
    let mut document = Vec::new();
    encode::put(&mut document, value);
    answer(id, "result", &String::from_utf8_lossy(&document))
}

/// An `error` line; `session` only where the contract says so (1.4).
#[must_use]
pub fn error(id: RequestId, error: &WireError, session: Option<&str>) -> Bytes {
    let mut tail = Vec::new();
    encode::head(&mut tail, "error", &error.message, session);
    encode::error_details(&mut tail, error);
    finished(id, &tail)
}

/// What a client is told, with id 0, before the connection closes on a line over the cap (contract 1.2).
#[must_use]
pub fn too_long() -> WireError {
    WireError::new(ErrorCode::LineTooLong, "Request line exceeds the 64 MiB limit")
}

fn answer_line(id: RequestId, event: &str, data: &str, session: Option<&str>) -> Bytes {
    let mut tail = Vec::with_capacity(data.len() + 64);
    encode::head(&mut tail, event, data, session);
    finished(id, &tail)
}

fn finished(id: RequestId, tail: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(tail.len() + 32);
    line(id, tail, None, &mut out);
    out.into()
}

/// 16 hex digits that change when a method or an event is added, renamed or removed.
#[must_use]
pub fn schema_hash() -> String {
    let methods = Method::accepted_names().chain(Method::ALL.iter().map(|method| method.name()));
    let words = methods.chain(ANSWER_EVENTS).chain(Event::NAMES.iter().copied());
    let hash = words
        .flat_map(|word| word.bytes().chain([0]))
        .fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    format!("{hash:016x}")
}

/// FNV-1a, 64 bits: stable across versions of Rust, unlike the standard hasher.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests;
