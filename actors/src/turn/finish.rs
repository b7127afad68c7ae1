//! How a turn ends: done, cancelled or failed, each as one commit with one terminal event.

use seekclaw_protocol::event::WorkflowKind;
use seekclaw_storage::record::log::{Answer, AnswerEnd, Body, Finished, Notice, Outcome};

use super::state::DoneBecause;
use super::{After, CANCEL_GRACE, Order, State, TurnFailure, TurnMsg, Work};
use crate::history::fold::INTERRUPTED;
use crate::provider::ProviderError;
use crate::session::{applied, record};
use crate::supervision::{Tasks, tell};

/// Label of the closing node of a turn that is done (contract 3.2).
const LABEL_DONE: &str = "任务完成";
/// Label of the closing node of a failed turn (contract 3.2).
pub(crate) const LABEL_FAILED: &str = "任务失败";
/// Label of the closing node of a cancelled turn (ruling 36).
pub(crate) const LABEL_CANCELLED: &str = "已取消";

/// An end that is decided.
pub(super) struct End {
    kind: WorkflowKind,
    label: &'static str,
    finished: Finished,
}

impl State {
    /// Ends as done; a limit that ended it is said first.
    pub(super) fn end_done(&mut self, because: DoneBecause) {
        let warning = match because {
            DoneBecause::Complete => None,
            DoneBecause::StepLimit => Some(("The turn used up its steps and stopped here.", "step_limit")),
            DoneBecause::OutputCap => {
                Some(("The answer hit the output limit too often in a row.", "output_cap"))
            }
        };
        if let Some((text, code)) = warning {
            self.publish(Notice::Warning { text: text.to_owned(), code: code.to_owned() });
        }
        self.end(WorkflowKind::Done, LABEL_DONE, self.turn.done());
    }

    /// Ends as failed: the providers said all they have to say.
    pub(super) fn end_failed(&mut self, error: &ProviderError) {
        let wait = error.retry_after.map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
        let finished = Finished::Failed {
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
            retry_after_ms: wait,
        };
        self.end(WorkflowKind::Error, LABEL_FAILED, finished);
    }

    /// Somebody wants the turn to end: a stream is dropped at once, tools get a moment to end politely.
    pub(super) fn cancel(&mut self) {
        if self.order != Order::Run || self.work == Work::Ending {
            return;
        }
        self.order = Order::Cancel;
        self.cancel.cancel();
        match self.work {
            Work::Idle => self.advance(),
            Work::Loading | Work::Committing | Work::Ending => {}
            Work::Asking | Work::Calling(_) | Work::Checking => {
                let me = self.me.clone();
                self.tasks.spawn(async move {
                    tokio::time::sleep(CANCEL_GRACE).await;
                    tell(&me, TurnMsg::Grace);
                });
            }
        }
    }

    /// What has not ended by now is dropped; calls with an intent become uncertain.
    pub(super) fn grace(&mut self) {
        if self.cancelled() && matches!(self.work, Work::Asking | Work::Calling(_) | Work::Checking) {
            tracing::warn!(turn = %self.args.turn, work = ?self.work, "cancelled work did not end in time");
            self.tasks = Tasks::default();
            (self.work, self.dropped) = (Work::Committing, true);
            self.dropped_work_settled();
        }
    }

    /// Goes on once the last records of dropped work are stored.
    pub(super) fn dropped_work_settled(&mut self) {
        if self.dropped && self.tickets.is_empty() {
            self.dropped = false;
            self.idle();
        }
    }

    /// Ends as failed, from outside: what streamed is kept, unknown effects are said.
    pub(super) fn end_closed(&mut self, failure: &TurnFailure, marked: bool) {
        let interrupted = AnswerEnd::Interrupted;
        if self.settle_uncertain() || self.keep_streamed(interrupted) {
            return;
        }
        if marked && self.turn.last != Some(interrupted) {
            let text = format!("{INTERRUPTED} {}", failure.message);
            let mut marker = self.partial(interrupted);
            marker.text = text;
            self.work = Work::Committing;
            return self.commit(vec![Body::Answer(marker)], After::Advance);
        }
        self.end(WorkflowKind::Error, LABEL_FAILED, failure.finished());
    }

    /// Ends as cancelled: what streamed is kept, leftover guidance is shown (contract 4.4, 4.5).
    pub(super) fn end_cancelled(&mut self) {
        if self.settle_uncertain() || self.keep_streamed(AnswerEnd::Cancelled) {
            return;
        }
        let text = self.turn.text.clone();
        self.end(WorkflowKind::Error, LABEL_CANCELLED, Finished::Cancelled { text });
    }

    /// Records calls with an unknown effect as such, if there are any.
    fn settle_uncertain(&mut self) -> bool {
        let uncertain = self.turn.uncertain();
        let some = !uncertain.is_empty();
        if some {
            self.settle(uncertain.into_iter().map(|call| (call, Outcome::Uncertain)).collect());
        }
        some
    }

    /// Records what had streamed of an unfinished answer, if anything had.
    fn keep_streamed(&mut self, end: AnswerEnd) -> bool {
        let partial = self.partial(end);
        let some = !partial.marks.is_empty();
        if some {
            self.work = Work::Committing;
            self.commit(vec![Body::Answer(partial)], After::Advance);
        }
        some
    }

    fn partial(&self, end: AnswerEnd) -> Answer {
        let streamed = self.args.log.streamed();
        Answer {
            step: self.turn.step,
            model: self.asked_model.clone(),
            thinking: streamed.thinking,
            text: streamed.text,
            marks: streamed.marks,
            calls: Vec::new(),
            viewed: Vec::new(),
            end,
        }
    }

    fn end(&mut self, kind: WorkflowKind, label: &'static str, finished: Finished) {
        self.work = Work::Ending;
        self.end = Some(End { kind, label, finished });
        self.end_once_answered();
    }

    /// Guidance that is being stored was accepted: the end waits for it, so that it is shown, too.
    pub(super) fn end_once_answered(&mut self) {
        if self.steers_in_flight > 0 {
            return;
        }
        let Some(End { kind, label, finished }) = self.end.take() else { return };
        let mut bodies: Vec<Body> = self.turn.guidance.iter().map(applied).map(Body::Applied).collect();
        bodies.push(Body::Notice(record::workflow(self.turn.step, kind, label)));
        bodies.push(Body::Finished(finished));
        self.commit(bodies, After::Ended);
    }
}
