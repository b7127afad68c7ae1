//! One model call of a turn: composed off the runtime, streamed straight into the session's log.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use seekclaw_protocol::event::{Usage, WorkflowKind};
use seekclaw_protocol::{ErrorCode, TurnId};
use seekclaw_storage::record::log::{Answer, AnswerEnd, Body, Call, Notice, Streamed};
use tokio_util::sync::CancellationToken;

use super::{After, Capture, State, TurnFailure, TurnMsg, Work};
use crate::history::Message;
use crate::provider::retry;
use crate::provider::{Candidate, Chunk, Finish, Observer, ProviderError, Reply};
use crate::services::Services;
use crate::session::log::SessionLog;
use crate::session::record;
use crate::supervision::tell;

/// Stands for an answer that the output cap cut before it had any text (contract 5.6).
pub(super) const TRUNCATED_NOTE: &str =
    ">>> [output truncated] Your last answer hit the output limit before any text. Go on, in smaller steps.";
/// Label of a thinking step (contract 3.2).
const LABEL_THINK: &str = "思考";
/// Label of a step that continues a capped answer (contract 3.2).
const LABEL_CONTINUE: &str = "续写";

/// All that a model call needs, owned by its task.
struct Job {
    capture: Arc<Capture>,
    services: Services,
    messages: Vec<Message>,
    uid: u64,
    restarts: u32,
    cancel: CancellationToken,
    stream: Stream,
}

/// Writes what a model call does into the session's log, in order, without a message per token.
struct Stream {
    log: Arc<SessionLog>,
    fence: u64,
    turn: TurnId,
    step: u32,
    images: Vec<Notice>,
    model: String,
    /// What was published, for the turn's own sums.
    notices: Vec<Notice>,
}

/// How a model call went.
#[derive(Debug)]
pub(crate) struct Asked {
    result: Result<Reply, ProviderError>,
    /// `provider/model` that was asked last.
    model: String,
    notices: Vec<Notice>,
}

impl State {
    /// Begins the next step.
    pub(super) fn ask(&mut self) {
        let step = self.turn.step + 1;
        let label = if self.turn.last == Some(AnswerEnd::Capped) { LABEL_CONTINUE } else { LABEL_THINK };
        self.publish(record::status("Thinking"));
        self.publish(record::workflow(step, WorkflowKind::Think, label));
        self.work = Work::Asking;
        let job = Job {
            capture: Arc::clone(&self.args.capture),
            services: self.args.services.clone(),
            messages: self.conversation(),
            uid: self.args.uid,
            restarts: self.args.restarts,
            cancel: self.cancel.clone(),
            stream: Stream {
                log: Arc::clone(&self.args.log),
                fence: self.args.fence,
                turn: self.args.turn.clone(),
                step,
                images: if self.turn.answers == 0 { self.images_of_prompt() } else { Vec::new() },
                model: String::new(),
                notices: Vec::new(),
            },
        };
        let me = self.me.clone();
        self.tasks.spawn(async move {
            tell(&me, TurnMsg::Answered(Box::new(job.run().await)));
        });
    }

    fn images_of_prompt(&self) -> Vec<Notice> {
        let Some(last) = self.history.messages.last() else { return Vec::new() };
        last.images.iter().map(|image| Notice::ImageView(record::image_ref(image))).collect()
    }

    /// The model answered or failed; a failure after it had streamed is a failure of this step.
    pub(super) fn answered(&mut self, asked: Asked) -> Result<(), TurnFailure> {
        if self.work != Work::Asking {
            return Ok(());
        }
        for notice in asked.notices {
            self.count(notice);
        }
        self.asked_model = asked.model;
        if self.cancelled() {
            self.idle();
            return Ok(());
        }
        match asked.result {
            Ok(reply) => self.keep_answer(reply),
            Err(error) if error.committed => {
                return Err(TurnFailure { code: error.code, message: error.message });
            }
            Err(error) => self.end_failed(&error),
        }
        Ok(())
    }

    fn keep_answer(&mut self, reply: Reply) {
        let streamed = self.args.log.streamed();
        let viewed = if self.turn.answers == 0 { self.viewed() } else { Vec::new() };
        let answer = Answer {
            step: self.turn.step,
            model: self.asked_model.clone(),
            thinking: streamed.thinking,
            text: streamed.text,
            marks: streamed.marks,
            calls: distinct(reply.calls),
            viewed,
            end: if reply.finish == Finish::Capped { AnswerEnd::Capped } else { AnswerEnd::Complete },
        };
        self.work = Work::Committing;
        self.commit(vec![Body::Answer(answer)], After::Advance);
    }

