//! The Turn actor: one run of the agent loop, as a state machine over the session's log.
//!
//! Only its Session talks to it; its tasks (a model stream, tool calls, a check) report by message, so
//! cancel and steer never wait. Every step is recorded before the next depends on it. When it cannot go
//! on it fails; the Session restarts it and it continues at the first thing missing in the log.

mod capture;
#[cfg(test)]
pub(crate) mod faults;
mod finish;
mod load;
mod model;
pub(crate) mod state;
mod tool;
mod verify;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use seekclaw_protocol::event::WorkflowKind;
use seekclaw_protocol::limits::MAX_QUEUED_GUIDANCE;
use seekclaw_protocol::{ErrorCode, TurnId};
use seekclaw_storage::record::log::{
    AnswerEnd, Body, Call, Effect, Entry, Finished, Guidance, Note, Notice, Outcome,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

pub(crate) use capture::Capture;
pub(crate) use finish::{LABEL_CANCELLED, LABEL_FAILED};

use crate::history::Message;
use crate::history::fold::History;
use crate::services::Services;
use crate::session::log::SessionLog;
use crate::session::{Commit, NewGuidance, SessionMsg, applied, record};
use crate::supervision::{Tasks, answer, tell};
use crate::tools::{SeenFiles, ToolReport, registry};
use state::{Next, TurnState};

/// How long tasks may take to end politely before they are dropped.
const CANCEL_GRACE: Duration = Duration::from_millis(1800);

/// What the running turn is told.
#[derive(Debug)]
pub(crate) enum TurnMsg {
    /// The log has been folded.
    Loaded(Result<Box<load::Loaded>, TurnFailure>),
    /// A commit that this turn asked for has ended.
    Committed(u64, Result<Vec<Entry>, TurnFailure>),
    /// Somebody guides the turn; accepted or refused here and nowhere else.
    Steer(Arc<NewGuidance>, RpcReplyPort<SteerAnswer>),
    /// Somebody wants it to end.
    Cancel,
    /// The model answered or failed.
    Answered(Box<model::Asked>),
    /// A call is about to have an effect: record that first.
    Declare(String, Effect, oneshot::Sender<()>),
    /// A call ended.
    Called(Call, Box<ToolReport>, Duration),
    /// The check of the work ended.
    Verified(Box<verify::Verification>),
    /// Tasks had their time to end politely.
    Grace,
}

/// What the one who steers hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SteerAnswer {
    /// Stored; it will be in the conversation.
    Queued,
    /// The turn is ending.
    Finishing,
    /// Too much guidance is waiting.
    Full,
    /// It could not be stored.
    Failed(TurnFailure),
}

/// Why a turn cannot go on: the reason of its restart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct TurnFailure {
    /// Stable code.
    pub(crate) code: ErrorCode,
    /// Readable text.
    pub(crate) message: String,
}

/// What a turn is started with.
#[derive(Clone)]
pub(crate) struct TurnArgs {
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) log: Arc<SessionLog>,
    pub(crate) uid: u64,
    pub(crate) turn: TurnId,
    /// Only the holder of the current fence may publish.
    pub(crate) fence: u64,
    /// Restarts of the present step so far.
    pub(crate) restarts: u32,
    pub(crate) order: Order,
    pub(crate) capture: Arc<Capture>,
    pub(crate) services: Services,
}

/// What a turn is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Go on to the end.
    Run,
    /// End as cancelled.
    Cancel,
    /// End as failed; `marked` leaves a message that says so (ruling 10).
    Close { failure: TurnFailure, marked: bool },
}

/// The actor.
pub(crate) struct Turn;

/// What is running for the turn.
#[derive(Debug, PartialEq, Eq)]
enum Work {
    Idle,
    Loading,
    Committing,
    Asking,
    Calling(usize),
    Checking,
    Ending,
}

/// What happens after a commit.
enum After {
    Advance,
    Called,
    Declared(oneshot::Sender<()>),
    Steered(RpcReplyPort<SteerAnswer>),
    Ended,
}

pub(crate) struct State {
    args: TurnArgs,
    me: ActorRef<TurnMsg>,
    work: Work,
    tasks: Tasks,
    cancel: CancellationToken,
    order: Order,
    asked_model: String,
    /// Cancelled work was dropped; its last records are on their way.
    dropped: bool,
    /// How it ends, until those who steer have their answer.
    end: Option<finish::End>,
    history: History,
    turn: TurnState,
    seen: Arc<SeenFiles>,
    tickets: HashMap<u64, After>,
    next_ticket: u64,
    steers_in_flight: usize,
    /// Guidance that came before the log was read: what is stored meanwhile could be missing in that read.
    early: Vec<(Arc<NewGuidance>, RpcReplyPort<SteerAnswer>)>,
}

