//! Model providers: what is asked, what streams back, and how it fails. One file per dialect.

pub mod breaker;
pub mod chain;
pub mod client;
mod failure;
pub mod offline;
pub mod openai;
pub mod probe;
pub mod retry;
pub mod sse;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seekclaw_protocol::event::Usage;
use seekclaw_protocol::{ErrorCode, ReasoningLevel};
use seekclaw_storage::config::model::{Model, Provider};

use crate::history::{Call, Message};
use crate::tools::ToolSpec;

pub use breaker::Breakers;
pub use retry::ask;

/// A model that can be asked.
#[derive(Clone, PartialEq)]
pub struct Candidate {
    /// Its provider.
    pub provider: Arc<Provider>,
    /// The model itself.
    pub model: Arc<Model>,
    /// Whether `routing.deepSeekOptimizationEnabled` applies to it (contract 6.2).
    pub deep_seek_optimized: bool,
}

/// Only the reference: a provider holds a key, and keys never reach a log.
impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Candidate").field(&self.reference()).finish()
    }
}

impl Candidate {
    /// `provider/model`.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}/{}", self.provider.id, self.model.id)
    }

    /// Whether the adaptations for DeepSeek apply (contract 5.8).
    #[must_use]
    pub fn is_deep_seek(&self) -> bool {
        [&self.provider.id, &self.provider.base_url, &self.model.id]
            .into_iter()
            .any(|text| text.to_ascii_lowercase().contains("deepseek"))
    }
}

/// One model call.
#[derive(Clone, Debug)]
pub struct Request {
    /// System prompt.
    pub system: String,
    /// The conversation, fitted and repaired.
    pub messages: Vec<Message>,
    /// Tools offered, sorted by name.
    pub tools: Vec<ToolSpec>,
    /// Tokens of the answer.
    pub max_output: u64,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Level asked for; the dialect applies what the model can do (contract 5.8).
    pub reasoning: ReasoningLevel,
}

/// A piece of a streaming answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Reasoning.
    Thinking(String),
    /// Answer text.
    Text(String),
    /// The model began to write a call; sent once per answer.
    CallStarted,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The model was done, with or without calls.
    Complete,
    /// The output cap cut it.
    Capped,
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Reasoning.
    pub thinking: String,
    /// Answer text.
    pub text: String,
    /// Calls, in order, arguments as the model wrote them.
    pub calls: Vec<Call>,
    /// Why it ended.
    pub finish: Finish,
    /// What it used.
    pub usage: Usage,
}

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Stable code.
    pub code: ErrorCode,
    /// Text of the contract (6.5).
    pub message: String,
    /// Whether the same request may be tried again.
    pub retryable: bool,
    /// Whether anything had streamed before it failed.
    pub committed: bool,
    /// What the provider asked to wait.
    pub retry_after: Option<Duration>,
}

/// Hears what happens during a call. Implementations must not block.
pub trait Observer: Send {
    /// `next` is about to be asked, because `failed` failed if there was one before.
    fn asking(&mut self, next: &Candidate, failed: Option<(&Candidate, &ProviderError)>);
    /// A piece arrived.
    fn chunk(&mut self, chunk: Chunk);
    /// An attempt at `candidate` ended; only its time counts if it failed.
    fn attempt_ended(&mut self, candidate: &Candidate, usage: Usage);
    /// The next attempt waits.
    fn waiting(&mut self, delay: Duration, error: &ProviderError);
    /// The wait is over: `candidate` is about to be asked again.
    fn retrying(&mut self, candidate: &Candidate);
}
