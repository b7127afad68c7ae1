//! What the rest of the daemon holds of the configuration: the published settings and a way to the actor.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{ActorRef, MessagingErr};
use seekclaw_protocol::{ErrorCode, Mode, WireError};
use seekclaw_storage::config::model;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::desk::{Desk, LastGood};
use super::settings::{OwnConfig, Settings};
use super::{ConfigMsg, Job, Work};
use crate::provider::Breakers;
use crate::workspace::{Surroundings, Workspace};

/// Changes that may wait at once: far more than people cause, few enough to hold in memory.
const MAX_WAITING: usize = 64;

/// How long one change may take with its wait; a disk that needs longer is not coming back soon.
const CHANGE_LIMIT: Duration = Duration::from_secs(30);

/// How long a caller waits for an actor that is being restarted: the longest restart delay and some more.
const RESTART_LIMIT: Duration = Duration::from_secs(10);

/// What the configuration starts from.
pub struct Start {
    /// `config.json`.
    pub file: PathBuf,
    /// Where workspaces are looked for.
    pub surroundings: Surroundings,
    /// Where the last readable configuration is kept.
    pub last_good: Arc<dyn LastGood>,
}

/// Handle to the configuration; cheap to clone, and outlives every incarnation of the actor.
#[derive(Clone)]
pub struct ConfigHandle(Arc<Shared>);

struct Shared {
    desk: Mutex<Desk>,
    settings: watch::Receiver<Arc<Settings>>,
    surroundings: Arc<Surroundings>,
    actor: watch::Sender<Option<ActorRef<ConfigMsg>>>,
    waiters: Arc<Semaphore>,
    breakers: Breakers,
}

impl ConfigHandle {
    /// Reads the configuration and detects the first workspace. Blocks.
    #[must_use]
    pub fn load(start: Start) -> Self {
        let surroundings = Arc::new(start.surroundings);
        let (desk, settings) = Desk::open(start.file, Arc::clone(&surroundings), start.last_good);
        let (actor, waiters) = (watch::Sender::new(None), Arc::new(Semaphore::new(MAX_WAITING)));
        let breakers = Breakers::default();
        Self(Arc::new(Shared { desk: Mutex::new(desk), settings, surroundings, actor, waiters, breakers }))
    }

    /// The settings as last published. Never waits.
    #[must_use]
    pub fn current(&self) -> Arc<Settings> {
        Arc::clone(&self.0.settings.borrow())
    }

    /// The circuit breakers that all turns share (contract 6.6).
    #[must_use]
    pub fn breakers(&self) -> Breakers {
        self.0.breakers.clone()
    }

