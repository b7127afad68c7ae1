//! The writer's thread: takes all that waits, stores it in one commit, answers. A failed commit closes
//! the database and opens it again, since redb goes on with nothing after an I/O error.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use redb::WriteTransaction;

use super::batch::{Batch, Committed, Done, InvalidWrite, WriteError};
use super::check::{Check, Refusal, Tails};
use super::failure::Failure;
use super::opening::Opener;
use super::prepare::{self, Prepared};
use super::shared::Shared;
use super::tables::{COMMITS_NAME, Tables};

/// A commit takes at most this many batches: waiting for a thousand is long enough.
const MAX_GROUP_BATCHES: usize = 1024;

/// And about this many bytes, so that the dirty pages stay within the cache.
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// How often a database that is down is tried again while nobody writes.
const RETRY: Duration = Duration::from_millis(500);

/// From this size of the file on a commit also records which pages are free. That doubles its syncs (4 ms
/// instead of 2 on the machine where it was measured), but without it the whole file is read at the next
/// start after a kill: 30 ms for 9 MB, 0.17 s for 70 MB and so on; with it 10 ms at any size.
const QUICK_REPAIR_FROM: u64 = 16 * 1024 * 1024;

/// A batch in its stored form and who waits for it.
struct Job {
    writes: Vec<Prepared>,
    done: Done,
}

