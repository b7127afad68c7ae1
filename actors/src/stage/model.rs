//! A model that follows a script.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use seekclaw_protocol::event::Usage;
use serde_json::Value;

use crate::history::{Call, Role};
use crate::provider::retry::Hear;
use crate::provider::{Candidate, Chunk, Finish, ProviderError, Reply, Request};

/// What a model does while it answers.
pub(crate) enum Act {
    Think(&'static str),
    Say(&'static str),
    Wait(Duration),
    Call(&'static str, Value),
    Cap,
    Fail(ProviderError),
}

/// What a model is asked.
pub(crate) struct Ask {
    /// Answers in the conversation before.
    pub(crate) step: usize,
    /// Requests before, failed ones included.
    pub(crate) before: usize,
}

type Play = dyn Fn(&Ask) -> Vec<Act> + Send + Sync;

/// A script and what was asked by it.
pub(crate) struct Script {
    pub(crate) provider: String,
    play: Box<Play>,
    asks: AtomicUsize,
}

static SCRIPTS: LazyLock<Mutex<HashMap<String, Arc<Script>>>> = LazyLock::new(Mutex::default);

impl Script {
    pub(crate) fn new(play: impl Fn(&Ask) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let provider = format!("scripted-{:x}", crate::session::random());
        Self { provider, play: Box::new(play), asks: AtomicUsize::new(0) }
    }

    /// A model that says one thing and is done.
    pub(crate) fn saying(text: &'static str) -> Self {
        Self::new(move |_| vec![Act::Say(text)])
    }

    /// Requests so far.
    pub(crate) fn asks(&self) -> usize {
        self.asks.load(Ordering::SeqCst)
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, request: &Request, hear: Hear<'_>) -> Result<Reply, ProviderError> {
        let before = self.asks.fetch_add(1, Ordering::SeqCst);
        let step = request.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let mut reply = Reply {
            thinking: String::new(),
            text: String::new(),
            calls: Vec::new(),
            finish: Finish::Complete,
            usage: Usage { input_tokens: 1, total_input_tokens: 1, output_tokens: 1, ..Usage::default() },
        };
        for act in (self.play)(&Ask { step, before }) {
            match act {
                Act::Think(text) => {
                    reply.thinking.push_str(text);
                    hear(Chunk::Thinking(text.to_owned()));
                }
                Act::Say(text) => {
                    reply.text.push_str(text);
                    hear(Chunk::Text(text.to_owned()));
                }
                Act::Wait(time) => tokio::time::sleep(time).await,
                Act::Call(name, arguments) => {
                    let id = format!("call-{step}-{}", reply.calls.len());
                    let arguments = arguments.to_string();
                    reply.calls.push(Call { id, name: name.to_owned(), arguments });
                }
                Act::Cap => reply.finish = Finish::Capped,
                Act::Fail(error) => return Err(error),
            }
            tokio::task::yield_now().await;
        }
        Ok(reply)
    }
}

pub(super) fn register(script: Script) -> Arc<Script> {
    let script = Arc::new(script);
    SCRIPTS.lock().unwrap().insert(script.provider.clone(), Arc::clone(&script));
    script
}

/// The script of a candidate, if it has one.
pub(crate) fn script_of(candidate: &Candidate) -> Option<Arc<Script>> {
    SCRIPTS.lock().unwrap().get(&candidate.provider.id).cloned()
}
