//! The database: one thread writes, anybody reads. Nothing is reported as stored before it is synced,
//! and everything that waits shares one sync. All calls block: never make them on an async runtime.

mod apply;
mod batch;
mod check;
mod engine;
mod failure;
mod opening;
mod prepare;
mod reader;
mod rows;
mod shared;
mod tables;
mod writer;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use batch::{Batch, Committed, Done, InvalidWrite, Write, WriteError};
pub use failure::Failure;
pub use reader::{Counts, ReadError, Reader};
pub use shared::Stats;
pub use writer::{CloseError, QUEUE_BATCHES, SubmitError, Writer};

use engine::Engine;
use opening::{FileOpener, Opener};
use shared::Shared;

/// Layout of the tables that this program writes; an older program refuses a newer one.
pub const FORMAT: u32 = 1;

/// redb would take 1 GiB; this keeps the daemon small and still holds the hot pages.
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// How the store is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for cached pages.
    pub cache_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: CACHE_BYTES }
    }
}

/// What opening found.
#[derive(Clone, Debug)]
pub struct OpenReport {
    /// There was no store; this one is new.
    pub created: bool,
    /// The last writer was killed, and the whole file had to be checked.
    pub repaired: bool,
    /// Layout of the tables.
    pub format: u32,
    /// How long it took.
    pub took: Duration,
}

/// Why a store cannot be opened. The file is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no space to work in.
    #[error("no space left for the store {}: {message}", path.display())]
    Full {
        /// The database.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
    /// The file is not a store, or not a whole one.
    #[error("the store {} is damaged: {message}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Another process has it open.
    #[error("the store {} is in use by another process", path.display())]
    Locked {
        /// The database.
        path: PathBuf,
    },
    /// The file may not be read and written.
    #[error("no permission to open the store {}", path.display())]
    Permission {
        /// The database.
        path: PathBuf,
    },
    /// A newer program wrote it.
    #[error("the store {} has format {found}, newer than the {FORMAT} of this program", path.display())]
    NewerFormat {
        /// The database.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Anything else.
    #[error("cannot open the store {}: {message}", path.display())]
    Io {
        /// The database.
        path: PathBuf,
        /// What the system says.
        message: String,
    },
}

/// The database of a home.
#[derive(Debug)]
pub struct Store;

impl Store {
    /// Opens the store at `path`, or makes one if there is no such file, and starts its writer.
    /// The caller holds the instance lock of the home.
    ///
    /// # Errors
    /// It cannot be opened; nothing was changed.
    pub fn open(path: &Path, options: &Options) -> Result<(Writer, Reader, OpenReport), OpenError> {
        let opener = FileOpener::new(path, options.cache_bytes);
        let started = Instant::now();
        let created = opener.create_if_missing()?;
        let (writer, reader, mut report) = Self::start(Box::new(opener))?;
        report.created = created;
        report.took = started.elapsed();
        Ok((writer, reader, report))
    }

    fn start(opener: Box<dyn Opener>) -> Result<(Writer, Reader, OpenReport), OpenError> {
        let started = Instant::now();
        let opened = opener.open()?;
        let report = OpenReport {
            created: false,
            repaired: opened.repaired,
            format: opened.format,
            took: started.elapsed(),
        };
        let path = opener.path().to_owned();
        let shared = Shared::new(path.clone(), opened.database);
        let engine = Engine::new(shared.clone(), opener, opened.commits);
        let writer = Writer::spawn(engine, shared.clone())
            .map_err(|error| OpenError::Io { path, message: error.to_string() })?;
        Ok((writer, Reader::new(shared), report))
    }
}

#[cfg(test)]
mod tests;
