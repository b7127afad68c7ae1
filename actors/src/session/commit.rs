//! One commit at a time per session: what arrives meanwhile shares the next one.

use std::time::Duration;

use ractor::{ActorRef, RpcReplyPort};
use seekclaw_protocol::{ErrorCode, TurnId, WireError};
use seekclaw_storage::record::log::{AnswerEnd, Body, Entry};
use seekclaw_storage::record::session::SessionRow;
use seekclaw_storage::store::{Failure, Write, WriteError};

use super::change::Change;
use super::log::{SEQ_RESERVE, now};
use super::prompt::Accepted;
use super::run::Phase;
use super::{Commit, Live, SessionMsg};
use crate::history::fold::messages_added;
use crate::supervision::{answer, tell};
use crate::turn::{TurnFailure, TurnMsg};

/// How long what a failed commit left behind waits for another try, if nobody commits before.
const STORE_AGAIN: Duration = Duration::from_secs(5);

/// Who waits for a commit.
pub(super) enum Waiter {
    Turn(ActorRef<TurnMsg>, u64),
    Prompt(TurnId, RpcReplyPort<Result<Accepted, WireError>>, Box<Accepted>, Change),
    Guidance(RpcReplyPort<Result<(), WireError>>),
    Change(RpcReplyPort<Result<SessionRow, WireError>>, Change),
    /// The messages that are left, and those that were there before.
    Truncate(RpcReplyPort<Result<u64, WireError>>, u64, u64),
    /// A turn's start is recorded.
    Started(TurnId),
    Delete,
    Nobody,
}

/// Entries with the one who waits for them.
pub(super) struct Waiting {
    pub(super) entries: Vec<Entry>,
    pub(super) waiter: Waiter,
}

/// What the store has been given and what comes next.
#[derive(Default)]
pub(super) struct Pipeline {
    pending: Vec<Waiting>,
    writes: Vec<Write>,
    flight: Option<Flight>,
    /// Another try after a failed commit is on its way.
    trying_again: bool,
}

impl Pipeline {
    /// Whether a turn waits for one of its records.
    pub(super) fn has_turn_waiting(&self) -> bool {
        let flight = self.flight.iter().flat_map(|flight| &flight.waiting);
        flight.chain(&self.pending).any(|waiting| matches!(waiting.waiter, Waiter::Turn(..)))
    }

    /// What those who wait for the next commit want to change.
    pub(super) fn changes(&self) -> impl Iterator<Item = &Change> {
        self.pending.iter().filter_map(|waiting| match &waiting.waiter {
            Waiter::Prompt(.., change) | Waiter::Change(_, change) => Some(change),
            Waiter::Turn(..)
            | Waiter::Guidance(_)
            | Waiter::Truncate(..)
            | Waiter::Started(_)
            | Waiter::Delete
            | Waiter::Nobody => None,
        })
    }
}

impl Waiting {
    /// Whether it ends a turn: then it stays, even if it cannot be stored now.
    fn ends(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.body, Body::Finished(_)))
    }
}

struct Flight {
    covered: u64,
    entries: Vec<Entry>,
    row: SessionRow,
    waiting: Vec<Waiting>,
    /// Writes that must be repeated if this commit fails.
    settle: Vec<Write>,
}

impl Live {
    /// A turn's own records; those of a replaced incarnation are dropped.
    pub(super) fn commit(&mut self, commit: Commit, from: ActorRef<TurnMsg>) {
        if commit.fence != self.fence {
            tracing::debug!(turn = %commit.turn, "records of a replaced turn: dropped");
            return;
        }
        let finished = commit.bodies.iter().any(|body| matches!(body, Body::Finished(_)));
        if let Some(totals) = &commit.totals {
            self.count(totals);
        }
        let mut writes = Vec::new();
        if let Some(guidance) = &commit.guidance {
            writes = self.image_writes(&guidance.images);
        }
        if finished {
            writes.push(self.end_of(&commit.turn));
            if let Some(running) = self.running.as_mut() {
                running.phase = Phase::Over;
            }
        }
        self.record(&commit.turn, commit.bodies, writes, Waiter::Turn(from, commit.ticket));
    }