    /// Hears of every change of the settings.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Settings>> {
        self.0.settings.clone()
    }

    /// The settings as they are on disk now (contract 4.2). Where that cannot be found out, the last ones.
    pub async fn fresh(&self) -> Arc<Settings> {
        let seen = self.current();
        let look = Arc::clone(&seen);
        if let Ok(false) = spawn_blocking(move || look.is_stale()).await {
            return seen;
        }
        self.ask(|desk| Ok(desk.refresh())).await.unwrap_or_else(|error| {
            tracing::warn!(error = error.message, "the configuration was not read again");
            self.current()
        })
    }

    /// Changes the configuration: `change` sees what is on disk, and what it refuses leaves no trace. It runs
    /// again if someone else wrote the file meanwhile.
    ///
    /// # Errors
    /// What `change` refuses, a file that does not parse, and what keeps the file from being written.
    pub async fn update<T, F>(&self, change: F) -> Result<T, WireError>
    where
        T: Send + 'static,
        F: FnMut(&mut model::Config) -> Result<T, WireError> + Send + 'static,
    {
        self.ask(move |desk| desk.change(change)).await
    }

    /// Makes the workspace of `path` the current one of the whole process (contract 2.4).
    ///
    /// # Errors
    /// The texts of contract 2.1.
    pub async fn open_workspace(&self, path: String) -> Result<Arc<Settings>, WireError> {
        self.ask(move |desk| desk.open_workspace(&path)).await
    }

    /// The workspace of `path`, leaving the current one as it is (contract 2.1).
    ///
    /// # Errors
    /// The texts of contract 2.1.
    pub async fn find_workspace(&self, path: String) -> Result<Workspace, WireError> {
        let surroundings = Arc::clone(&self.0.surroundings);
        let found = spawn_blocking(move || surroundings.open(&path)).await;
        found.unwrap_or_else(|_| Err(not_looked_at()))
    }

    /// What a turn in the workspace at `root` works with: the settings as they are on disk, and that
    /// workspace in place of the current one (contract 4.2).
    ///
    /// # Errors
    /// The directory is gone.
    pub async fn fresh_in(&self, root: PathBuf) -> Result<Settings, WireError> {
        let settings = self.fresh().await;
        let read = move || {
            let workspace = Workspace::at(root)?;
            let own = Arc::new(OwnConfig::read(&workspace, &settings.file));
            Ok(Settings { workspace: Arc::new(workspace), own, ..Settings::clone(&settings) })
        };
        spawn_blocking(read).await.unwrap_or_else(|_| Err(not_looked_at()))
    }

    /// Writes the mode wherever contract 2.5 wants it.
    ///
    /// # Errors
    /// As [`ConfigHandle::update`].
    pub async fn switch_mode(&self, mode: Mode) -> Result<(), WireError> {
        self.ask(move |desk| desk.switch_mode(mode)).await
    }

    /// Reads everything again, changed or not.
    ///
    /// # Errors
    /// The file does not parse; the settings stay as they are.
    pub async fn reload(&self) -> Result<(), WireError> {
        self.ask(Desk::reload).await
    }

    pub(super) fn serve(&self, actor: &ActorRef<ConfigMsg>) {
        self.0.actor.send_replace(Some(actor.clone()));
    }

    pub(super) fn at_desk(&self, work: Work) {
        // A panic left no half change behind: the desk changes copies and swaps them in at the end.
        work(&mut self.0.desk.lock().unwrap_or_else(PoisonError::into_inner));
    }

    async fn ask<T, F>(&self, work: F) -> Result<T, WireError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Desk) -> Result<T, WireError> + Send + 'static,
    {
        let full = |_| WireError::new(ErrorCode::Overloaded, "Too many configuration changes are waiting");
        let permit = Arc::clone(&self.0.waiters).try_acquire_owned().map_err(full)?;
        let (reply, answer) = oneshot::channel();
        let work = move |desk: &mut Desk| {
            // Whoever has stopped waiting must not see it happen later.
            if !reply.is_closed() && reply.send(work(desk)).is_err() {
                tracing::debug!("a configuration change was done but its caller has gone");
            }
        };
        let all = async {
            self.post(ConfigMsg::Do(Job { work: Box::new(work), permit: Some(permit) })).await?;
            answer
                .await
                .map_err(|_| WireError::new(ErrorCode::Internal, "The configuration was not changed"))?
        };
        let late = |_| WireError::new(ErrorCode::Timeout, "The configuration took too long to change");
        timeout(CHANGE_LIMIT, all).await.map_err(late)?
    }

    /// Hands `message` to the actor, to its next incarnation if it is just being restarted.
    async fn post(&self, mut message: ConfigMsg) -> Result<(), WireError> {
        let mut actor = self.0.actor.subscribe();
        loop {
            let serving = actor.borrow_and_update().clone();
            if let Some(serving) = serving {
                message = match serving.cast(message) {
                    Err(MessagingErr::SendErr(message)) => message,
                    sent => return sent.map_err(|_| not_serving()),
                };
            }
            if !matches!(timeout(RESTART_LIMIT, actor.changed()).await, Ok(Ok(()))) {
                return Err(not_serving());
            }
        }
    }
}

fn not_looked_at() -> WireError {
    WireError::new(ErrorCode::Internal, "The workspace cannot be looked at now")
}

fn not_serving() -> WireError {
    WireError::new(ErrorCode::Internal, "The configuration cannot be changed now")
}
