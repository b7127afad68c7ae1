//! What can go wrong below us, sorted by what a caller can do about it.

use std::io;

/// Why the database did not do what it was asked to. Cheap to clone: every waiter gets one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No space; the store goes on by itself when there is some.
    #[error("the disk is full: {message}")]
    Full {
        /// What the system says.
        message: String,
    },
    /// The file could not be read or written; the store tries to open it again.
    #[error("the store cannot be accessed: {message}")]
    Io {
        /// What the system says.
        message: String,
    },
    /// The file is damaged; the store has stopped.
    #[error("the store is damaged: {message}")]
    Damaged {
        /// What is wrong.
        message: String,
    },
    /// A defect of ours.
    #[error("the store failed: {message}")]
    Defect {
        /// What is known.
        message: String,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        if let redb::Error::Io(error) = &error {
            return error.into();
        }
        let message = error.to_string();
        if matches!(error, redb::Error::PreviousIo | redb::Error::DatabaseClosed | redb::Error::Backend(_)) {
            return Self::Io { message };
        }
        let defect = matches!(
            error,
            redb::Error::LockPoisoned(_)
                | redb::Error::TransactionPoisoned
                | redb::Error::TableAlreadyOpen(..)
                | redb::Error::ValueTooLarge(_)
                | redb::Error::WouldBlock
        );
        if defect { Self::Defect { message } } else { Self::Damaged { message } }
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        let message = error.to_string();
        let kind = error.kind();
        if matches!(
            kind,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        ) {
            return Self::Full { message };
        }
        if matches!(kind, io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) {
            return Self::Damaged { message };
        }
        Self::Io { message }
    }
}

macro_rules! through_redb_error {
    ($($name:ident),+) => {
        $(impl From<redb::$name> for Failure {
            fn from(error: redb::$name) -> Self {
                redb::Error::from(error).into()
            }
        })+
    };
}
through_redb_error!(StorageError, TableError, TransactionError, CommitError, DatabaseError);