    /// Appends `bodies`, to be stored together with `writes`; `waiter` hears of it.
    pub(super) fn record(&mut self, turn: &TurnId, bodies: Vec<Body>, writes: Vec<Write>, waiter: Waiter) {
        self.row.messages += bodies.iter().map(messages_added).sum::<u64>();
        // Cutting the history does not move the session in its list (contract 2.12).
        if bodies.iter().any(|body| !matches!(body, Body::Truncated(_))) {
            self.touch();
        }
        let entries = self.log.append(turn, bodies);
        self.guidance.appended(&entries);
        self.commits.pending.push(Waiting { entries, waiter });
        self.commits.writes.extend(writes);
        self.flush();
    }

    /// The session changed: it moves to the top of its list.
    pub(super) fn touch(&mut self) {
        self.row.updated_at = now().0.max(self.row.updated_at + 1);
    }

    /// Starts the next commit, unless one is in flight or nothing waits.
    pub(super) fn flush(&mut self) {
        if self.commits.flight.is_some()
            || (self.commits.pending.is_empty() && self.commits.writes.is_empty())
        {
            return;
        }
        let deleting = self.commits.pending.iter().any(|waiting| matches!(waiting.waiter, Waiter::Delete));
        let (entries, covered) = self.log.take_unstored();
        self.row.generation = self.log.generation();
        self.row.seq_reserved = covered + 1 + SEQ_RESERVE;
        let mut writes = Vec::with_capacity(self.commits.writes.len() + 2);
        if !deleting {
            writes.push(Write::PutSession(self.row.clone()));
            writes.push(Write::Append { session: self.row.uid, entries: entries.clone() });
        }
        let extra = std::mem::take(&mut self.commits.writes);
        let settle =
            extra.iter().filter(|write| matches!(write, Write::RemoveTurn { .. })).cloned().collect();
        writes.extend(extra);
        let waiting = std::mem::take(&mut self.commits.pending);
        self.commits.flight = Some(Flight { covered, entries, row: self.row.clone(), waiting, settle });
        let me = self.me.clone();
        self.services
            .store
            .write(writes, Box::new(move |result| tell(&me, SessionMsg::Stored(result.map(|_| ())))));
    }

    /// The commit in flight ended: first the session is put in order, then watchers see it, then those
    /// who waited hear it, so that whoever reads a terminal event may send the next prompt at once.
    pub(super) fn stored(&mut self, result: Result<(), WriteError>) {
        let Some(flight) = self.commits.flight.take() else { return };
        match result {
            Ok(()) => self.succeeded(flight),
            Err(error) => self.failed(flight, &error),
        }
        self.judge();
        self.start_next();
        if self.running.is_none() {
            self.log.rest();
        }
        self.flush_entries();
        self.settle_requests();
    }

    fn succeeded(&mut self, flight: Flight) {
        for waiting in &flight.waiting {
            self.guidance.stored(&waiting.entries);
            if waiting.ends() {
                self.turn_over(waiting);
            }
        }
        self.stored_row = flight.row;
        self.log.committed(flight.covered);
        flight.waiting.into_iter().for_each(|waiting| self.granted(waiting));
    }

    fn failed(&mut self, flight: Flight, error: &WriteError) {
        tracing::warn!(session = %self.id, %error, "a commit failed");
        let wire = storage_error(error);
        for waiting in &flight.waiting {
            if waiting.ends() {
                self.turn_over(waiting);
            } else {
                self.guidance.lost(&waiting.entries, &wire);
            }
        }
        self.restore_fields();
        self.log.failed(flight.covered, flight.entries);
        self.commits.writes.extend(flight.settle);
        self.try_again_later();
        flight.waiting.into_iter().for_each(|waiting| self.denied(waiting, &wire));
    }

