#![allow(clippy::unwrap_used, clippy::panic, reason = "test")]

use std::sync::Mutex;

use seekclaw_storage::store::{Options, Store as Database};

use super::*;

struct World {
    store: Store,
    slot: Slot<StoreMsg>,
    writer: Arc<Writer>,
    _disk: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let disk = tempfile::tempdir().unwrap();
        let (writer, reader, _) = Database::open(&disk.path().join("db"), &Options::default()).unwrap();
        let (slot, writer) = (Slot::default(), Arc::new(writer));
        let world = Self { store: Store::new(slot.clone(), reader), slot, writer, _disk: disk };
        world.start().await;
        world
    }

    async fn start(&self) -> ActorRef<StoreMsg> {
        let (actor, _) = Actor::spawn(None, StoreActor, Arc::clone(&self.writer)).await.unwrap();
        self.slot.point(Some(actor.clone()));
        actor
    }

    /// Writes a value; the receiver hears how that went.
    fn put(&self, key: &str) -> oneshot::Receiver<Result<Committed, WriteError>> {
        let (told, result) = oneshot::channel();
        let write = Write::PutMeta { key: key.to_owned(), value: vec![1] };
        self.store.write(vec![write], Box::new(move |result| told.send(result).unwrap()));
        result
    }

    async fn has(&self, key: &'static str) -> bool {
        let reader = self.store.reader().clone();
        tokio::task::spawn_blocking(move || reader.meta(key).unwrap().is_some()).await.unwrap()
    }
}

#[tokio::test]
async fn what_is_reported_as_stored_is_there() {
    let world = World::new().await;
    world.put("a").await.unwrap().unwrap();
    assert!(world.has("a").await);
}

#[tokio::test]
async fn a_write_in_the_mailbox_of_an_actor_that_dies_is_refused_and_not_forgotten() {
    let world = World::new().await;
    let actor = world.slot.get().unwrap();
    // Nothing runs between these lines: the kill comes before the message is handled.
    let waiting = world.put("a");
    actor.kill();
    assert_eq!(waiting.await.unwrap(), Err(WriteError::Failed(Failure::Closed)));
    actor.wait(None).await.unwrap();
    assert_eq!(world.put("b").await.unwrap(), Err(WriteError::Failed(Failure::Closed)), "nobody serves");
    world.start().await;
    world.put("c").await.unwrap().unwrap();
    assert_eq!((world.has("a").await, world.has("b").await, world.has("c").await), (false, false, true));
}

#[tokio::test]
async fn settled_comes_after_all_that_was_written_before() {
    let world = World::new().await;
    let done = Arc::new(Mutex::new(0));
    for number in 0..200 {
        let done = Arc::clone(&done);
        let write = Write::PutMeta { key: format!("k{number}"), value: vec![1] };
        world
            .store
            .write(vec![write], Box::new(move |result| *done.lock().unwrap() += i32::from(result.is_ok())));
    }
    world.store.settled().await;
    assert_eq!(*done.lock().unwrap(), 200);
}

#[tokio::test]
async fn settled_does_not_wait_for_a_store_that_is_gone() {
    let world = World::new().await;
    let actor = world.slot.get().unwrap();
    actor.kill();
    actor.wait(None).await.unwrap();
    world.store.settled().await;
}
