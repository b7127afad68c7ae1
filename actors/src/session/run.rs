//! The running turn of a session: captured, started, cancelled, over. Its failures are judged in `restart`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRef, RpcReplyPort, SpawnErr};
use seekclaw_protocol::event::WorkflowKind;
use seekclaw_protocol::{TurnId, WireError};
use seekclaw_storage::record::log::{Body, Notice, Started};
use seekclaw_storage::record::turn::TurnRow;
use seekclaw_storage::store::Write;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::commit::{Waiter, Waiting};
use super::guidance::GuidanceReply;
use super::log::now;
use super::prompt::NewGuidance;
use super::{Live, SessionMsg, record};
use crate::supervision::{Backoff, answer, tell};
use crate::tools::{Survivor, bash};
use crate::turn::state::Totals;
use crate::turn::{Capture, Order, Turn, TurnArgs, TurnFailure, TurnMsg};

/// How long a turn's tasks may take to end when the session stops.
pub(super) const STOP_BUDGET: Duration = Duration::from_secs(2);
/// Processes left running that a session keeps; more than this and the oldest end.
const MAX_SURVIVORS: usize = 64;
/// Label of the first node of a turn (contract 3.2).
const LABEL_START: &str = "开始任务";

/// Tasks that wait for the end of the connections that own turns.
pub(super) type OwnerWatches = HashMap<TurnId, AbortHandle>;

/// Guidance and who waits to hear about it.
pub(super) type Guided = (Arc<NewGuidance>, GuidanceReply);

/// The turn whose time it is.
pub(super) struct Running {
    pub(super) turn: TurnId,
    pub(super) phase: Phase,
    pub(super) row: TurnRow,
    capture: Option<Arc<Capture>>,
    pub(super) order: Order,
    pub(super) backoff: Backoff,
    /// Restarts of the present step.
    pub(super) restarts: u32,
    /// Starts that are stored; above 0 for a turn of an earlier incarnation.
    pub(super) starts: u32,
    /// Why it goes on after a crash, until that has been said.
    recovered: Option<String>,
}

/// Where the running turn is on its way.
pub(super) enum Phase {
    /// What it will work with is being found out.
    Capturing,
    /// A start is being stored. The actor will not find in the log what is stored after it: guidance waits.
    Starting(Vec<Guided>),
    /// Its actor serves.
    Up { actor: ActorRef<TurnMsg>, since: Instant },
    /// Its actor has ended; that is judged once its last records are stored or lost.
    Ended { failure: TurnFailure, uptime: Duration },
    /// A restart waits.
    Waiting,
    /// Its end is on its way to the store.
    Over,
}

/// An open turn, for those who look in.
#[derive(Clone, Debug)]
pub(crate) struct TurnInfo {
    pub(crate) turn: TurnId,
    pub(crate) running: bool,
}

impl Running {
    /// A turn that a crash left open.
    pub(super) fn recovered(mut row: TurnRow, order: Order, reason: String) -> Self {
        row.deaths += 1;
        Self { recovered: Some(reason), starts: 1, ..Self::new(row, order) }
    }

    pub(super) fn new(row: TurnRow, order: Order) -> Self {
        Self {
            turn: TurnId::from_text(&row.turn),
            phase: Phase::Capturing,
            row,
            capture: None,
            order,
            backoff: Backoff::default(),
            restarts: 0,
            starts: 0,
            recovered: None,
        }
    }
}

impl Live {
    /// Starts the next stored prompt if no turn is running.
    pub(super) fn start_next(&mut self) {
        if self.running.is_some() || !self.queue.front().is_some_and(|pending| pending.confirmed) {
            return;
        }
        let Some(pending) = self.queue.pop_front() else { return };
        match pending.returned {
            Some(reason) => self.return_prompt(&pending.turn, true, &reason),
            None => self.run(Running::new(pending.row, Order::Run)),
        }
    }

    /// Finds out what the turn will work with.
    pub(super) fn run(&mut self, running: Running) {
        let (turn, row) = (running.turn.clone(), running.row.clone());
        self.running = Some(running);
        let job = Capture::job(self.services.clone(), self.row.clone(), row);
        let me = self.me.clone();
        self.tasks.spawn(async move { tell(&me, SessionMsg::Captured(turn, job.await)) });
    }

