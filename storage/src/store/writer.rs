//! The way to the writer's thread: a bounded queue that never blocks whoever submits.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::batch::Batch;
use super::engine::Engine;
use super::shared::{Shared, Stats};

/// Batches that may wait for the thread.
pub const QUEUE_BATCHES: usize = 1024;

/// How long dropping a writer waits for what is queued.
const DROP_LIMIT: Duration = Duration::from_secs(10);

/// Why a batch was not taken; it comes back with its waiter.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// Too much waits already.
    #[error("{QUEUE_BATCHES} batches are already waiting for the store")]
    Full(Batch),
    /// The store is closed.
    #[error("the store is closed")]
    Closed(Batch),
}

/// Why a writer was not closed.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// The thread still works on what was queued.
    #[error("the store did not finish within {limit:?}")]
    TimedOut {
        /// The limit that was given.
        limit: Duration,
    },
    /// The thread panicked; what it had answered is stored.
    #[error("the store's thread panicked")]
    Panicked,
}

struct Thread {
    queue: SyncSender<Batch>,
    /// Disconnects when the thread has ended; the mutex is only there so that a writer can be shared.
    ended: Mutex<Receiver<()>>,
    handle: JoinHandle<()>,
}

/// The only way to change the store.
pub struct Writer {
    thread: Option<Thread>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("open", &self.thread.is_some()).finish_non_exhaustive()
    }
}

impl Writer {
    pub(crate) fn spawn(engine: Engine, shared: Arc<Shared>) -> io::Result<Self> {
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let (alive, ended) = sync_channel(1);
        let handle = Builder::new().name("seekclaw-store".to_owned()).spawn(move || {
            let _alive = alive;
            engine.run(&batches);
        })?;
        Ok(Self { thread: Some(Thread { queue, ended: Mutex::new(ended), handle }), shared })
    }

    /// Queues a batch; its `done` is called when it is synced or has failed.
    ///
    /// # Errors
    /// The queue is full, or the store is closed; `done` will not be called.
    pub fn submit(&self, batch: Batch) -> Result<(), SubmitError> {
        let Some(thread) = &self.thread else { return Err(SubmitError::Closed(batch)) };
        thread.queue.try_send(batch).map_err(|error| match error {
            TrySendError::Full(batch) => SubmitError::Full(batch),
            TrySendError::Disconnected(batch) => SubmitError::Closed(batch),
        })
    }

    /// Figures for `daemon.status`.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Stores what is queued, closes the database and ends the thread.
    ///
    /// # Errors
    /// It takes longer than `limit`; the thread goes on.
    pub fn close(mut self, limit: Duration) -> Result<(), CloseError> {
        self.finish(limit)
    }

    fn finish(&mut self, limit: Duration) -> Result<(), CloseError> {
        let Some(Thread { queue, ended, handle }) = self.thread.take() else { return Ok(()) };
        drop(queue);
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            return Err(CloseError::TimedOut { limit });
        }
        handle.join().map_err(|_| CloseError::Panicked)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Err(error) = self.finish(DROP_LIMIT) {
            tracing::error!(%error, "the store was not closed");
        }
    }
}
