//! Between the canonical events of the wire and the stored records: each record shows at most one event.

use seekclaw_protocol::event::{ToolOutcome, UncertainCall, Usage, WorkflowKind};
use seekclaw_protocol::{ErrorCode, Event};
use seekclaw_storage::record::log::{Body, CallResult, Finished, ImageRef, Notice, Outcome};
use serde_json::{Map, Value};

const KINDS: [WorkflowKind; 8] = [
    WorkflowKind::Start,
    WorkflowKind::Think,
    WorkflowKind::Tool,
    WorkflowKind::Verify,
    WorkflowKind::Repair,
    WorkflowKind::Compact,
    WorkflowKind::Done,
    WorkflowKind::Error,
];

/// The event that watchers see for `body`, if any.
pub(crate) fn event_of(body: &Body) -> Option<Event> {
    match body {
        Body::Applied(applied) => Some(Event::Steer { text: applied.text.clone() }),
        Body::Result(result) => Some(tool_done(result)),
        Body::Finished(finished) => Some(terminal(finished)),
        Body::Notice(notice) => Some(event_of_notice(notice)),
        Body::Prompt(_)
        | Body::Returned(_)
        | Body::Started(_)
        | Body::Guidance(_)
        | Body::Answer(_)
        | Body::Intent(_)
        | Body::Note(_)
        | Body::Truncated(_) => None,
    }
}

fn tool_done(result: &CallResult) -> Event {
    Event::ToolDone {
        call_id: result.call.clone(),
        summary: result.summary.clone(),
        outcome: match result.outcome {
            Outcome::Ok => ToolOutcome::Ok,
            Outcome::Failed => ToolOutcome::Failed,
            Outcome::Denied => ToolOutcome::Denied,
            Outcome::Cancelled => ToolOutcome::Cancelled,
            Outcome::Uncertain => ToolOutcome::Uncertain,
        },
        duration_ms: milliseconds(result.took_us),
        omitted_bytes: result.omitted,
    }
}

fn terminal(finished: &Finished) -> Event {
    match finished {
        Finished::Done { text } => Event::Done { text: text.clone() },
        Finished::Cancelled { text } => Event::Cancelled { text: text.clone() },
        Finished::Failed { code, message, retry_after_ms } => Event::Error {
            code: ErrorCode::parse(code).unwrap_or(ErrorCode::Internal),
            message: message.clone(),
            retry_after_ms: (*retry_after_ms > 0).then_some(*retry_after_ms),
        },
    }
}

fn event_of_notice(notice: &Notice) -> Event {
    match notice.clone() {
        Notice::Status { label, position, wait_ms } => {
            Event::Status { label, details: status_details(position, wait_ms) }
        }
        Notice::Workflow { step, kind, label, detail } => Event::Workflow {
            step,
            kind: KINDS.get(usize::from(kind)).copied().unwrap_or(WorkflowKind::Think),
            label,
            detail: (!detail.is_empty()).then_some(detail),
        },
        Notice::ModelStart { provider, model, step } => Event::ModelStart { provider, model, step },
        Notice::Usage { provider, model, input, output, total_input, cached, took_us } => Event::Usage {
            provider,
            model,
            usage: Usage {
                input_tokens: input,
                output_tokens: output,
                total_input_tokens: total_input,
                cached_input_tokens: cached,
                elapsed_ms: milliseconds(took_us),
            },
        },
        Notice::ImageView(image) => {
            Event::ImageView { image_id: image.id, name: image.name, media_type: image.media_type }
        }
        Notice::ToolStart { call, tool, summary } => Event::ToolStart { call_id: call, tool, summary },
        Notice::FileDiff { call, path, diff } => Event::FileDiff { call_id: call, path, diff },
        Notice::Retry { line, attempt, of, delay_ms, reason, code, from_seq, to_seq, chars } => {
            Event::Retry {
                line,
                attempt,
                of,
                delay_ms,
                reason,
                code: ErrorCode::parse(&code).unwrap_or(ErrorCode::Internal),
                from_seq,
                to_seq,
                chars,
            }
        }
        Notice::Warning { text, code } => Event::Warning { text, code },
        Notice::ProviderSwitched { from, to, reason } => Event::ProviderSwitched { from, to, reason },
        Notice::Verification { command, ok, exit_code, tail } => {
            Event::Verification { command, ok, exit_code, tail }
        }
        Notice::Recovered { reason, uncertain } => Event::Recovered {
            reason,
            uncertain: uncertain
                .into_iter()
                .map(|(call_id, tool, summary)| UncertainCall { call_id, tool, summary })
                .collect(),
        },
    }
}

fn status_details(position: u32, wait_ms: u64) -> Option<Map<String, Value>> {
    let mut details = Map::new();
    if position > 0 {
        details.insert("position".to_owned(), position.into());
    }
    if wait_ms > 0 {
        details.insert("retryAfterMs".to_owned(), wait_ms.into());
    }
    (!details.is_empty()).then_some(details)
}

/// A `status` notice without details.
pub(crate) fn status(label: impl Into<String>) -> Notice {
    Notice::Status { label: label.into(), position: 0, wait_ms: 0 }
}

/// A `workflow` notice without detail.
pub(crate) fn workflow(step: u32, kind: WorkflowKind, label: impl Into<String>) -> Notice {
    let position = KINDS.iter().position(|known| *known == kind).unwrap_or(1);
    Notice::Workflow {
        step,
        kind: u8::try_from(position).unwrap_or(1),
        label: label.into(),
        detail: String::new(),
    }
}

/// A `usage` notice.
pub(crate) fn usage(provider: &str, model: &str, usage: &Usage) -> Notice {
    Notice::Usage {
        provider: provider.to_owned(),
        model: model.to_owned(),
        input: usage.input_tokens,
        output: usage.output_tokens,
        total_input: usage.total_input_tokens,
        cached: usage.cached_input_tokens,
        took_us: microseconds(usage.elapsed_ms),
    }
}

/// What the store keeps of an image of the conversation.
pub(crate) fn image_ref(image: &crate::history::Image) -> ImageRef {
    ImageRef {
        id: image.id.clone(),
        name: image.name.clone(),
        media_type: image.media_type.clone(),
        size: image.size,
    }
}

#[expect(clippy::cast_precision_loss, reason = "durations are far below 2^52 microseconds")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to be positive and finite"
)]
fn microseconds(milliseconds: f64) -> u64 {
    (milliseconds.clamp(0.0, 1e12) * 1000.0) as u64
}
