//! Where a turn stands, as a fold of its log entries, and what follows from that. Pure: a restarted turn
//! folds the same entries and so goes on at the first thing missing.

use std::collections::VecDeque;

use seekclaw_storage::record::log::{
    Answer, AnswerEnd, Body, Call, CallResult, Entry, Finished, Guidance, Notice, Outcome,
};

/// A call of the last answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallState {
    /// The call.
    pub(crate) call: Call,
    /// Its effect may have happened.
    pub(crate) intent: bool,
    /// Its result is recorded.
    pub(crate) settled: bool,
}

/// Sums of a turn, added to the session's counters when it ends (contract 6.8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) rounds: u64,
    pub(crate) steps: u64,
    pub(crate) input: u64,
    pub(crate) total_input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) elapsed_us: u64,
}

/// What the log says about a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnState {
    /// Highest step that began.
    pub(crate) step: u32,
    /// Answers so far.
    pub(crate) answers: u32,
    /// Calls of the last answer.
    pub(crate) calls: Vec<CallState>,
    /// Why the last answer ended, until something follows it.
    pub(crate) last: Option<AnswerEnd>,
    /// Whether the last answer had text.
    pub(crate) last_had_text: bool,
    /// Guidance accepted and not applied, in order.
    pub(crate) guidance: VecDeque<Guidance>,
    /// Capped answers in a row.
    pub(crate) continuations: u32,
    /// Last text that was not empty.
    pub(crate) text: String,
    /// A mutating call succeeded since the last check.
    pub(crate) unchecked: bool,
    /// Repairs so far.
    pub(crate) repairs: u32,
    /// Sums.
    pub(crate) totals: Totals,
    /// The end is recorded.
    pub(crate) finished: bool,
}

/// Bounds of a turn (contract 5.1, 5.6, 5.7).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) max_answers: u32,
    pub(crate) max_continuations: u32,
    pub(crate) max_repairs: u32,
    pub(crate) verify: bool,
}

/// Why a turn is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoneBecause {
    /// The model has nothing to add.
    Complete,
    /// All steps are used up.
    StepLimit,
    /// Too many capped answers in a row.
    OutputCap,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Record results of calls that must not run.
    Settle(Vec<(Call, Outcome)>),
    /// Run these calls at once.
    Run(Vec<Call>),
    /// Make this guidance part of the conversation.
    Apply(Vec<Guidance>),
    /// Ask the model; after a capped answer, with or without text.
    Ask { after_cap: Option<bool> },
    /// Check the work.
    Verify,
    /// End as done.
    Finish(DoneBecause),
}

impl TurnState {
    /// Takes the next entry of this turn.
    pub(crate) fn apply(&mut self, entry: &Entry, is_mutating: impl Fn(&str) -> bool) {
        match &entry.body {
            Body::Guidance(guidance) => self.guidance.push_back(guidance.clone()),
            Body::Applied(applied) => {
                self.guidance.retain(|waiting| waiting.id != applied.guidance);
                self.last = None;
            }
            Body::Answer(answer) => self.answer(answer),
            Body::Intent(intent) => {
                if let Some(call) = self.calls.iter_mut().find(|state| state.call.id == intent.call) {
                    call.intent = true;
                }
            }
            Body::Result(result) => self.result(result, &is_mutating),
            Body::Note(_) => self.last = None,
            Body::Finished(_) => self.finished = true,
            Body::Notice(notice) => self.notice(notice),
            Body::Prompt(_) | Body::Returned(_) | Body::Started(_) | Body::Truncated(_) => {}
        }
    }

    fn answer(&mut self, answer: &Answer) {
        self.answers += 1;
        self.last = Some(answer.end);
        self.last_had_text = !answer.text.is_empty();
        if self.last_had_text {
            self.text.clone_from(&answer.text);
        }
        self.continuations = if answer.end == AnswerEnd::Capped { self.continuations + 1 } else { 0 };
        let state = |call: &Call| CallState { call: call.clone(), intent: false, settled: false };
        self.calls = answer.calls.iter().map(state).collect();
    }

