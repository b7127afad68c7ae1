//! The file-lock coordinator. The table of locks lives in [`Locks`], above the actor: whoever starts the
//! actor keeps the handle, tools have clones of it. The actor owns the watch over holders and waiters.
//! It promises: one holder per canonical file, first come first served, released when the guard is dropped
//! or the holder's actor ends, however it ends; an effect that has begun is never let in upon.
//! It fails without letting go of anything: guards still release, and `Locks::spawn_linked` on the same handle
//! starts a new actor that watches all who are in the table. The Daemon restarts it.

mod table;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SpawnErr, SupervisionEvent};
use seekclaw_protocol::Timestamp;
use tokio::sync::oneshot;

use self::table::{Claim, Table};
use crate::supervision::{Tasks, tell};

/// Who may wait for one file; more than a daemon's turns in practice, so that a loop cannot fill memory.
pub const MAX_WAITERS: usize = 64;

/// What the actor is told.
#[derive(Debug)]
pub enum LocksMsg {
    /// This actor has a claim: notice when it ends.
    Watch(ActorCell),
    /// An actor that had claims has ended.
    HolderGone(ActorId),
}

/// Handle to the coordinator and owner of the locks; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Locks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    table: Mutex<Table>,
    watcher: Mutex<Option<ActorRef<LocksMsg>>>,
}

/// A held lock: released when dropped.
#[derive(Debug)]
pub struct FileLock {
    shared: Arc<Shared>,
    file: PathBuf,
    ticket: u64,
}

/// A row of `lock.list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// Root of the workspace from which the file is edited.
    pub workspace: PathBuf,
    /// Canonical path.
    pub file: PathBuf,
    /// `<session id>/<8 hex>`.
    pub owner: String,
    /// Since when.
    pub acquired_at: Timestamp,
}

/// Why a lock was not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockRefused {
    /// It was not free in time (contract 10).
    #[error("write lock timeout")]
    Timeout {
        /// Who held it, if anyone did at the end.
        owner: Option<String>,
    },
    /// [`MAX_WAITERS`] wait for it already.
    #[error("too many wait for the write lock")]
    Full,
    /// The actor that asked has ended.
    #[error("the holder ended while it waited for a write lock")]
    HolderGone,
}

// === impl Locks ===

impl Locks {
    /// A coordinator without locks; `spawn_linked` starts its actor.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts the actor beneath `supervisor`, for the first time or again: held locks stay held.
    ///
    /// # Errors
    /// The actor could not be started.
    pub async fn spawn_linked(&self, supervisor: ActorCell) -> Result<ActorRef<LocksMsg>, SpawnErr> {
        let (actor, _) = Actor::spawn_linked(None, LocksActor, self.clone(), supervisor).await?;
        Ok(actor)
    }

    /// Waits for the lock on `file` (canonical path), at most `wait`, in order of arrival. Dropping the
    /// future gives the place up. Not re-entrant: who holds it and asks again waits for itself.
    ///
    /// # Errors
    /// The lock was not free in time, too many wait already, or `holder` has ended.
    pub async fn acquire(
        &self,
        file: PathBuf,
        workspace: PathBuf,
        owner: String,
        holder: ActorCell,
        wait: Duration,
    ) -> Result<FileLock, LockRefused> {
        let (granted, grant) = oneshot::channel();
        let claim = Claim { workspace, owner, holder: holder.clone(), granted };
        let ticket = self.0.table().request(file.clone(), claim).ok_or(LockRefused::Full)?;
        let lock = FileLock { shared: self.0.clone(), file, ticket };
        self.0.watch(holder);
        match tokio::time::timeout(wait, grant).await {
            Ok(Ok(())) => Ok(lock),
            Ok(Err(_)) => Err(LockRefused::HolderGone),
            Err(_) => Err(LockRefused::Timeout { owner: self.0.table().owner(&lock.file) }),
        }
    }

    /// Held locks, by workspace and file.
    #[must_use]
    pub fn list(&self) -> Vec<HeldLock> {
        self.0.table().list()
    }
}

#[cfg(test)]
impl Locks {
    /// How many wait for `file`.
    pub(crate) fn waiting(&self, file: &std::path::Path) -> usize {
        self.0.table().waiting(file)
    }
}

// === impl FileLock ===

impl FileLock {
    /// Says that the effect begins: from here on the lock is held until it is dropped, even if the
    /// holder's actor ends meanwhile. False if it has ended already: the lock is another's, do nothing.
    #[must_use]
    pub fn begin_effect(&self) -> bool {
        self.shared.table().begin_effect(&self.file, self.ticket)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        self.shared.table().release(&self.file, self.ticket);
    }
}

// === impl Shared ===

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watcher(&self) -> MutexGuard<'_, Option<ActorRef<LocksMsg>>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called after the claim is in the table: an actor that starts just now finds it there.
    fn watch(&self, holder: ActorCell) {
        let watcher = self.watcher().clone();
        if let Some(watcher) = watcher {
            tell(&watcher, LocksMsg::Watch(holder));
        }
    }
}

/// The actor.
#[derive(Clone, Copy, Debug)]
pub struct LocksActor;

/// What the actor keeps.
#[derive(Debug)]
pub struct State {
    locks: Locks,
    watched: HashSet<ActorId>,
    tasks: Tasks,
}

impl Actor for LocksActor {
    type Msg = LocksMsg;
    type State = State;
    type Arguments = Locks;

    async fn pre_start(&self, myself: ActorRef<LocksMsg>, locks: Locks) -> Result<State, ActorProcessingErr> {
        // First reachable, then a look into the table: no claim falls between the two.
        *locks.0.watcher() = Some(myself.clone());
        let holders = locks.0.table().holders();
        let mut state = State { locks, watched: HashSet::new(), tasks: Tasks::default() };
        for holder in holders {
            watch(&myself, &mut state, holder);
        }
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<LocksMsg>,
        message: LocksMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LocksMsg::Watch(holder) => watch(&myself, state, holder),
            LocksMsg::HolderGone(holder) => holder_gone(state, holder),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<LocksMsg>,
        _event: SupervisionEvent,
        _state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_stop(
        &self,
        _myself: ActorRef<LocksMsg>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.tasks.shutdown().await;
        Ok(())
    }
}

/// One task per holder: waiting works for one that has ended already, too.
fn watch(myself: &ActorRef<LocksMsg>, state: &mut State, holder: ActorCell) {
    let id = holder.get_id();
    if !state.watched.insert(id) {
        return;
    }
    let myself = myself.clone();
    state.tasks.spawn(async move {
        if holder.wait(None).await.is_ok() {
            tell(&myself, LocksMsg::HolderGone(id));
        }
    });
}

fn holder_gone(state: &mut State, holder: ActorId) {
    state.watched.remove(&holder);
    state.locks.0.table().forget(holder);
}

#[cfg(test)]
mod tests;
