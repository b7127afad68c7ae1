//! What the writer's thread and the readers share: the open database, if it is open, and figures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use super::failure::Failure;

/// Figures for `daemon.status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Commits since the store was opened.
    pub commits: u64,
    /// Batches that they stored.
    pub batches: u64,
    /// Commits that failed.
    pub failures: u64,
    /// Duration of the last commit.
    pub last_commit: Duration,
    /// Length of the database file after the last commit.
    pub store_bytes: u64,
    /// Why nothing can be stored or read at the moment.
    pub down: Option<Failure>,
}

enum State {
    Open(Database),
    Down(Failure),
}

/// See the module.
pub(crate) struct Shared {
    path: PathBuf,
    state: RwLock<State>,
    commits: AtomicU64,
    batches: AtomicU64,
    failures: AtomicU64,
    last_commit_us: AtomicU64,
    store_bytes: AtomicU64,
}

impl Shared {
    pub(crate) fn new(path: PathBuf, database: Database) -> Arc<Self> {
        let shared = Self {
            path,
            state: RwLock::new(State::Open(database)),
            commits: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            last_commit_us: AtomicU64::new(0),
            store_bytes: AtomicU64::new(0),
        };
        shared.measure();
        Arc::new(shared)
    }

    // A panic under this lock leaves the state whole, so a poisoned lock is as good as any.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot of the last commit. Close it soon: pages that it sees cannot be reused.
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, Failure> {
        match &*self.read() {
            State::Open(database) => Ok(database.begin_read()?),
            State::Down(failure) => Err(failure.clone()),
        }
    }

    pub(crate) fn begin_write(&self) -> Result<WriteTransaction, Failure> {
        match &*self.read() {
            State::Open(database) => Ok(database.begin_write()?),
            State::Down(failure) => Err(failure.clone()),
        }
    }

    /// Closes the database; reads that are under way fail.
    pub(crate) fn take_down(&self, failure: Failure) {
        let mut state = self.write();
        let old = std::mem::replace(&mut *state, State::Down(failure));
        // Dropped within the lock: the file's own lock must be free before anybody opens it again. A
        // database in which something panicked panics once more when it goes.
        if catch_unwind(AssertUnwindSafe(|| drop(old))).is_err() {
            tracing::warn!("the database could not be closed cleanly");
        }
    }

    pub(crate) fn put_up(&self, database: Database) {
        *self.write() = State::Open(database);
    }

    pub(crate) fn down(&self) -> Option<Failure> {
        match &*self.read() {
            State::Open(_) => None,
            State::Down(failure) => Some(failure.clone()),
        }
    }

    pub(crate) fn committed(&self, batches: usize, took: Duration) {
        self.commits.fetch_add(1, Relaxed);
        self.batches.fetch_add(batches as u64, Relaxed);
        self.last_commit_us.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        self.measure();
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    fn measure(&self) {
        if let Ok(found) = std::fs::metadata(&self.path) {
            self.store_bytes.store(found.len(), Relaxed);
        }
    }

    pub(crate) fn store_bytes(&self) -> u64 {
        self.store_bytes.load(Relaxed)
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Relaxed),
            batches: self.batches.load(Relaxed),
            failures: self.failures.load(Relaxed),
            last_commit: Duration::from_micros(self.last_commit_us.load(Relaxed)),
            store_bytes: self.store_bytes(),
            down: self.down(),
        }
    }
}
