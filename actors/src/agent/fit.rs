//! Fits a conversation into what a model can take (contract 5.5): estimate, budget, trim. Fitted again for
//! every candidate, because their windows differ. Compaction will be a step before the trim.

use seekclaw_storage::config::model::Model;

use super::repair::repair;
use super::tokens::{estimate, head, head_and_tail};
use crate::history::{Message, Origin, Role};
use crate::tools::ToolSpec;

/// An image, whatever its size (contract 5.5).
const IMAGE_TOKENS: u64 = 1200;
/// What a provider wraps around a message or a tool (contract 5.5).
const WRAPPING_TOKENS: u64 = 8;
/// Room for our own note and for what the estimate misses (contract 5.5).
const RESERVE_TOKENS: u64 = 1500;
/// Newest messages that a trim never drops (contract 5.5).
const KEPT_MESSAGES: usize = 6;
/// How much of the user's request a trim repeats when it drops it; well inside the reserve.
const REQUEST_TOKENS: u64 = 600;
/// A result is not shortened below this: less would tell the model nothing.
const RESULT_TOKENS: u64 = 200;

/// A conversation that fits, as far as it can be made to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// What the model gets.
    pub messages: Vec<Message>,
    /// Messages left out at the beginning.
    pub dropped: usize,
}

/// The whole way from a stored history to what `model` gets: repaired first, then fitted.
#[must_use]
pub fn prepare(history: Vec<Message>, system: &str, tools: &[ToolSpec], model: &Model) -> Fitted {
    let fixed = estimate(system).saturating_add(tools_estimate(tools));
    fit(repair(history), budget(model.context_window, model.max_output, fixed))
}

/// Tokens that the conversation may take beside `fixed` ones of system prompt and tools.
#[must_use]
pub fn budget(context_window: u64, max_output: u64, fixed: u64) -> u64 {
    let taken = max_output.saturating_add(fixed).saturating_add(RESERVE_TOKENS);
    match context_window.saturating_sub(taken) {
        0 => context_window / 2,
        left => left,
    }
}

/// Estimated tokens of a message. Thinking counts, because some dialects send it back.
#[must_use]
pub fn message_estimate(message: &Message) -> u64 {
    let calls: u64 = message.calls.iter().map(|call| estimate(&call.name) + estimate(&call.arguments)).sum();
    let images = u64::try_from(message.images.len()).unwrap_or(u64::MAX).saturating_mul(IMAGE_TOKENS);
    (estimate(&message.text) + estimate(&message.thinking) + calls + WRAPPING_TOKENS).saturating_add(images)
}

/// Estimated tokens of the tools that a model is offered.
#[must_use]
pub fn tools_estimate(tools: &[ToolSpec]) -> u64 {
    tools.iter().map(tool_estimate).sum()
}

fn tool_estimate(tool: &ToolSpec) -> u64 {
    estimate(&tool.name)
        + estimate(&tool.description)
        + estimate(&tool.parameters.to_string())
        + WRAPPING_TOKENS
}

/// Drops from the head of a repaired history until it fits `budget` or the newest six are left, and says
/// so in a note. What is kept and still too large has its results shortened.
#[must_use]
pub fn fit(mut messages: Vec<Message>, budget: u64) -> Fitted {
    let costs: Vec<u64> = messages.iter().map(message_estimate).collect();
    let dropped = excess(&messages, &costs, budget);
    let total: u64 = costs.iter().skip(dropped).sum();
    let gone: Vec<Message> = messages.drain(..dropped).collect();
    if total > budget {
        shorten_results(&mut messages, total, budget);
    }
    if dropped > 0 {
        messages.insert(0, trim_note(&gone, &messages));
    }
    Fitted { messages, dropped }
}

/// How many messages to drop: never so that a result stands at the head, and never the whole of the
/// exchange that the model is in the middle of.
fn excess(messages: &[Message], costs: &[u64], budget: u64) -> usize {
    let droppable = messages.len().saturating_sub(KEPT_MESSAGES);
    let mut total: u64 = costs.iter().sum();
    let mut dropped = 0;
    for cost in costs.iter().take(droppable) {
        if total <= budget {
            break;
        }
        total -= cost;
        dropped += 1;
    }
    beside_results(messages, dropped)
}

fn beside_results(messages: &[Message], at: usize) -> usize {
    let is_result = |message: &Message| message.role == Role::Tool;
    if !messages.get(at).is_some_and(is_result) {
        return at;
    }
    let results = messages.iter().skip(at).take_while(|message| is_result(message)).count();
    let after = at + results;
    let goes_on = messages.iter().skip(after).any(|message| message.role == Role::Assistant);
    if goes_on {
        return after;
    }
    messages.iter().take(at).rposition(|message| !is_result(message)).unwrap_or(after)
}

/// Shares what is left of the budget evenly among the results, so that one turn full of large outputs
/// does not make every later request fail.
fn shorten_results(messages: &mut [Message], total: u64, budget: u64) {
    let results: Vec<&mut Message> =
        messages.iter_mut().filter(|message| message.role == Role::Tool).collect();
    let taken: u64 = results.iter().map(|result| estimate(&result.text)).sum();
    let room = budget.saturating_sub(total - taken);
    let Some(share) = room.checked_div(u64::try_from(results.len()).unwrap_or(u64::MAX)) else { return };
    for result in results {
        result.text = head_and_tail(&result.text, share.max(RESULT_TOKENS), "this result").into_owned();
    }
}

/// Says what is gone; repeats the user's last request if it is, so that a long turn keeps its task.
fn trim_note(gone: &[Message], kept: &[Message]) -> Message {
    let mut text = format!(
        "[Earlier history was trimmed to fit the context window: {} messages are left out. Read files again rather than rely on what you remember of them.]",
        gone.len()
    );
    let from_user = |message: &&Message| {
        message.role == Role::User && !message.text.is_empty() && message.origin != Origin::Note
    };
    if !kept.iter().any(|message| from_user(&message))
        && let Some(request) = gone.iter().rfind(from_user)
    {
        text.push_str("\nThe last thing the user wrote before that:\n");
        text.push_str(&head(&request.text, REQUEST_TOKENS, "the request"));
    }
    Message::note(text)
}

#[cfg(test)]
mod tests;