    fn result(&mut self, result: &CallResult, is_mutating: &impl Fn(&str) -> bool) {
        if let Some(call) = self.calls.iter_mut().find(|state| state.call.id == result.call) {
            call.settled = true;
        }
        if result.outcome == Outcome::Ok && is_mutating(&result.tool) {
            self.unchecked = true;
        }
    }

    fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Workflow { step, .. } => {
                self.step = self.step.max(*step);
                self.totals.steps = u64::from(self.step);
            }
            Notice::ModelStart { .. } => self.totals.rounds += 1,
            Notice::Usage { input, output, total_input, cached, took_us, .. } => {
                self.totals.input += input;
                self.totals.output += output;
                self.totals.total_input += total_input;
                self.totals.cached += cached;
                self.totals.elapsed_us += took_us;
            }
            Notice::Verification { ok, .. } => {
                self.unchecked = false;
                self.repairs += u32::from(!ok);
            }
            Notice::Status { .. }
            | Notice::ImageView(_)
            | Notice::ToolStart { .. }
            | Notice::FileDiff { .. }
            | Notice::Retry { .. }
            | Notice::Warning { .. }
            | Notice::ProviderSwitched { .. }
            | Notice::Recovered { .. } => {}
        }
    }

    /// Calls whose effect may have happened and whose result is unknown.
    pub(crate) fn uncertain(&self) -> Vec<Call> {
        let open = |state: &&CallState| state.intent && !state.settled;
        self.calls.iter().filter(open).map(|state| state.call.clone()).collect()
    }

    /// What follows, given that nothing of this turn is running.
    pub(crate) fn next(&self, bounds: Bounds, is_mutating: impl Fn(&str) -> bool) -> Next {
        let uncertain = self.uncertain();
        if !uncertain.is_empty() {
            return Next::Settle(uncertain.into_iter().map(|call| (call, Outcome::Uncertain)).collect());
        }
        let open: Vec<Call> =
            self.calls.iter().filter(|state| !state.settled).map(|state| state.call.clone()).collect();
        if !open.is_empty() {
            return self.next_calls(open, is_mutating);
        }
        if !self.guidance.is_empty() {
            return Next::Apply(self.guidance.iter().cloned().collect());
        }
        self.next_step(bounds)
    }

    /// A batch of reading calls runs together; a mutating one runs alone, in its place (contract 3.3).
    fn next_calls(&self, open: Vec<Call>, is_mutating: impl Fn(&str) -> bool) -> Next {
        if self.last == Some(AnswerEnd::Capped) {
            return Next::Settle(open.into_iter().map(|call| (call, Outcome::Cancelled)).collect());
        }
        let mut batch: Vec<Call> = open.iter().take_while(|call| !is_mutating(&call.name)).cloned().collect();
        if batch.is_empty() {
            batch.extend(open.into_iter().next());
        }
        Next::Run(batch)
    }

    fn next_step(&self, bounds: Bounds) -> Next {
        let complete = self.last == Some(AnswerEnd::Complete) && self.calls.is_empty();
        if complete {
            let check = bounds.verify && self.unchecked && self.repairs < bounds.max_repairs;
            return if check { Next::Verify } else { Next::Finish(DoneBecause::Complete) };
        }
        if self.answers >= bounds.max_answers {
            return Next::Finish(DoneBecause::StepLimit);
        }
        if self.last != Some(AnswerEnd::Capped) {
            return Next::Ask { after_cap: None };
        }
        if self.continuations > bounds.max_continuations {
            return Next::Finish(DoneBecause::OutputCap);
        }
        Next::Ask { after_cap: Some(self.last_had_text) }
    }

    /// The record that ends the turn as done.
    pub(crate) fn done(&self) -> Finished {
        Finished::Done { text: self.text.clone() }
    }
}

#[cfg(test)]
mod tests;
