//! The `details` object of each event, as a type of its own that writes itself to bytes.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::put;
use crate::error::WireError;
use crate::event::{Event, ToolOutcome, UncertainCall, Usage};

/// Appends the `details` of an `error` line (extensions 2).
pub(in crate::jsonl) fn error_details(out: &mut Vec<u8>, error: &WireError) {
    let WireError { code, retry_after_ms, context, .. } = error;
    let details = ErrorDetails {
        code: code.as_str(),
        retryable: code.retryable(),
        retry_after_ms: *retry_after_ms,
        context,
    };
    put_details(out, &details);
}

/// Appends the `details` of a `warning` line.
pub(in crate::jsonl) fn warning_details(out: &mut Vec<u8>, code: &str) {
    put_details(out, &Warning { code });
}

fn put_details<T: Serialize>(out: &mut Vec<u8>, details: &T) {
    out.extend_from_slice(b",\"details\":");
    put(out, details);
}

/// Appends the `details` of an event that has some (contract 3.1, extensions 6).
pub(super) fn event_details(event: &Event, out: &mut Vec<u8>) {
    match event {
        Event::Thinking { .. }
        | Event::Delta { .. }
        | Event::Steer { .. }
        | Event::Done { .. }
        | Event::Cancelled { .. }
        | Event::Status { details: None, .. } => {}
        Event::Status { details: Some(details), .. } => put_details(out, details),
        Event::Workflow { step, kind, label, detail } => {
            put_details(
                out,
                &Workflow { step: *step, kind: kind.as_str(), label, detail: detail.as_deref() },
            );
        }
        Event::ModelStart { provider, model, step } => {
            put_details(out, &ModelStart { provider, model, step: *step });
        }
        Event::Usage { provider, model, usage } => {
            put_details(out, &UsageDetails::new(provider, model, usage))
        }
        Event::ImageView { image_id, media_type, .. } => {
            put_details(out, &ImageView { image_id, media_type })
        }
        Event::ToolStart { call_id, summary, .. } => put_details(out, &ToolStart { call_id, summary }),
        Event::ToolDone { call_id, outcome, duration_ms, omitted_bytes, .. } => put_details(
            out,
            &ToolDone {
                call_id,
                success: *outcome == ToolOutcome::Ok,
                duration_ms: *duration_ms,
                outcome: outcome.as_str(),
                omitted_bytes: *omitted_bytes,
            },
        ),
        Event::FileDiff { call_id, diff, .. } => put_details(out, &FileDiff { call_id, diff }),
        Event::Warning { code, .. } => put_details(out, &Warning { code }),
        Event::ProviderSwitched { from, to, reason } => put_details(out, &Switched { from, to, reason }),
        Event::Verification { command, ok, exit_code, tail } => {
            put_details(out, &Verification { command, ok: *ok, exit_code: *exit_code, tail });
        }
        Event::Recovered { reason, uncertain } => {
            let uncertain_calls = uncertain.iter().map(Uncertain::new).collect();
            put_details(out, &Recovered { reason, uncertain_calls });
        }
        Event::Retry { attempt, of, delay_ms, reason, code, from_seq, to_seq, chars, .. } => put_details(
            out,
            &Retry {
                attempt: *attempt,
                of: *of,
                delay_ms: *delay_ms,
                reason,
                code: code.as_str(),
                withdrawn: Withdrawn { from_seq: *from_seq, to_seq: *to_seq, chars: *chars },
            },
        ),
        Event::Error { code, retry_after_ms, .. } => {
            let (code, retryable) = (code.as_str(), code.retryable());
            let context = &Map::new();
            put_details(out, &ErrorDetails { code, retryable, retry_after_ms: *retry_after_ms, context });
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Verification<'a> {
    command: &'a str,
    ok: bool,
    exit_code: Option<i32>,
    tail: &'a str,
}

#[derive(Serialize)]
struct Workflow<'a> {
    step: u32,
    kind: &'static str,
    label: &'a str,
    detail: Option<&'a str>,
}

#[derive(Serialize)]
struct ModelStart<'a> {
    provider: &'a str,
    model: &'a str,
    step: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageDetails<'a> {
    provider: &'a str,
    model: &'a str,
    input_tokens: u64,
    output_tokens: u64,
    total_input_tokens: u64,
    cached_input_tokens: u64,
    #[serde(serialize_with = "millis")]
    elapsed_ms: f64,
}

impl<'a> UsageDetails<'a> {
    fn new(provider: &'a str, model: &'a str, usage: &Usage) -> Self {
        Self {
            provider,
            model,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_input_tokens: usage.total_input_tokens,
            cached_input_tokens: usage.cached_input_tokens,
            elapsed_ms: usage.elapsed_ms,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ImageView<'a> {
    image_id: &'a str,
    media_type: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolStart<'a> {
    call_id: &'a str,
    summary: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDone<'a> {
    call_id: &'a str,
    success: bool,
    #[serde(serialize_with = "millis")]
    duration_ms: f64,
    outcome: &'static str,
    omitted_bytes: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileDiff<'a> {
    call_id: &'a str,
    diff: &'a str,
}

#[derive(Serialize)]
struct Warning<'a> {
    code: &'a str,
}

#[derive(Serialize)]
struct Switched<'a> {
    from: &'a str,
    to: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recovered<'a> {
    reason: &'a str,
    uncertain_calls: Vec<Uncertain<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Uncertain<'a> {
    call_id: &'a str,
    tool: &'a str,
    summary: &'a str,
}

impl<'a> Uncertain<'a> {
    fn new(call: &'a UncertainCall) -> Self {
        Self { call_id: &call.call_id, tool: &call.tool, summary: &call.summary }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retry<'a> {
    attempt: u32,
    of: u32,
    delay_ms: u64,
    reason: &'a str,
    code: &'static str,
    withdrawn: Withdrawn,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawn {
    from_seq: u64,
    to_seq: u64,
    chars: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorDetails<'a> {
    code: &'static str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(flatten, serialize_with = "context")]
    context: &'a Map<String, Value>,
}

/// What else helps; it never overwrites the members that every error has.
fn context<S: Serializer>(context: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    let fixed = ["code", "retryable", "retryAfterMs"];
    serializer.collect_map(context.iter().filter(|(key, _)| !fixed.contains(&key.as_str())))
}

/// A time that is no number would be `null`, which the desktop cannot add up.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn millis<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(if value.is_finite() { *value } else { 0.0 })
}
