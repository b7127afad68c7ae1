//! The Store actor: owner of the single writer.
//!
//! Anybody with a [`Store`] may write and read; writes of the same moment share one commit. It promises
//! that `done` is called once for each write, with the truth. The writer itself lives above this actor, so
//! that a restart loses nothing; when it is gone for good this actor fails until the Daemon gives up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use seekclaw_storage::store::{
    Batch, Committed, Done, Failure, Reader, SubmitError, Write, WriteError, Writer,
};
use tokio::sync::oneshot;

use crate::config::LastGood;
use crate::supervision::Slot;

/// How long a reader waits for writes that others left behind: as long as a commit on a bad disk.
const SETTLE_LIMIT: Duration = Duration::from_secs(20);

/// What the Store is asked for.
pub(crate) enum StoreMsg {
    /// Make this durable.
    Write(Batch),
}

/// Handle to the Store; cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    slot: Slot<StoreMsg>,
    reader: Reader,
}

impl Store {
    pub(crate) fn new(slot: Slot<StoreMsg>, reader: Reader) -> Self {
        Self { slot, reader }
    }

    /// Makes `writes` durable as one, then calls `done`: once, whatever happens on the way.
    pub(crate) fn write(&self, writes: Vec<Write>, done: Done) {
        let done = surely(done);
        if let Err(StoreMsg::Write(batch)) = self.slot.send(StoreMsg::Write(Batch { writes, done })) {
            (batch.done)(Err(WriteError::Failed(Failure::Closed)));
        }
    }

    /// Waits until everything that was written before is settled, so that a read sees the outcome.
    pub(crate) async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        let done = move |result: Result<_, WriteError>| {
            if done.send(result).is_err() {
                tracing::debug!("nobody waits any more for the store to settle");
            }
        };
        self.write(Vec::new(), Box::new(done));
        if !matches!(tokio::time::timeout(SETTLE_LIMIT, settled).await, Ok(Ok(Ok(_)))) {
            tracing::warn!("the store does not say whether it has settled");
        }
    }

    /// Reads; every method blocks, so call them off the runtime.
    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }
}

/// `done` as a function that is called even if it is dropped with the actor that had it.
fn surely(done: Done) -> Done {
    let mut waiter = Waiter(Some(done));
    Box::new(move |result| waiter.tell(result))
}

/// Who waits for a write.
struct Waiter(Option<Done>);

impl Waiter {
    fn tell(&mut self, result: Result<Committed, WriteError>) {
        if let Some(done) = self.0.take() {
            done(result);
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.tell(Err(WriteError::Failed(Failure::Closed)));
    }
}

/// Meta name of the last readable configuration (ruling 24).
const LAST_GOOD: &str = "config.last_good";

/// Keeps the last readable configuration. It goes past the Store actor, because the configuration is read
/// before the tree starts.
pub(crate) struct KeptConfig {
    reader: Reader,
    writer: Weak<Writer>,
}

impl KeptConfig {
    pub(crate) fn new(reader: Reader, writer: &Arc<Writer>) -> Self {
        Self { reader, writer: Arc::downgrade(writer) }
    }
}

impl LastGood for KeptConfig {
    fn load(&self) -> Option<String> {
        let found = self.reader.meta(LAST_GOOD);
        let bytes =
            found.inspect_err(|error| tracing::warn!(%error, "cannot read the last good configuration"));
        String::from_utf8(bytes.ok().flatten()?).ok()
    }

    fn save(&self, text: &str) {
        let write = Write::PutMeta { key: LAST_GOOD.to_owned(), value: text.as_bytes().to_vec() };
        let done = |result: Result<_, WriteError>| {
            if let Err(error) = result {
                tracing::warn!(%error, "the last good configuration was not kept");
            }
        };
        let batch = Batch { writes: vec![write], done: Box::new(done) };
        let refused = match self.writer.upgrade() {
            Some(writer) => writer.submit(batch).err().map(|refused| refused.to_string()),
            None => Some("the daemon stops".to_owned()),
        };
        if let Some(error) = refused {
            tracing::warn!(error, "the last good configuration was not kept");
        }
    }
}

/// The actor.
pub(crate) struct StoreActor;

impl Actor for StoreActor {
    type Msg = StoreMsg;
    type State = Arc<Writer>;
    type Arguments = Arc<Writer>;

    async fn pre_start(
        &self,
        _me: ActorRef<StoreMsg>,
        writer: Arc<Writer>,
    ) -> Result<Arc<Writer>, ActorProcessingErr> {
        Ok(writer)
    }

    async fn handle(
        &self,
        _me: ActorRef<StoreMsg>,
        message: StoreMsg,
        writer: &mut Arc<Writer>,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            StoreMsg::Write(batch) => submit(writer, batch)?,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<StoreMsg>,
        event: SupervisionEvent,
        _writer: &mut Arc<Writer>,
    ) -> Result<(), ActorProcessingErr> {
        tracing::debug!(%event, "the store has no children: ignored");
        Ok(())
    }
}

/// Hands the batch to the writer; a full queue is an answer, a writer that is gone is our failure.
fn submit(writer: &Writer, batch: Batch) -> Result<(), WriteError> {
    match writer.submit(batch) {
        Ok(()) => Ok(()),
        Err(SubmitError::Full(batch)) => {
            (batch.done)(Err(WriteError::Busy));
            Ok(())
        }
        Err(SubmitError::Closed(batch)) => {
            (batch.done)(Err(WriteError::Failed(Failure::Closed)));
            Err(WriteError::Failed(Failure::Closed))
        }
    }
}

#[cfg(test)]
mod tests;