    /// The end of a turn that was shown must not wait for the next prompt to be stored.
    fn try_again_later(&mut self) {
        if !self.commits.writes.is_empty() && !self.commits.trying_again {
            self.commits.trying_again = true;
            self.me.send_after(STORE_AGAIN, || SessionMsg::StoreAgain);
        }
    }

    pub(super) fn store_again(&mut self) {
        self.commits.trying_again = false;
        self.flush();
    }

    /// Stores what is pending; writes left over from a failed commit wait for the next occasion.
    fn flush_entries(&mut self) {
        if !self.commits.pending.is_empty() {
            self.flush();
        }
    }

    fn granted(&mut self, waiting: Waiting) {
        match waiting.waiter {
            Waiter::Turn(turn, ticket) => {
                if waiting.entries.iter().any(|entry| completes_step(&entry.body)) {
                    self.progressed();
                }
                tell(&turn, TurnMsg::Committed(ticket, Ok(waiting.entries)));
            }
            Waiter::Prompt(turn, reply, accepted, _) => {
                self.confirm(&turn);
                answer(reply, Ok(*accepted));
            }
            Waiter::Guidance(reply) => answer(reply, Ok(())),
            Waiter::Change(reply, _) => answer(reply, Ok(self.stored_row.clone())),
            Waiter::Truncate(reply, left, _) => answer(reply, Ok(left)),
            Waiter::Started(turn) => self.spawn_turn(&turn),
            Waiter::Delete => self.deleted(Ok(())),
            Waiter::Nobody => {}
        }
    }

    fn denied(&mut self, waiting: Waiting, wire: &WireError) {
        if !waiting.ends() {
            let added: u64 = waiting.entries.iter().map(|entry| messages_added(&entry.body)).sum();
            self.row.messages = self.row.messages.saturating_sub(added);
        }
        let wire = wire.clone();
        match waiting.waiter {
            Waiter::Turn(turn, ticket) => {
                let failure = TurnFailure { code: wire.code, message: wire.message };
                tell(&turn, TurnMsg::Committed(ticket, Err(failure)));
            }
            Waiter::Prompt(turn, reply, ..) => {
                self.queue.retain(|pending| pending.turn != turn);
                self.stop_watching(&turn);
                answer(reply, Err(wire));
            }
            Waiter::Guidance(reply) => answer(reply, Err(wire)),
            Waiter::Change(reply, _) => answer(reply, Err(wire)),
            Waiter::Truncate(reply, left, before) => {
                self.row.messages = self.row.messages + before - left;
                answer(reply, Err(wire));
            }
            Waiter::Started(turn) => self.start_denied(&turn, &wire),
            Waiter::Delete => self.deleted(Err(wire)),
            Waiter::Nobody => {}
        }
    }

    /// Whether nothing waits for the store.
    pub(super) fn is_settled(&self) -> bool {
        self.commits.flight.is_none() && self.commits.pending.is_empty()
    }
}

/// A step that the model completed, with or without calls, is what a turn must not repeat.
fn completes_step(body: &Body) -> bool {
    matches!(body, Body::Answer(answer) if matches!(answer.end, AnswerEnd::Complete | AnswerEnd::Capped))
}

/// What a client hears when the store could not do it.
pub(crate) fn storage_error(error: &WriteError) -> WireError {
    let code = match error {
        WriteError::Busy => ErrorCode::Overloaded,
        WriteError::Failed(Failure::Full { .. }) => ErrorCode::StorageFull,
        WriteError::Failed(Failure::Damaged { .. }) => ErrorCode::StorageCorrupt,
        WriteError::Failed(Failure::Closed) => ErrorCode::ShuttingDown,
        WriteError::Failed(Failure::Io { .. } | Failure::Defect { .. }) | WriteError::Invalid(_) => {
            ErrorCode::Internal
        }
    };
    WireError::new(code, format!("Cannot store this: {error}"))
}