    pub(super) fn captured(&mut self, turn: &TurnId, capture: Result<Arc<Capture>, TurnFailure>) {
        let Some(running) = self.running.as_mut().filter(|running| running.turn == *turn) else { return };
        match capture {
            Ok(capture) => {
                running.capture = Some(capture);
                self.record_start();
            }
            Err(failure) => self.close_without_turn(&failure),
        }
    }

    /// Records a start; that also stores the notices of the attempt before.
    pub(super) fn record_start(&mut self) {
        let Some(running) = self.running.as_mut() else { return };
        let Some(capture) = running.capture.clone() else { return };
        running.row.running = true;
        running.row.touched_at = now().0;
        let started = Started {
            attempt: running.starts,
            mode: capture.mode,
            reasoning: capture.reasoning,
            model: running.row.model.clone(),
        };
        let mut bodies = vec![Body::Started(started)];
        if running.starts == 0 {
            bodies.push(Body::Notice(record::workflow(0, WorkflowKind::Start, LABEL_START)));
        }
        if let Some(reason) = running.recovered.clone() {
            bodies.push(Body::Notice(Notice::Recovered { reason, uncertain: Vec::new() }));
        }
        running.phase = Phase::Starting(Vec::new());
        let (turn, put) = (running.turn.clone(), Write::PutTurn(running.row.clone()));
        self.next_fence();
        self.record(&turn.clone(), bodies, vec![put], Waiter::Started(turn));
    }

    /// The start is stored: the actor may run.
    pub(super) fn spawn_turn(&mut self, turn: &TurnId) {
        let Some(running) = self.running.as_mut().filter(|running| running.turn == *turn) else { return };
        let Some(capture) = running.capture.clone() else { return };
        running.starts += 1;
        running.recovered = None;
        let args = TurnArgs {
            session: self.me.clone(),
            log: Arc::clone(&self.log),
            uid: self.row.uid,
            turn: turn.clone(),
            fence: self.fence,
            restarts: running.restarts,
            order: running.order.clone(),
            capture,
            services: self.services.clone(),
        };
        let name = format!("turn {turn} of {} #{}.{}", self.id, self.log.generation(), running.starts);
        match ractor::ActorRuntime::spawn_linked_instant(Some(name), Turn, args, self.me.get_cell()) {
            Ok((actor, started)) => {
                self.watch_start(actor.get_id(), started);
                let up = Phase::Up { actor, since: Instant::now() };
                self.leave_start(|running| running.phase = up);
            }
            Err(error) => {
                let failure = TurnFailure::internal(format!("cannot start the turn: {error}"));
                self.start_failed(&failure);
            }
        }
    }

