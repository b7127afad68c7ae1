//! Requests that change or remove the session itself.

use ractor::RpcReplyPort;
use seekclaw_protocol::{ErrorCode, ReasoningLevel, TurnId, WireError};
use seekclaw_storage::record::log::{Body, Truncated};
use seekclaw_storage::record::session::SessionRow;
use seekclaw_storage::store::Write;

use super::Live;
use super::commit::Waiter;
use crate::supervision::answer;

/// What changes; absent fields stay.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// `Some("")` clears it.
    pub(crate) title: Option<String>,
    pub(crate) reasoning: Option<ReasoningLevel>,
    pub(crate) network: Option<bool>,
    pub(crate) archived: Option<bool>,
}

impl Change {
    pub(super) fn apply_to(&self, row: &mut SessionRow) {
        if let Some(title) = &self.title {
            row.title.clone_from(title);
        }
        row.reasoning = self.reasoning.unwrap_or(row.reasoning);
        row.network = self.network.unwrap_or(row.network);
        row.archived = self.archived.unwrap_or(row.archived);
    }
}

impl Live {
    pub(super) fn change(&mut self, change: Change, reply: RpcReplyPort<Result<SessionRow, WireError>>) {
        if self.deleting.is_some() {
            return answer(reply, Err(self.not_found()));
        }
        change.apply_to(&mut self.row);
        self.touch();
        self.record(&TurnId::from_text(""), Vec::new(), Vec::new(), Waiter::Change(reply, change));
    }

    /// The fields as they are stored and as those want them whose commit comes next, after one that failed.
    pub(super) fn restore_fields(&mut self) {
        let stored = &self.stored_row;
        self.row.title.clone_from(&stored.title);
        self.row.reasoning = stored.reasoning;
        self.row.network = stored.network;
        self.row.archived = stored.archived;
        self.commits.changes().for_each(|change| change.apply_to(&mut self.row));
    }

    /// Cuts the history; a running turn would add to what is being cut, so that is refused.
    pub(super) fn truncate(&mut self, keep: u64, reply: RpcReplyPort<Result<u64, WireError>>) {
        if self.deleting.is_some() {
            return answer(reply, Err(self.not_found()));
        }
        if self.running.is_some() || !self.queue.is_empty() {
            let text = format!("Session {} is busy: cancel its turn first", self.id);
            return answer(reply, Err(WireError::new(ErrorCode::SessionBusy, text)));
        }
        if keep >= self.row.messages {
            return answer(reply, Ok(self.row.messages));
        }
        let waiter = Waiter::Truncate(reply, keep, self.row.messages);
        self.row.messages = keep;
        let body = Body::Truncated(Truncated { keep });
        self.record(&TurnId::from_text(""), vec![body], Vec::new(), waiter);
    }

    /// Removes the session once its turns have ended.
    pub(super) fn delete(&mut self, reply: RpcReplyPort<Result<(), WireError>>) {
        if self.deleting.is_some() {
            return answer(reply, Err(self.not_found()));
        }
        self.deleting = Some(reply);
        for info in self.turns() {
            self.cancel(&info.turn);
        }
        self.settle_requests();
    }

    pub(super) fn delete_when_idle(&mut self) {
        if self.deleting.is_some() {
            let write = Write::DeleteSession(self.row.key.clone());
            self.record(&TurnId::from_text(""), Vec::new(), vec![write], Waiter::Delete);
        }
    }

    /// Gone, or not: then the session lives on.
    pub(super) fn deleted(&mut self, result: Result<(), WireError>) {
        let Some(reply) = self.deleting.take() else { return };
        let gone = result.is_ok();
        answer(reply, result);
        if gone {
            self.me.stop(Some("deleted".to_owned()));
        }
    }

    fn not_found(&self) -> WireError {
        WireError::new(ErrorCode::NotFound, format!("Session not found: {}", self.id))
    }
}
