//! The built-in model `builtin/offline`: no language model, and it says so. It maps plain requests to
//! real tool calls and sums up what they brought, so that every part can be tried without a key.

mod decide;
mod plan;
mod sum;
mod talk;

use std::sync::Arc;

use seekclaw_protocol::ReasoningLevel;
use seekclaw_protocol::event::Usage;
use seekclaw_storage::config::model::{Model, Provider};

use super::probe::{LocalServer, local_servers};
use super::retry::Hear;
use super::{Candidate, Chunk, Finish, Reply, Request};
use crate::history::Call;
use decide::Decision;

/// Provider id of the built-in model.
pub const PROVIDER_ID: &str = "builtin";
/// Model id of the built-in model.
pub const MODEL_ID: &str = "offline";

/// Characters of a streamed piece: small enough to look like a model at work.
const PIECE_CHARS: usize = 24;

/// The built-in model as a candidate.
#[must_use]
pub fn candidate() -> Candidate {
    let model = Model { id: MODEL_ID.to_owned(), ..Model::default() };
    let provider = Provider {
        id: PROVIDER_ID.to_owned(),
        name: Some("Built-in".to_owned()),
        models: vec![model.clone()],
        ..Provider::default()
    };
    Candidate { provider: Arc::new(provider), model: Arc::new(model), deep_seek_optimized: false }
}

/// Whether a candidate is the built-in model. A configured provider of that name has an address.
#[must_use]
pub fn is_offline(candidate: &Candidate) -> bool {
    candidate.provider.id == PROVIDER_ID && candidate.provider.base_url.is_empty()
}

/// Answers in small pieces. Between two pieces it can be cancelled.
pub(crate) async fn answer(request: &Request, hear: Hear<'_>) -> Reply {
    let decision = decide::decide(request);
    let servers = match &decision {
        Decision::Finish { first: true, .. } => local_servers().await,
        Decision::Finish { .. } | Decision::Call { .. } => Vec::new(),
    };
    let reply = reply(request, decision, &servers);
    stream(&reply.thinking, Chunk::Thinking, hear).await;
    stream(&reply.text, Chunk::Text, hear).await;
    if !reply.calls.is_empty() {
        hear(Chunk::CallStarted);
    }
    reply
}

fn reply(request: &Request, decision: Decision, servers: &[LocalServer]) -> Reply {
    let (thinking, text, calls) = match decision {
        Decision::Call { thinking, say, call } => (thinking, say, vec![call]),
        Decision::Finish { text, first } => {
            let hint = if first { sum::how_to_add_a_provider(servers) } else { String::new() };
            (String::new(), text + &hint, Vec::new())
        }
    };
    let thinking = if request.reasoning == ReasoningLevel::None { String::new() } else { thinking };
    let usage = usage(request, &thinking, &text, &calls);
    Reply { thinking, text, calls, finish: Finish::Complete, usage }
}

/// Nothing is counted here, so the figures are the estimate of the contract: a quarter of the characters.
fn usage(request: &Request, thinking: &str, text: &str, calls: &[Call]) -> Usage {
    let said = request.messages.iter().map(|message| tokens(&message.text)).sum::<u64>();
    let input = tokens(&request.system) + said;
    let asked = calls.iter().map(|call| tokens(&call.arguments)).sum::<u64>();
    Usage {
        input_tokens: input,
        total_input_tokens: input,
        output_tokens: tokens(thinking) + tokens(text) + asked,
        ..Usage::default()
    }
}

fn tokens(text: &str) -> u64 {
    text.chars().count().div_ceil(4) as u64
}

async fn stream(text: &str, kind: fn(String) -> Chunk, hear: Hear<'_>) {
    let mut piece = String::new();
    for character in text.chars() {
        piece.push(character);
        if piece.len() >= PIECE_CHARS && character.is_whitespace() {
            hear(kind(std::mem::take(&mut piece)));
            tokio::task::yield_now().await;
        }
    }
    if !piece.is_empty() {
        hear(kind(piece));
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests;
