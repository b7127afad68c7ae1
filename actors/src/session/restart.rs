//! What becomes of a turn whose actor ended before the turn did: again after 250 ms, 1 s and 5 s, then its
//! end is recorded, by an actor that closes it if there can be one.

use std::time::Duration;

use ractor::{ActorId, SupervisionEvent};
use seekclaw_protocol::event::WorkflowKind;
use seekclaw_storage::record::log::{Body, Finished, Notice, Returned};

use super::commit::Waiter;
use super::run::Phase;
use super::{Live, SessionMsg, record};
use crate::supervision::{Backoff, RESTART_DELAYS, Verdict, tell};
use crate::turn::{LABEL_CANCELLED, LABEL_FAILED, Order, TurnFailure};

impl Live {
    /// The turn's actor ended: as it should, or by a failure, a panic or a kill. Told to ourselves, since
    /// what it said before it ended is still in our mailbox, and events overtake messages.
    pub(super) fn turn_event(&self, event: SupervisionEvent) {
        let (cell, failure) = match event {
            SupervisionEvent::ActorFailed(cell, error) => (cell, TurnFailure::of(error.as_ref())),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                (cell, TurnFailure::internal(reason.unwrap_or_else(|| "it ended early".to_owned())))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => return,
        };
        tell(&self.me, SessionMsg::TurnEnded(cell.get_id(), failure));
    }

    pub(super) fn turn_ended(&mut self, id: ActorId, failure: TurnFailure) {
        let Some(running) = self.running.as_mut() else { return };
        if let Phase::Up { actor, since } = &running.phase
            && actor.get_id() == id
        {
            running.phase = Phase::Ended { failure, uptime: since.elapsed() };
            self.judge();
        }
    }

    /// Judges an ended turn once its last records are stored or lost: what is stored is not withdrawn.
    pub(super) fn judge(&mut self) {
        if self.commits.has_turn_waiting() {
            return;
        }
        let Some(running) = self.running.as_ref() else { return };
        if let Phase::Ended { failure, uptime } = &running.phase {
            let (failure, uptime) = (failure.clone(), *uptime);
            self.turn_failed(&failure, uptime);
        }
    }

    /// The one place where a failed turn is restarted or given up.
    pub(super) fn turn_failed(&mut self, failure: &TurnFailure, uptime: Duration) {
        let Some(running) = self.running.as_mut() else { return };
        running.phase = Phase::Waiting;
        tracing::warn!(session = %self.id, turn = %running.turn, error = %failure, "a turn failed");
        let verdict = running.backoff.failed(uptime);
        let runs = matches!(running.order, Order::Run);
        self.next_fence();
        match verdict {
            Verdict::Restart { delay, attempt } if runs => {
                self.announce_retry(failure, attempt, delay);
                self.restart_after(delay, attempt);
            }
            // It only has to end: what streamed is kept, and nobody needs to hear of another try.
            Verdict::Restart { attempt, .. } => self.restart_after(Duration::ZERO, attempt),
            Verdict::GiveUp if runs => {
                if let Some(running) = self.running.as_mut() {
                    running.order = Order::Close { failure: failure.clone(), marked: false };
                    running.backoff = Backoff::default();
                }
                self.record_start();
            }
            Verdict::GiveUp => self.close_without_turn(failure),
        }
    }

    fn restart_after(&mut self, delay: Duration, attempt: u32) {
        if let Some(running) = self.running.as_mut() {
            running.restarts = attempt;
        }
        let fence = self.fence;
        self.me.send_after(delay, move || SessionMsg::Restart(fence));
    }

    fn announce_retry(&mut self, failure: &TurnFailure, attempt: u32, delay: Duration) {
        let Some(running) = self.running.as_ref() else { return };
        let streamed = self.log.streamed();
        self.log.withdraw_text();
        let chars = streamed.text.chars().count() + streamed.thinking.chars().count();
        let notice = Notice::Retry {
            line: format!("{failure}; trying again in {} s", delay.as_secs_f64()),
            attempt,
            of: u32::try_from(RESTART_DELAYS.len()).unwrap_or(u32::MAX),
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            reason: failure.message.clone(),
            code: failure.code.as_str().to_owned(),
            from_seq: streamed.marks.first().map_or(0, |mark| mark.seq),
            to_seq: streamed.marks.last().map_or(0, |mark| mark.seq),
            chars: u64::try_from(chars).unwrap_or(u64::MAX),
        };
        self.log.publish(self.fence, &running.turn, notice);
    }

    /// The wait is over, if it is still the one that counts.
    pub(super) fn restart(&mut self, fence: u64) {
        let waits = |phase: &Phase| matches!(phase, Phase::Waiting);
        if fence == self.fence && self.running.as_ref().is_some_and(|running| waits(&running.phase)) {
            self.record_start();
        }
    }

    /// A step was completed: its failures no longer count.
    pub(super) fn progressed(&mut self) {
        if let Some(running) = self.running.as_mut() {
            running.backoff.progressed();
            running.restarts = 0;
        }
    }

    /// The turn could not even be closed in good order: its end is said without it.
    pub(super) fn close_without_turn(&mut self, failure: &TurnFailure) {
        let Some(running) = self.running.as_mut() else { return };
        running.phase = Phase::Over;
        let (turn, started) = (running.turn.clone(), running.starts > 0);
        let cancelled = !started && matches!(running.order, Order::Cancel);
        let (label, finished) = if cancelled {
            (LABEL_CANCELLED, Finished::Cancelled { text: String::new() })
        } else {
            (LABEL_FAILED, failure.finished())
        };
        let mut bodies = Vec::new();
        if !started {
            // The prompt enters the history with the first start, and there will be none.
            bodies.push(Body::Returned(Returned { unanswered: !cancelled, reason: failure.message.clone() }));
        }
        bodies.extend(self.guidance.leftover(&turn));
        bodies.push(Body::Notice(record::workflow(0, WorkflowKind::Error, label)));
        bodies.push(Body::Finished(finished));
        let settle = self.end_of(&turn);
        self.record(&turn, bodies, vec![settle], Waiter::Nobody);
    }
}
