//! An answer put together from the frames of a stream, or from one whole JSON answer.

use seekclaw_protocol::ErrorCode;
use seekclaw_protocol::event::Usage;
use serde_json::Value;

use super::calls::Calls;
use super::surrogates::mended;
use crate::provider::failure::{code_of_frame, cut, message_of};
use crate::provider::retry::Hear;
use crate::provider::{Chunk, Finish, Reply};

/// Bytes of one answer: more than any model writes, and half of what a record of the store holds.
const MAX_ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Characters of a damaged frame that are shown.
pub(super) const SHOWN: usize = 80;

/// Why an answer is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("{message}")]
    Reported { code: ErrorCode, message: String },
    #[error("a frame is no JSON: {0}")]
    Damaged(String),
    #[error("the answer exceeds its limit")]
    TooLong,
    #[error("the body is empty")]
    Empty,
    #[error(
        "the address answers with a web page and not as a model does; check the base URL, which usually ends in /v1"
    )]
    WebPage,
    #[error("the answer is neither a stream nor JSON; check the base URL, which usually ends in /v1: {0}")]
    Foreign(String),
    #[error("the stream ended without a finish reason")]
    Unfinished,
    #[error("the stream ended in the middle of a tool call")]
    HalfCall,
    #[error("tool call {0} has no name")]
    NamelessCall(usize),
    #[error("the provider aborted the answer ({0})")]
    Aborted(String),
    #[error("the answer was withheld by the provider's content filter")]
    Filtered,
    #[error("the answer has no content")]
    NoContent,
}

impl Fault {
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Reported { code, .. } => *code,
            Self::Filtered | Self::WebPage | Self::Foreign(_) => ErrorCode::ProviderRejected,
            Self::Damaged(_)
            | Self::TooLong
            | Self::Empty
            | Self::Unfinished
            | Self::HalfCall
            | Self::NamelessCall(_)
            | Self::Aborted(_)
            | Self::NoContent => ErrorCode::ProviderUnavailable,
        }
    }
}

/// How the provider said that it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ending {
    Complete,
    Capped,
    Filtered,
    Aborted(String),
}

/// The answer so far.
#[derive(Debug)]
pub(super) struct Assembler {
    thinking: String,
    text: String,
    calls: Calls,
    call_announced: bool,
    ending: Option<Ending>,
    usage: Usage,
    bytes: usize,
    done: bool,
    deep_seek_optimized: bool,
}

impl Assembler {
    pub(super) fn new(deep_seek_optimized: bool) -> Self {
        Self {
            thinking: String::new(),
            text: String::new(),
            calls: Calls::default(),
            call_announced: false,
            ending: None,
            usage: Usage::default(),
            bytes: 0,
            done: false,
            deep_seek_optimized,
        }
    }

    /// Whether a finish reason has come: only figures may follow.
    pub(super) fn has_finish(&self) -> bool {
        self.ending.is_some()
    }

    /// Whether the end mark has come: nothing follows.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Takes the payload of one event.
    pub(super) fn payload(&mut self, payload: &str, hear: Hear<'_>) -> Result<(), Fault> {
        let payload = payload.trim();
        if payload == "[DONE]" {
            self.done = true;
        }
        if self.done || !payload.starts_with('{') {
            return Ok(());
        }
        match parse(payload) {
            Ok(frame) => self.frame(&frame, hear),
            // Servers that forget the blank lines between events: each line is a frame of its own.
            Err(_) if payload.contains('\n') => {
                payload.lines().try_for_each(|line| self.payload(line, &mut *hear))
            }
            Err(_) => Err(Fault::Damaged(cut(payload, SHOWN).to_owned())),
        }
    }

    /// Takes a whole answer, that of a request without streaming or of a server that cannot stream.
    pub(super) fn whole(&mut self, body: &str, hear: Hear<'_>) -> Result<(), Fault> {
        let answer = serde_json::from_str(body).map_err(|_| Fault::Damaged(cut(body, SHOWN).to_owned()))?;
        self.frame(&answer, hear)
    }

