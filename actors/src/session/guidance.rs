//! Guidance of open turns: what was accepted and is not part of the conversation yet, and who waits to
//! hear. It makes a repeated hand-over harmless and lets a turn that cannot start any more say what it had.

use ractor::RpcReplyPort;
use seekclaw_protocol::{ErrorCode, TurnId, WireError};
use seekclaw_storage::record::log::{Applied, Body, Entry, Guidance};

use crate::supervision::answer;

/// How the one who guides hears.
pub(super) type GuidanceReply = RpcReplyPort<Result<(), WireError>>;

/// What is known of the guidance of open turns, in order of arrival.
#[derive(Default)]
pub(super) struct GuidanceBook(Vec<Kept>);

struct Kept {
    turn: String,
    guidance: Guidance,
    stored: bool,
    applied: bool,
    /// Those who handed it over again while it was being stored.
    waiting: Vec<GuidanceReply>,
}

impl GuidanceBook {
    /// What the log of a session that was found with open turns says.
    pub(super) fn found(entries: &[Entry]) -> Self {
        let mut book = Self::default();
        book.appended(entries);
        book.stored(entries);
        book
    }

    /// `entries` are on their way to the store.
    pub(super) fn appended(&mut self, entries: &[Entry]) {
        for entry in entries {
            let Body::Guidance(guidance) = &entry.body else { continue };
            self.0.push(Kept {
                turn: entry.turn.clone(),
                guidance: guidance.clone(),
                stored: false,
                applied: false,
                waiting: Vec::new(),
            });
        }
    }

    /// `entries` are in the store.
    pub(super) fn stored(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Body::Guidance(guidance) = &entry.body
                && let Some(kept) = self.find(&guidance.id)
            {
                kept.stored = true;
                kept.waiting.drain(..).for_each(|reply| answer(reply, Ok(())));
            }
            if let Body::Applied(applied) = &entry.body
                && let Some(kept) = self.find(&applied.guidance)
            {
                kept.applied = true;
            }
        }
    }

    /// `entries` could not be stored.
    pub(super) fn lost(&mut self, entries: &[Entry], error: &WireError) {
        for entry in entries {
            let Body::Guidance(guidance) = &entry.body else { continue };
            for kept in self.0.extract_if(.., |kept| kept.guidance.id == guidance.id) {
                kept.waiting.into_iter().for_each(|reply| answer(reply, Err(error.clone())));
            }
        }
    }

    /// Answers somebody who hands over again what was taken already; gives the reply back if it was not.
    pub(super) fn repeated(&mut self, id: &str, reply: GuidanceReply) -> Option<GuidanceReply> {
        let Some(kept) = self.find(id) else { return Some(reply) };
        if kept.stored {
            answer(reply, Ok(()));
        } else {
            kept.waiting.push(reply);
        }
        None
    }

    /// How much guidance of `turn` waits to become part of the conversation.
    pub(super) fn open(&self, turn: &TurnId) -> usize {
        self.of(turn).count()
    }

    /// Records that make what waits for `turn` part of the conversation.
    pub(super) fn leftover(&self, turn: &TurnId) -> Vec<Body> {
        self.of(turn).map(|kept| Body::Applied(applied(&kept.guidance))).collect()
    }

    /// `turn` has its end.
    pub(super) fn turn_over(&mut self, turn: &str) {
        let late = WireError::new(ErrorCode::Conflict, super::prompt::FINISHING);
        for kept in self.0.extract_if(.., |kept| kept.turn == turn) {
            kept.waiting.into_iter().for_each(|reply| answer(reply, Err(late.clone())));
        }
    }

    fn of(&self, turn: &TurnId) -> impl Iterator<Item = &Kept> {
        self.0.iter().filter(move |kept| kept.turn == turn.as_str() && !kept.applied)
    }

    fn find(&mut self, id: &str) -> Option<&mut Kept> {
        self.0.iter_mut().find(|kept| kept.guidance.id == id)
    }
}

/// The record that makes guidance part of the conversation.
pub(crate) fn applied(guidance: &Guidance) -> Applied {
    Applied { guidance: guidance.id.clone(), text: guidance.text.clone() }
}