    /// An actor that is killed before it has started is reported by nobody else.
    fn watch_start<T: Send + 'static>(&mut self, id: ActorId, started: JoinHandle<Result<T, SpawnErr>>) {
        let me = self.me.clone();
        self.tasks.spawn(async move {
            let failed = match started.await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            tell(&me, SessionMsg::TurnEnded(id, TurnFailure::internal(failed)));
        });
    }

    /// The start could not be stored, or there is no actor.
    pub(super) fn start_failed(&mut self, failure: &TurnFailure) {
        let stash = self.stashed();
        self.turn_failed(failure, Duration::ZERO);
        self.guide_again(stash);
    }

    fn leave_start(&mut self, next: impl FnOnce(&mut Running)) {
        let stash = self.stashed();
        if let Some(running) = self.running.as_mut() {
            next(running);
        }
        self.guide_again(stash);
    }

    fn stashed(&mut self) -> Vec<Guided> {
        match self.running.as_mut().map(|running| &mut running.phase) {
            Some(Phase::Starting(stash)) => std::mem::take(stash),
            _ => Vec::new(),
        }
    }

    fn guide_again(&mut self, stash: Vec<Guided>) {
        let Some(turn) = self.running.as_ref().map(|running| running.turn.clone()) else { return };
        for (guidance, reply) in stash {
            self.steer(&turn, guidance, reply);
        }
    }

    /// From here on nothing that earlier incarnations of a turn say counts.
    pub(super) fn next_fence(&mut self) {
        self.fence += 1;
        self.log.set_fence(self.fence);
    }

    pub(super) fn cancel(&mut self, turn: &TurnId) -> bool {
        if self.queue.iter().any(|pending| pending.turn == *turn) {
            self.return_prompt(turn, false, "cancelled");
            return true;
        }
        let Some(running) = self.running.as_mut().filter(|running| running.turn == *turn) else {
            return false;
        };
        if matches!(running.order, Order::Run) && !matches!(running.phase, Phase::Over) {
            running.order = Order::Cancel;
        }
        match &running.phase {
            Phase::Up { actor, .. } => tell(actor, TurnMsg::Cancel),
            Phase::Waiting => self.record_start(),
            // The next start has the order; it does not wait for anything but the store.
            Phase::Capturing | Phase::Starting(_) | Phase::Ended { .. } | Phase::Over => {}
        }
        self.end_survivors_of(turn);
        true
    }

    /// Remembers what a command left running: it ends with its turn's cancel, the session or the daemon.
    pub(super) fn survived(&mut self, turn: &TurnId, left: Vec<Survivor>) {
        self.survivors.extend(left.into_iter().map(|left| (turn.clone(), left)));
        let excess = self.survivors.len().saturating_sub(MAX_SURVIVORS);
        let oldest = self.survivors.drain(..excess).map(|(_, left)| left).collect();
        self.tasks.spawn(bash::end_survivors(oldest));
    }

    fn end_survivors_of(&mut self, turn: &TurnId) {
        let mine = self.survivors.extract_if(.., |(started, _)| started == turn).map(|(_, left)| left);
        self.tasks.spawn(bash::end_survivors(mine.collect()));
    }

    pub(super) fn owner_gone(&mut self, turn: &TurnId) {
        self.owners.remove(turn);
        if self.cancel(turn) {
            tracing::info!(session = %self.id, %turn, "its client has gone: cancelled");
        }
    }

    /// The write that settles an ended turn.
    pub(super) fn end_of(&self, turn: &TurnId) -> Write {
        Write::RemoveTurn { session: self.row.uid, turn: turn.as_str().to_owned() }
    }

    /// A turn has its end: the session is free before anybody hears of it.
    pub(super) fn turn_over(&mut self, waiting: &Waiting) {
        let turn = waiting.entries.first().map(|entry| entry.turn.clone()).unwrap_or_default();
        self.guidance.turn_over(&turn);
        self.stop_watching(&TurnId::from_text(&turn));
        if self.running.as_ref().is_some_and(|running| running.row.turn == turn) {
            self.running = None;
            self.next_fence();
            self.log.withdraw_text();
        }
    }

    pub(super) fn stop_watching(&mut self, turn: &TurnId) {
        if let Some(watch) = self.owners.remove(turn) {
            watch.abort();
        }
    }

    /// Adds what a turn used to the session's counters, in the commit that ends it (contract 6.8).
    pub(super) fn count(&mut self, totals: &Totals) {
        self.row.llm_rounds += totals.rounds;
        self.row.execution_steps += totals.steps;
        self.row.input_tokens += totals.input;
        self.row.total_input_tokens += totals.total_input;
        self.row.cached_input_tokens += totals.cached;
        self.row.output_tokens += totals.output;
        self.row.output_elapsed_ms += totals.elapsed_us / 1000;
    }

    pub(super) fn turns(&self) -> Vec<TurnInfo> {
        let info = |row: &TurnRow, running| TurnInfo { turn: TurnId::from_text(&row.turn), running };
        let running = self.running.iter().map(|running| info(&running.row, true));
        running.chain(self.queue.iter().map(|pending| info(&pending.row, false))).collect()
    }

    /// Ends everything and takes nothing new; answers when nothing is left to do (contract 4.6).
    pub(super) fn drain(&mut self, reply: RpcReplyPort<()>) {
        self.stopping = true;
        self.draining.push(reply);
        for info in self.turns() {
            self.cancel(&info.turn);
        }
        self.flush();
        self.settle_requests();
    }

    /// Answers those who wait for the session to be idle.
    pub(super) fn settle_requests(&mut self) {
        if self.running.is_some() || !self.queue.is_empty() || !self.is_settled() {
            return;
        }
        for reply in self.draining.drain(..) {
            answer(reply, ());
        }
        self.delete_when_idle();
    }

    /// What a failed start means.
    pub(super) fn start_denied(&mut self, turn: &TurnId, error: &WireError) {
        if self.running.as_ref().is_some_and(|running| running.turn == *turn) {
            self.start_failed(&TurnFailure { code: error.code, message: error.message.clone() });
        }
    }
}