/// State of the thread.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    opener: Box<dyn Opener>,
    /// Number of the last commit.
    commits: u64,
    tails: Tails,
    /// Sessions that were deleted since the start: a late write must not bring one back.
    deleted: HashSet<u64>,
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, opener: Box<dyn Opener>, commits: u64) -> Self {
        Self { shared, opener, commits, tails: Tails::default(), deleted: HashSet::new() }
    }

    /// Works until every sender is gone and the queue is empty, then closes the database.
    pub(crate) fn run(mut self, queue: &Receiver<Batch>) {
        loop {
            match self.wait(queue) {
                Ok(first) => self.serve(first, queue),
                Err(RecvTimeoutError::Timeout) => self.try_reopen(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.shared.take_down(Failure::Closed);
    }

    /// Sleeps without a timer, but for a database that is down and may come back.
    fn wait(&self, queue: &Receiver<Batch>) -> Result<Batch, RecvTimeoutError> {
        match self.shared.down() {
            None | Some(Failure::Damaged { .. }) => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => queue.recv_timeout(RETRY),
        }
    }

    fn serve(&mut self, first: Batch, queue: &Receiver<Batch>) {
        let jobs = gather(first, queue);
        // Whatever happens, whoever waits is answered.
        let stored = catch_unwind(AssertUnwindSafe(|| {
            self.try_reopen();
            self.store(&jobs)
        }));
        let stored = stored.unwrap_or_else(|_| {
            let failure = Failure::Defect { message: "the store panicked".to_owned() };
            self.tails.clear();
            self.shared.take_down(failure.clone());
            Err(failure)
        });
        match stored {
            Ok((committed, verdicts)) => {
                for (job, verdict) in jobs.into_iter().zip(verdicts) {
                    let answer = verdict.map(|()| committed).map_err(WriteError::Invalid);
                    tell(job.done, answer);
                }
            }
            Err(failure) => {
                for job in jobs {
                    tell(job.done, Err(WriteError::Failed(failure.clone())));
                }
            }
        }
    }

    /// One verdict a job: a job that contradicts the store fails alone.
    fn store(&mut self, jobs: &[Job]) -> Result<(Committed, Verdicts), Failure> {
        let mut verdicts = Vec::new();
        let started = Instant::now();
        if jobs.iter().any(|job| !job.writes.is_empty()) {
            let mut gone = Vec::new();
            if let Err(failure) = self.attempt(jobs, &mut verdicts, &mut gone) {
                gone.iter().for_each(|uid| {
                    self.deleted.remove(uid);
                });
                return Err(failure);
            }
        }
        // Without writes there is nothing to sync: what came before it is settled.
        verdicts.resize(jobs.len(), Ok(()));
        Ok((Committed { commit: self.commits, took: started.elapsed() }, verdicts))
    }

    fn attempt(&mut self, jobs: &[Job], verdicts: &mut Verdicts, gone: &mut Vec<u64>) -> Result<(), Failure> {
        let started = Instant::now();
        let number = self.commits + 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| self.commit(number, jobs, verdicts, gone)));
        let outcome =
            outcome.unwrap_or_else(|_| Err(Failure::Defect { message: "a commit panicked".to_owned() }));
        match outcome {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(failure) => self.recover(number, failure)?,
        }
        self.commits = number;
        let stored = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
        self.shared.committed(stored, started.elapsed());
        Ok(())
    }

    /// Whether there was anything to commit.
    fn commit(
        &mut self,
        number: u64,
        jobs: &[Job],
        verdicts: &mut Verdicts,
        gone: &mut Vec<u64>,
    ) -> Result<bool, Failure> {
        let transaction = self.begin()?;
        let mut tables = Tables::open(&transaction)?;
        for job in jobs {
            let verdict = match Check::new(&tables, &mut self.tails, &self.deleted).batch(&job.writes) {
                Ok(()) => Ok(()),
                Err(Refusal::Invalid(invalid)) => Err(invalid),
                Err(Refusal::Failed(failure)) => return Err(failure),
            };
            if verdict.is_ok() {
                let before = gone.len();
                job.writes.iter().try_for_each(|write| tables.apply(write, &mut self.tails, gone))?;
                self.deleted.extend(gone.iter().skip(before));
            }
            verdicts.push(verdict);
        }
        if verdicts.iter().all(Result::is_err) {
            drop(tables);
            transaction.abort()?;
            return Ok(false);
        }
        tables.meta.insert(COMMITS_NAME, number.to_le_bytes().as_slice())?;
        drop(tables);
        transaction.commit()?;
        Ok(true)
    }

    /// After a failed commit: opens the database again and looks whether the commit is there after all.
    fn recover(&mut self, number: u64, failure: Failure) -> Result<(), Failure> {
        tracing::warn!(%failure, "a commit failed");
        self.shared.failed();
        self.tails.clear();
        self.shared.take_down(failure.clone());
        self.try_reopen();
        if self.shared.down().is_some() || self.commits < number {
            return Err(failure);
        }
        // It is in the file but perhaps not on the disk: one more commit syncs both.
        self.confirm().inspect_err(|again| self.shared.take_down(again.clone()))
    }

    fn confirm(&self) -> Result<(), Failure> {
        Ok(self.begin()?.commit()?)
    }

    fn begin(&self) -> Result<WriteTransaction, Failure> {
        let mut transaction = self.shared.begin_write()?;
        transaction.set_quick_repair(self.shared.store_bytes() >= QUICK_REPAIR_FROM);
        Ok(transaction)
    }

    /// Opens a database that is down, unless it is damaged: then it stays as it is for people to look at.
    fn try_reopen(&mut self) {
        match self.shared.down() {
            None | Some(Failure::Damaged { .. }) => return,
            Some(_) => {}
        }
        match self.opener.open() {
            Ok(opened) => {
                tracing::info!("the store is open again");
                self.commits = opened.commits;
                self.shared.put_up(opened.database);
            }
            Err(error) => {
                tracing::debug!(%error, "the store stays closed");
                self.shared.take_down(error.into());
            }
        }
    }
}

type Verdicts = Vec<Result<(), InvalidWrite>>;

/// Takes what waits; a batch without a stored form is answered at once.
fn gather(first: Batch, queue: &Receiver<Batch>) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut bytes = 0;
    let mut next = Some(first);
    while let Some(Batch { writes, done }) = next {
        match prepare::all(writes) {
            Ok(writes) => {
                bytes += writes.iter().map(Prepared::bytes).sum::<usize>();
                jobs.push(Job { writes, done });
            }
            Err(invalid) => tell(done, Err(WriteError::Invalid(invalid))),
        }
        let full = jobs.len() >= MAX_GROUP_BATCHES || bytes >= MAX_GROUP_BYTES;
        next = if full { None } else { queue.try_recv().ok() };
    }
    jobs
}

/// A waiter that panics must not take the others with it.
fn tell(done: Done, answer: Result<Committed, WriteError>) {
    if catch_unwind(AssertUnwindSafe(|| done(answer))).is_err() {
        tracing::error!("a waiter of the store panicked");
    }
}