    fn frame(&mut self, frame: &Value, hear: Hear<'_>) -> Result<(), Fault> {
        if let Some(error) = frame.get("error").filter(|error| !error.is_null()) {
            let message = message_of(frame).unwrap_or_else(|| error.to_string());
            return Err(Fault::Reported { code: code_of_frame(error), message });
        }
        if let Some(usage) = frame.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage_of(usage, self.deep_seek_optimized);
        }
        let Some(choice) = frame.get("choices").and_then(|choices| choices.get(0)) else { return Ok(()) };
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.delta(delta, hear)?;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str)
            && !reason.is_empty()
        {
            self.ending = Some(ending_of(reason));
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, hear: Hear<'_>) -> Result<(), Fault> {
        let thinking = delta.get("reasoning_content").filter(|value| value.is_string());
        for piece in pieces(thinking.or_else(|| delta.get("reasoning"))) {
            self.grow(piece.text().len())?;
            self.thinking.push_str(piece.text());
            hear(Chunk::Thinking(piece.text().to_owned()));
        }
        for piece in pieces(delta.get("content")) {
            self.grow(piece.text().len())?;
            let text = piece.text().to_owned();
            if matches!(piece, Piece::Thinking(_)) {
                self.thinking.push_str(&text);
                hear(Chunk::Thinking(text));
            } else {
                self.text.push_str(&text);
                hear(Chunk::Text(text));
            }
        }
        let calls = delta.get("tool_calls").and_then(Value::as_array);
        for piece in calls.into_iter().flatten() {
            let added = self.calls.add(piece).ok_or(Fault::TooLong)?;
            self.grow(added)?;
        }
        if !self.calls.is_empty() && !std::mem::replace(&mut self.call_announced, true) {
            hear(Chunk::CallStarted);
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes += bytes;
        if self.bytes > MAX_ANSWER_BYTES { Err(Fault::TooLong) } else { Ok(()) }
    }

    /// The answer, if it is one.
    pub(super) fn finish(self) -> Result<Reply, Fault> {
        let nothing = self.text.is_empty() && self.calls.is_empty();
        let (finish, keep_calls) = match self.ending {
            None if self.calls.is_empty() => return Err(Fault::Unfinished),
            None => return Err(Fault::HalfCall),
            Some(Ending::Aborted(reason)) => return Err(Fault::Aborted(reason)),
            Some(Ending::Filtered) if nothing => return Err(Fault::Filtered),
            Some(Ending::Complete) if nothing && self.deep_seek_optimized => return Err(Fault::NoContent),
            // What a filter cut is not what the model wanted to do.
            Some(Ending::Filtered) => (Finish::Complete, false),
            Some(Ending::Complete) => (Finish::Complete, true),
            Some(Ending::Capped) => (Finish::Capped, true),
        };
        let calls = if keep_calls { self.calls } else { Calls::default() };
        let calls = calls.finish().map_err(Fault::NamelessCall)?;
        Ok(Reply { thinking: self.thinking, text: self.text, calls, finish, usage: self.usage })
    }
}

fn parse(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| match mended(text) {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    })
}

/// A run of characters of a delta.
enum Piece<'a> {
    Text(&'a str),
    Thinking(&'a str),
}

impl Piece<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking(text) => text,
        }
    }
}

/// The characters of a `content`: a text, or a list of parts as some servers send it.
fn pieces(content: Option<&Value>) -> Vec<Piece<'_>> {
    let parts: Vec<Piece<'_>> = match content {
        Some(Value::String(text)) => vec![Piece::Text(text)],
        Some(Value::Array(parts)) => parts.iter().flat_map(part).collect(),
        _ => Vec::new(),
    };
    parts.into_iter().filter(|piece| !piece.text().is_empty()).collect()
}

fn part(part: &Value) -> Vec<Piece<'_>> {
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return vec![Piece::Text(text)];
    }
    match part.get("thinking") {
        Some(Value::String(text)) => vec![Piece::Thinking(text)],
        Some(Value::Array(inner)) => {
            let texts = inner.iter().filter_map(|inner| inner.get("text").and_then(Value::as_str));
            texts.map(Piece::Thinking).collect()
        }
        _ => Vec::new(),
    }
}

fn ending_of(reason: &str) -> Ending {
    match reason.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "incomplete" | "model_length" | "max_output_tokens" => Ending::Capped,
        "content_filter" | "safety" => Ending::Filtered,
        "error" | "abort" | "cancelled" | "insufficient_system_resource" => {
            Ending::Aborted(reason.to_owned())
        }
        _ => Ending::Complete,
    }
}

fn usage_of(usage: &Value, without_cached: bool) -> Usage {
    let count = |value: Option<&Value>| {
        let value = value?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a token count, saturating"
        )]
        value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))
    };
    let details = usage.get("prompt_tokens_details").and_then(|details| details.get("cached_tokens"));
    let cached = count(usage.get("prompt_cache_hit_tokens"))
        .or_else(|| count(usage.get("cached_tokens")))
        .or_else(|| count(details))
        .unwrap_or_default();
    let prompt = count(usage.get("prompt_tokens")).unwrap_or_default();
    Usage {
        input_tokens: if without_cached { prompt.saturating_sub(cached) } else { prompt },
        output_tokens: count(usage.get("completion_tokens")).unwrap_or_default(),
        total_input_tokens: prompt,
        cached_input_tokens: cached,
        elapsed_ms: 0.0,
    }
}

#[cfg(test)]
mod tests;