impl TurnFailure {
    /// A failure that is a defect of ours.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::Internal, message: message.into() }
    }

    /// What an actor failed with.
    pub(crate) fn of(error: &(dyn std::error::Error + Send + Sync + 'static)) -> Self {
        error.downcast_ref::<Self>().cloned().unwrap_or_else(|| Self::internal(error.to_string()))
    }

    /// The record that ends a turn with this failure.
    pub(crate) fn finished(&self) -> Finished {
        Finished::Failed {
            code: self.code.as_str().to_owned(),
            message: self.message.clone(),
            retry_after_ms: 0,
        }
    }
}

impl Actor for Turn {
    type Msg = TurnMsg;
    type State = State;
    type Arguments = TurnArgs;

    async fn pre_start(&self, me: ActorRef<TurnMsg>, args: TurnArgs) -> Result<State, ActorProcessingErr> {
        let mut state = State {
            me: me.clone(),
            work: Work::Loading,
            tasks: Tasks::default(),
            cancel: CancellationToken::new(),
            order: args.order.clone(),
            asked_model: String::new(),
            dropped: false,
            end: None,
            history: History::default(),
            turn: TurnState::default(),
            seen: Arc::new(SeenFiles::default()),
            tickets: HashMap::new(),
            next_ticket: 0,
            steers_in_flight: 0,
            early: Vec::new(),
            args,
        };
        let job = load::job(&state.args);
        state.tasks.spawn(async move { tell(&me, TurnMsg::Loaded(job.await)) });
        Ok(state)
    }

    async fn handle(
        &self,
        _me: ActorRef<TurnMsg>,
        message: TurnMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        #[cfg(test)]
        let point = faults::reach(state, &message).await?;
        match message {
            TurnMsg::Loaded(result) => state.loaded(result)?,
            TurnMsg::Committed(ticket, result) => state.committed(ticket, result)?,
            TurnMsg::Steer(guidance, reply) => state.steer(guidance, reply),
            TurnMsg::Cancel => state.cancel(),
            TurnMsg::Answered(asked) => state.answered(*asked)?,
            TurnMsg::Declare(call, effect, ack) => state.declare(call, effect, ack),
            TurnMsg::Called(call, report, took) => state.called(&call, *report, took),
            TurnMsg::Verified(verification) => state.verified(*verification),
            TurnMsg::Grace => state.grace(),
        }
        #[cfg(test)]
        faults::leave(state, point)?;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<TurnMsg>,
        event: SupervisionEvent,
        _state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        tracing::debug!(%event, "a turn has no children: ignored");
        Ok(())
    }

    async fn post_stop(&self, _me: ActorRef<TurnMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        state.cancel.cancel();
        state.tasks.shutdown().await;
        Ok(())
    }
}

impl State {
    fn loaded(&mut self, result: Result<Box<load::Loaded>, TurnFailure>) -> Result<(), TurnFailure> {
        let loaded = *result?;
        for seen in &loaded.history.seen {
            self.seen.note(seen);
        }
        (self.history, self.turn) = (loaded.history, loaded.turn);
        if self.order == Order::Run && self.turn.last == Some(AnswerEnd::Cancelled) {
            // Cancelled by an earlier incarnation of the session.
            self.order = Order::Cancel;
        }
        self.work = Work::Idle;
        for (guidance, reply) in std::mem::take(&mut self.early) {
            self.steer(guidance, reply);
        }
        self.advance();
        Ok(())
    }

    /// Takes what is now durable into the fold, then does what waited for it.
    fn committed(&mut self, ticket: u64, result: Result<Vec<Entry>, TurnFailure>) -> Result<(), TurnFailure> {
        let Some(after) = self.tickets.remove(&ticket) else { return Ok(()) };
        match (result, after) {
            (Ok(entries), after) => {
                self.fold(&entries);
                self.after(after);
            }
            (Err(failure), After::Steered(reply)) => {
                answer(reply, SteerAnswer::Failed(failure));
                self.steer_settled();
            }
            // The terminal event was shown all the same (`SessionLog::failed`).
            (Err(_), After::Ended) => self.me.stop(None),
            (Err(failure), _) => return Err(failure),
        }
        self.dropped_work_settled();
        Ok(())
    }

