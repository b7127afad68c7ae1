//! What is asked of the writer, and what it answers.

use std::fmt;
use std::time::Duration;

use crate::codec::CodecError;
use crate::record::log::Entry;
use crate::record::session::{SessionKey, SessionRow};
use crate::record::turn::TurnRow;

use super::failure::Failure;

/// One change of the store.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// Makes or replaces a session's row and moves it in the index by time.
    PutSession(SessionRow),
    /// Removes a session with its log, turns and images; nothing if there is no such session.
    DeleteSession(SessionKey),
    /// Adds to the log of a session; sequence numbers rise.
    Append {
        /// The session's uid.
        session: u64,
        /// The entries, in order.
        entries: Vec<Entry>,
    },
    /// Makes or replaces the row of an open turn.
    PutTurn(TurnRow),
    /// Removes the row of a turn; nothing if there is none.
    RemoveTurn {
        /// The session's uid.
        session: u64,
        /// Turn id.
        turn: String,
    },
    /// Keeps an image of a session.
    PutImage {
        /// The session's uid.
        session: u64,
        /// Image id.
        id: String,
        /// The decoded image.
        bytes: Vec<u8>,
    },
    /// Keeps a value under a name that does not start with `store.`.
    PutMeta {
        /// The name.
        key: String,
        /// The value.
        value: Vec<u8>,
    },
}

/// Called once, on the writer's thread: it must not block.
pub type Done = Box<dyn FnOnce(Result<Committed, WriteError>) + Send>;

/// Writes that happen together or not at all. Without writes it is a mark: everything submitted before
/// it is settled when it is answered.
pub struct Batch {
    /// The changes, in order.
    pub writes: Vec<Write>,
    /// Who is told how it went.
    pub done: Done,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("writes", &self.writes.len()).finish_non_exhaustive()
    }
}

/// The batch is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Number of the commit; batches that shared it have the same.
    pub commit: u64,
    /// How long the commit took, from the first write to the end of the sync.
    pub took: Duration,
}

/// Why a batch was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Too much is waiting for the store; try again.
    #[error("too much is waiting for the store")]
    Busy,
    /// The batch contradicts the store; others are not affected.
    #[error("invalid write: {0}")]
    Invalid(#[from] InvalidWrite),
    /// The commit that it was part of failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// What is wrong with a write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidWrite {
    /// It has no stored form.
    #[error("{what} cannot be encoded: {source}")]
    Record {
        /// Which record.
        what: &'static str,
        /// Why.
        source: CodecError,
    },
    /// A key that could not be found again.
    #[error("{what} is empty or contains a zero character")]
    Key {
        /// Which part.
        what: &'static str,
    },
    /// There is no session with this uid, or it was deleted.
    #[error("no session with uid {session:016x}")]
    UnknownSession {
        /// The uid.
        session: u64,
    },
    /// Another session has this scope and id.
    #[error("session {id} exists already")]
    SessionExists {
        /// Its id.
        id: String,
    },
    /// A session does not change its scope or id.
    #[error("session with uid {session:016x} has another key")]
    KeyChanged {
        /// The uid.
        session: u64,
    },
    /// A sequence number is used up or out of order.
    #[error("sequence number {seq} of session {session:016x} does not follow {last}")]
    Sequence {
        /// The uid.
        session: u64,
        /// The last number before it.
        last: u64,
        /// The number.
        seq: u64,
    },
    /// The name belongs to the store itself.
    #[error("the name {key} is reserved")]
    ReservedName {
        /// The name.
        key: String,
    },
}