    fn viewed(&self) -> Vec<seekclaw_storage::record::log::ImageRef> {
        let last = self.history.messages.last();
        last.map(|message| message.images.iter().map(record::image_ref).collect()).unwrap_or_default()
    }
}

impl Job {
    async fn run(mut self) -> Asked {
        let result = self.ask().await;
        Asked { result, model: self.stream.model, notices: self.stream.notices }
    }

    async fn ask(&mut self) -> Result<Reply, ProviderError> {
        let prepared = tokio::select! {
            prepared = self.prepare() => prepared,
            () = self.cancel.cancelled() => Err(cut_off("cancelled")),
        };
        let (candidates, prepared) = prepared?;
        let capture = Arc::clone(&self.capture);
        let config = &capture.config;
        let (retry, failover) = (&config.routing.retry, config.routing.failover_enabled);
        let request = |candidate: &Candidate| capture.request(candidate, &prepared);
        let breakers = self.services.config.breakers();
        let asked =
            retry::ask(&candidates, &request, retry, failover, &breakers, &mut self.stream, &self.cancel);
        asked.await.map(|(_, reply)| reply)
    }

    /// Chooses the candidates and reads what the prompt is made of.
    async fn prepare(&self) -> Result<(Vec<Candidate>, super::capture::Prepared), ProviderError> {
        let (capture, reader) = (Arc::clone(&self.capture), self.services.store.reader().clone());
        let (messages, uid, restarts) = (self.messages.clone(), self.uid, self.restarts);
        let prepared =
            tokio::task::spawn_blocking(move || capture.prepare(messages, &reader, uid, restarts)).await;
        prepared.unwrap_or_else(|error| Err(cut_off(&error.to_string())))
    }
}

fn cut_off(why: &str) -> ProviderError {
    ProviderError {
        code: ErrorCode::Internal,
        message: format!("preparing the request was cut off: {why}"),
        retryable: false,
        committed: true,
        retry_after: None,
    }
}

impl Stream {
    fn publish(&mut self, notice: Notice) {
        if self.log.publish(self.fence, &self.turn, notice.clone()) {
            self.notices.push(notice);
        } else {
            tracing::debug!(turn = %self.turn, "a replaced turn still streams");
        }
    }

    fn text(&self, kind: Streamed, text: String) {
        if !text.is_empty() && !self.log.stream(self.fence, &self.turn, kind, text) {
            tracing::debug!(turn = %self.turn, "a replaced turn still streams");
        }
    }
}

impl Observer for Stream {
    fn asking(&mut self, next: &Candidate, failed: Option<(&Candidate, &ProviderError)>) {
        if let Some((from, error)) = failed {
            let (from, to, reason) = (from.reference(), next.reference(), error.message.clone());
            self.publish(Notice::ProviderSwitched { from, to, reason });
        }
        for image in self.images.drain(..).collect::<Vec<_>>() {
            self.publish(image);
        }
        self.model = next.reference();
        let (provider, model) = (next.provider.id.clone(), next.model.id.clone());
        self.publish(Notice::ModelStart { provider, model, step: self.step });
    }

    fn chunk(&mut self, chunk: Chunk) {
        match chunk {
            Chunk::Thinking(text) => self.text(Streamed::Thinking, text),
            Chunk::Text(text) => self.text(Streamed::Text, text),
            Chunk::CallStarted => self.publish(record::status("Preparing tool call")),
        }
    }

    fn attempt_ended(&mut self, candidate: &Candidate, usage: Usage) {
        self.publish(record::usage(&candidate.provider.id, &candidate.model.id, &usage));
    }

    fn waiting(&mut self, delay: Duration, error: &ProviderError) {
        tracing::debug!(turn = %self.turn, %error, "an attempt failed");
        let wait_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        // A short phase label (contract 3.1): clients look for words in it, so the reason stays out.
        let label = format!("Waiting {:.1} s", delay.as_secs_f64());
        self.publish(Notice::Status { label, position: 0, wait_ms });
    }

    fn retrying(&mut self, _candidate: &Candidate) {
        self.publish(record::status("Thinking"));
    }
}

/// Results are matched by call id, so an id that a model used twice gets a suffix.
fn distinct(calls: Vec<Call>) -> Vec<Call> {
    let mut taken = HashSet::new();
    let unique = |mut call: Call| {
        let original = call.id.clone();
        let mut copy = 2;
        while !taken.insert(call.id.clone()) {
            call.id = format!("{original}_{copy}");
            copy += 1;
        }
        call
    };
    calls.into_iter().map(unique).collect()
}
