//! A Store actor whose commits run as blocking tasks: a paused clock does not run ahead while it works, as
//! it would while the thread of the real one does. Commits can be made to fail.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use seekclaw_storage::store::{Batch, Done, Failure, Options, Store as Database, Write, WriteError, Writer};
use tokio::sync::oneshot;

use crate::store::{KeptConfig, Store, StoreMsg};
use crate::supervision::Slot;

/// Decides about each batch with writes: the failure that it meets, if any.
type Verdict = Box<dyn FnMut(&[Write]) -> Option<WriteError> + Send>;

/// What the next batch waits for: the end of the sender.
type Hold = std::sync::mpsc::Receiver<()>;
type Delay = Box<dyn FnMut() -> Option<Hold> + Send>;

/// The store of a stage.
pub(crate) struct TestStore {
    pub(crate) handle: Store,
    slot: Slot<StoreMsg>,
    writer: Arc<Writer>,
    verdict: Arc<Mutex<Option<Verdict>>>,
    delay: Arc<Mutex<Option<Delay>>>,
    held: Arc<AtomicUsize>,
    root: ActorCell,
}

struct TestStoreActor;

struct State {
    writer: Arc<Writer>,
    verdict: Arc<Mutex<Option<Verdict>>>,
    delay: Arc<Mutex<Option<Delay>>>,
    held: Arc<AtomicUsize>,
}

impl Actor for TestStoreActor {
    type Msg = StoreMsg;
    type State = State;
    type Arguments = State;

    async fn pre_start(&self, _: ActorRef<StoreMsg>, state: State) -> Result<State, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<StoreMsg>,
        message: StoreMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let StoreMsg::Write(Batch { writes, done }) = message;
        let failure = match state.verdict.lock().unwrap().as_mut() {
            Some(verdict) if !writes.is_empty() => verdict(&writes),
            _ => None,
        };
        if let Some(failure) = failure {
            done(Err(failure));
            return Ok(());
        }
        let writer = Arc::clone(&state.writer);
        // Once begun it is answered, whatever becomes of this actor.
        let hold = match state.delay.lock().unwrap().as_mut() {
            Some(delay) if !writes.is_empty() => delay(),
            _ => None,
        };
        let held = Arc::clone(&state.held);
        tokio::task::spawn_blocking(move || {
            if let Some(hold) = hold {
                held.fetch_add(1, Ordering::SeqCst);
                hold.recv().unwrap_err();
            }
            submit(&writer, writes, done);
        })
        .await?;
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<StoreMsg>,
        _: SupervisionEvent,
        _: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

fn submit(writer: &Writer, writes: Vec<Write>, done: Done) {
    let (told, result) = std::sync::mpsc::channel();
    let tell = Box::new(move |result| told.send(result).unwrap());
    writer.submit(Batch { writes, done: tell }).unwrap();
    done(result.recv().unwrap());
}

/// The failure of a full disk.
pub(crate) fn full() -> WriteError {
    WriteError::Failed(Failure::Full { message: "no space left on device".to_owned() })
}

impl TestStore {
    /// Where the last readable configuration is kept.
    pub(crate) fn kept_config(&self) -> KeptConfig {
        KeptConfig::new(self.handle.reader().clone(), &self.writer)
    }

    pub(super) async fn open(path: &Path, slot: Slot<StoreMsg>, root: ActorCell) -> Self {
        let (writer, reader, _) = Database::open(path, &Options::default()).unwrap();
        let handle = Store::new(slot.clone(), reader);
        let store = Self {
            handle,
            slot,
            writer: Arc::new(writer),
            verdict: Arc::default(),
            delay: Arc::default(),
            held: Arc::default(),
            root,
        };
        store.start().await;
        store
    }

    /// Starts the actor, for the first time or again.
    pub(crate) async fn start(&self) {
        let (verdict, delay) = (Arc::clone(&self.verdict), Arc::clone(&self.delay));
        let (writer, held) = (Arc::clone(&self.writer), Arc::clone(&self.held));
        let state = State { writer, verdict, delay, held };
        let (actor, _) = Actor::spawn_linked(None, TestStoreActor, state, self.root.clone()).await.unwrap();
        self.slot.point(Some(actor));
    }

    /// Kills the actor.
    pub(crate) fn kill(&self) {
        if let Some(actor) = self.slot.get() {
            actor.kill();
        }
    }

    /// From here on `verdict` decides what fails.
    pub(crate) fn judge(&self, verdict: impl FnMut(&[Write]) -> Option<WriteError> + Send + 'static) {
        *self.verdict.lock().unwrap() = Some(Box::new(verdict));
    }

    /// Batches wait for what `delay` gives.
    pub(crate) fn delay(&self, delay: impl FnMut() -> Option<Hold> + Send + 'static) {
        *self.delay.lock().unwrap() = Some(Box::new(delay));
    }

    /// Batches that had to wait so far.
    pub(crate) fn waiting(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// There is no space from here on.
    pub(crate) fn fill(&self) {
        self.judge(|_| Some(full()));
    }

    /// There is space again.
    pub(crate) fn free(&self) {
        *self.verdict.lock().unwrap() = None;
    }

    /// Stores something.
    pub(crate) async fn put(&self, writes: Vec<Write>) {
        let (done, stored) = oneshot::channel();
        self.handle.write(writes, Box::new(move |result| done.send(result).unwrap()));
        stored.await.unwrap().unwrap();
    }
}