    fn fold(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.history.apply(entry);
            self.turn.apply(entry, registry::is_mutating);
        }
    }

    fn after(&mut self, after: After) {
        match after {
            After::Advance => self.idle(),
            After::Called => self.call_settled(),
            After::Declared(ack) => {
                if ack.send(()).is_err() {
                    tracing::debug!("the call that declared an intent has ended");
                }
            }
            After::Steered(reply) => {
                answer(reply, SteerAnswer::Queued);
                self.steer_settled();
            }
            After::Ended => self.me.stop(None),
        }
    }

    fn idle(&mut self) {
        self.work = Work::Idle;
        self.advance();
    }

    fn steer(&mut self, guidance: Arc<NewGuidance>, reply: RpcReplyPort<SteerAnswer>) {
        if reply.is_closed() {
            // Refused already, since the decision took too long.
            return;
        }
        if self.order != Order::Run || self.work == Work::Ending {
            return answer(reply, SteerAnswer::Finishing);
        }
        if self.turn.guidance.len() + self.steers_in_flight + self.early.len() >= MAX_QUEUED_GUIDANCE {
            return answer(reply, SteerAnswer::Full);
        }
        if self.work == Work::Loading {
            return self.early.push((guidance, reply));
        }
        self.steers_in_flight += 1;
        let body = Body::Guidance(guidance.record());
        self.commit_with(vec![body], After::Steered(reply), Some(guidance));
    }

    fn steer_settled(&mut self) {
        self.steers_in_flight -= 1;
        self.advance();
        self.end_once_answered();
    }

    /// Does the next thing, unless something of this turn is still running.
    fn advance(&mut self) {
        if self.work != Work::Idle {
            return;
        }
        match self.order.clone() {
            Order::Run => {}
            Order::Cancel => return self.end_cancelled(),
            Order::Close { failure, marked } => return self.end_closed(&failure, marked),
        }
        match self.turn.next(self.args.capture.bounds(), registry::is_mutating) {
            Next::Settle(calls) => self.settle(calls),
            Next::Run(calls) => self.run_calls(calls),
            Next::Apply(guidance) => self.apply_guidance(&guidance),
            Next::Ask { after_cap } => self.ask_after(after_cap),
            Next::Verify => self.verify(),
            // An answer to somebody who steers must not be overtaken by the end of the turn.
            Next::Finish(_) if self.steers_in_flight > 0 => {}
            Next::Finish(because) => self.end_done(because),
        }
    }

    /// Records what is known about calls that do not run (again).
    fn settle(&mut self, calls: Vec<(Call, Outcome)>) {
        let uncertain: Vec<&Call> = calls
            .iter()
            .filter(|(_, outcome)| *outcome == Outcome::Uncertain)
            .map(|(call, _)| call)
            .collect();
        let mut bodies = Vec::new();
        if !uncertain.is_empty() {
            bodies.push(Body::Notice(tool::recovered(&uncertain)));
        }
        bodies.extend(calls.iter().map(|(call, outcome)| Body::Result(tool::unrun_result(call, *outcome))));
        self.work = Work::Committing;
        self.commit(bodies, After::Advance);
    }

    fn apply_guidance(&mut self, guidance: &[Guidance]) {
        self.work = Work::Committing;
        let bodies = guidance.iter().map(applied).map(Body::Applied).collect();
        self.commit(bodies, After::Advance);
    }

    fn ask_after(&mut self, after_cap: Option<bool>) {
        if after_cap.is_some() {
            self.publish(record::status("Output truncated; continuing"));
        }
        if after_cap == Some(false) {
            self.work = Work::Committing;
            let note = Note { text: model::TRUNCATED_NOTE.to_owned() };
            return self.commit(vec![Body::Note(note)], After::Advance);
        }
        self.ask();
    }

    /// Publishes what need not be durable.
    fn publish(&mut self, notice: Notice) {
        if !self.args.log.publish(self.args.fence, &self.args.turn, notice.clone()) {
            tracing::debug!(turn = %self.args.turn, "published after being replaced");
        }
        self.count(notice);
    }

    /// Takes a published notice into the fold, as a restarted turn would find it in the log.
    fn count(&mut self, notice: Notice) {
        let entry = Entry { seq: 0, at: 0, turn: String::new(), body: Body::Notice(notice) };
        self.turn.apply(&entry, registry::is_mutating);
    }

    fn workflow(&mut self, kind: WorkflowKind, label: &str) {
        self.publish(record::workflow(self.turn.step, kind, label));
    }

    /// Asks the Session to make `bodies` durable; `after` happens when they are.
    fn commit(&mut self, bodies: Vec<Body>, after: After) {
        self.commit_with(bodies, after, None);
    }

    fn commit_with(&mut self, bodies: Vec<Body>, after: After, guidance: Option<Arc<NewGuidance>>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.tickets.insert(ticket, after);
        let totals = matches!(bodies.last(), Some(Body::Finished(_))).then_some(self.turn.totals);
        let (fence, turn) = (self.args.fence, self.args.turn.clone());
        let commit = Commit { fence, turn, bodies, ticket, totals, guidance };
        tell(&self.args.session, SessionMsg::Commit(commit, self.me.clone()));
    }

    fn cancelled(&self) -> bool {
        self.order != Order::Run
    }

    /// The conversation for a model.
    fn conversation(&self) -> Vec<Message> {
        self.history.messages.clone()
    }
}

#[cfg(test)]
mod tests;
