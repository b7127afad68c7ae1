//! The Daemon: root of the tree. Starts the services in order, restarts each by itself, stops them in
//! reverse. What must not be lost with an actor (lock, database, socket, configuration) is owned here.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use seekclaw_protocol::jsonl;
use seekclaw_storage::home::{Home, HomeError};
use seekclaw_storage::lock::{InstanceLock, LockError};
use seekclaw_storage::store::{OpenError, Options, Reader, Store as Database, Writer};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigHandle, LastGood, Start};
use crate::listener::{Bound, Listener, ListenerArgs, ListenerMsg, SocketError};
use crate::locks::Locks;
use crate::services::Services;
use crate::sessions::{DRAIN_LIMIT, Sessions, SessionsMsg};
use crate::store::{KeptConfig, Store, StoreActor};
use crate::supervision::{Backoff, Slot, Tasks, Verdict, answer, stop_in_order};
use crate::tools::bash;
use crate::workspace::Surroundings;

/// How long one service may take to stop.
const STOP_BUDGET: Duration = Duration::from_millis(1500);
/// How long the store may take to finish what it was given.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks whether everybody has let go of the store: about as long as dropping a state takes.
const LET_GO: Duration = Duration::from_millis(1);
/// If nobody says stop after a drain, the daemon stops by itself.
const STOP_AFTER_DRAIN: Duration = Duration::from_millis(700);

/// What a daemon is started with.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// Its home.
    pub home: Home,
    /// Its working directory: the first workspace is looked for from here.
    pub cwd: PathBuf,
    /// Notified when the configuration should be read again.
    pub reload: Arc<Notify>,
}

/// A daemon that listens.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Where.
    pub socket: PathBuf,
}

/// Why the daemon could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The home cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// Another daemon owns the home, or the lock cannot be taken.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The socket cannot be bound.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The tree could not start.
    #[error("cannot start the services: {0}")]
    Start(String),
    /// A service failed for good.
    #[error("the daemon ended: {0}")]
    Ended(String),
}

/// What the root is told.
pub(crate) enum DaemonMsg {
    /// End all turns, refuse new ones, and answer.
    Drain(RpcReplyPort<()>),
    /// Stop everything.
    Stop,
    /// Start a service again, unless it has been replaced meanwhile.
    Restart(Service),
}

/// The services, in the order in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Store,
    Config,
    Locks,
    Sessions,
    Listener,
}

const SERVICES: [Service; 5] =
    [Service::Store, Service::Config, Service::Locks, Service::Sessions, Service::Listener];

struct Root;

struct RootArgs {
    services: Services,
    store_slot: Slot<crate::store::StoreMsg>,
    writer: Arc<Writer>,
    bound: Arc<Bound>,
    reload: Arc<Notify>,
    /// Why the daemon ends by itself, if it does.
    failure: Arc<OnceLock<String>>,
}

struct RootState {
    args: RootArgs,
    children: Vec<Child>,
    tasks: Tasks,
    stopping: bool,
}

struct Child {
    service: Service,
    cell: Option<ActorCell>,
    since: Instant,
    backoff: Backoff,
}

/// Runs a daemon until `stop` is done or somebody asks it to shut down. `ready` is called once it listens.
///
/// # Errors
/// Why it could not start, or which service failed for good.
pub async fn run(
    options: DaemonOptions,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()>,
) -> Result<(), DaemonError> {
    let DaemonOptions { home, cwd, reload } = options;
    home.prepare()?;
    let lock = InstanceLock::acquire(&home.lock(), env!("CARGO_PKG_VERSION"))?;
    let opened = open(&home)?;
    let bound = Arc::new(Bound::bind(&home.socket())?);
    let socket = home.socket();
    let writer = Arc::new(opened.0);
    let last_good = Arc::new(KeptConfig::new(opened.1.clone(), &writer));
    let (services, store_slot) = services(home, cwd, opened.1, last_good);
    let failure = Arc::new(OnceLock::new());
    let args = RootArgs {
        services: services.clone(),
        store_slot,
        writer: Arc::clone(&writer),
        bound,
        reload,
        failure: Arc::clone(&failure),
    };
    let started = Actor::spawn(Some("daemon".to_owned()), Root, args).await;
    let (root, ended) = started.map_err(|error| DaemonError::Start(error.to_string()))?;
    ready(Ready { socket });
    until_stopped(&root, ended, stop).await?;
    drop(services);
    close(writer).await;
    drop(lock);
    failure.get().map_or(Ok(()), |why| Err(DaemonError::Ended(why.clone())))
}

fn open(home: &Home) -> Result<(Writer, Reader), DaemonError> {
    let (writer, reader, report) = Database::open(&home.store(), &Options::default())?;
    tracing::info!(created = report.created, repaired = report.repaired, took = ?report.took, "store opened");
    Ok((writer, reader))
}

fn services(
    home: Home,
    cwd: PathBuf,
    reader: Reader,
    last_good: Arc<dyn LastGood>,
) -> (Services, Slot<crate::store::StoreMsg>) {
    let store_slot = Slot::default();
    let store = Store::new(store_slot.clone(), reader);
    let state = [home.path().to_owned()].into_iter().chain(usual_home());
    let surroundings = Surroundings::new(cwd.clone(), state);
    let config = ConfigHandle::load(Start { file: home.config(), surroundings, last_good });
    let services = Services {
        home: Arc::new(home),
        store,
        config,
        locks: Locks::new(),
        sessions: Slot::default(),
        listener: Slot::default(),
        daemon: Slot::default(),
        orphans_gone: CancellationToken::new(),
        stopping: Arc::default(),
        cwd: Arc::new(cwd),
    };
    (services, store_slot)
}

fn usual_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|folder| folder.is_absolute()).map(|folder| folder.join(".seekclaw"))
}

async fn until_stopped(
    root: &ActorRef<DaemonMsg>,
    ended: tokio::task::JoinHandle<()>,
    stop: impl Future<Output = ()>,
) -> Result<(), DaemonError> {
    tokio::pin!(ended);
    tokio::select! {
        () = stop => {
            if root.call(DaemonMsg::Drain, Some(2 * DRAIN_LIMIT)).await.is_err() {
                tracing::debug!("the daemon was stopping already");
            }
            crate::supervision::tell(root, DaemonMsg::Stop);
            ended.await
        }
        result = &mut ended => result,
    }
    .map_err(|error| DaemonError::Ended(error.to_string()))
}

/// Ends what a killed daemon left running, before any of its turns goes on.
async fn end_orphans(services: Services) {
    let ended = bash::end_orphans(services.home.path()).await;
    if ended > 0 {
        tracing::warn!(ended, "commands of an earlier daemon were still running");
    }
    services.orphans_gone.cancel();
}

/// Tells every client when `config.json` can no longer be read (ruling 24).
async fn warn_of_config(services: Services) {
    let mut settings = services.config.subscribe();
    loop {
        let broken = settings.borrow_and_update().broken.clone();
        if let Some(text) = broken {
            tracing::warn!(text, "config.json cannot be read: the last good configuration holds");
            let line = jsonl::broadcast_warning(&text, "config_invalid");
            if services.listener.send(ListenerMsg::Broadcast(line)).is_err() {
                tracing::debug!("nobody listens yet: a warning was not sent");
            }
        }
        if settings.changed().await.is_err() {
            return;
        }
    }
}

/// Reads the configuration again whenever somebody asks for it.
async fn reload(config: ConfigHandle, asked: Arc<Notify>) {
    loop {
        asked.notified().await;
        match config.reload().await {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(error) => tracing::error!(error = error.message, "the configuration was not read again"),
        }
    }
}

/// Finishes what the store was given. An actor counts as stopped a moment before its state is gone, and
/// the Store's state holds the writer.
async fn close(mut writer: Arc<Writer>) {
    let deadline = tokio::time::Instant::now() + CLOSE_LIMIT;
    let writer = loop {
        match Arc::try_unwrap(writer) {
            Ok(writer) => break writer,
            Err(_) if tokio::time::Instant::now() > deadline => {
                return tracing::error!("the store is still in use at the end");
            }
            Err(shared) => writer = shared,
        }
        tokio::time::sleep(LET_GO).await;
    };
    match tokio::task::spawn_blocking(move || writer.close(CLOSE_LIMIT)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::error!(%error, "the store did not close in good order"),
        Err(error) => tracing::error!(%error, "closing the store was cut off"),
    }
}

impl Actor for Root {
    type Msg = DaemonMsg;
    type State = RootState;
    type Arguments = RootArgs;

    async fn pre_start(
        &self,
        me: ActorRef<DaemonMsg>,
        args: RootArgs,
    ) -> Result<RootState, ActorProcessingErr> {
        args.services.daemon.point(Some(me.clone()));
        let mut state = RootState { args, children: Vec::new(), tasks: Tasks::default(), stopping: false };
        state.tasks.spawn(reload(state.args.services.config.clone(), Arc::clone(&state.args.reload)));
        state.tasks.spawn(end_orphans(state.args.services.clone()));
        state.tasks.spawn(warn_of_config(state.args.services.clone()));
        for service in SERVICES {
            let cell = state.start(&me, service).await?;
            let child =
                Child { service, cell: Some(cell), since: Instant::now(), backoff: Backoff::default() };
            state.children.push(child);
        }
        Ok(state)
    }

    async fn handle(
        &self,
        me: ActorRef<DaemonMsg>,
        message: DaemonMsg,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            DaemonMsg::Drain(reply) => state.drain(&me, reply),
            DaemonMsg::Stop => me.stop(Some("shutdown".to_owned())),
            DaemonMsg::Restart(service) => state.restart(&me, service).await?,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<DaemonMsg>,
        event: SupervisionEvent,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => state.ended(&me, cell.get_id(), &error.to_string()),
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                state.ended(&me, cell.get_id(), reason.as_deref().unwrap_or("it ended early"))
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }

    async fn post_stop(
        &self,
        _me: ActorRef<DaemonMsg>,
        state: &mut RootState,
    ) -> Result<(), ActorProcessingErr> {
        state.tasks.shutdown().await;
        let children = state.children.iter().rev().filter_map(|child| child.cell.clone()).collect();
        stop_in_order(children, "daemon stops", STOP_BUDGET).await;
        state.args.services.daemon.point(None);
        Ok(())
    }
}

impl RootState {
    /// Starts one service and points its slot at it.
    async fn start(
        &self,
        me: &ActorRef<DaemonMsg>,
        service: Service,
    ) -> Result<ActorCell, ActorProcessingErr> {
        let (root, services) = (me.get_cell(), self.args.services.clone());
        let name = |name: &str| Some(name.to_owned());
        Ok(match service {
            Service::Store => {
                let writer = Arc::clone(&self.args.writer);
                let (actor, _) = Actor::spawn_linked(name("store"), StoreActor, writer, root).await?;
                self.args.store_slot.point(Some(actor.clone()));
                actor.get_cell()
            }
            Service::Config => {
                let (actor, _) = Actor::spawn_linked(name("config"), Config, services.config, root).await?;
                actor.get_cell()
            }
            Service::Locks => services.locks.spawn_linked(root).await?.get_cell(),
            Service::Sessions => {
                let slot = services.sessions.clone();
                let (actor, _) = Actor::spawn_linked(name("sessions"), Sessions, services, root).await?;
                slot.point(Some(actor.clone()));
                actor.get_cell()
            }
            Service::Listener => {
                let slot = services.listener.clone();
                let args = ListenerArgs { bound: Arc::clone(&self.args.bound), services };
                let (actor, _) = Actor::spawn_linked(name("listener"), Listener, args, root).await?;
                slot.point(Some(actor.clone()));
                actor.get_cell()
            }
        })
    }

    /// Tells all sessions to end their turns; the caller says stop once its client has heard.
    fn drain(&mut self, me: &ActorRef<DaemonMsg>, reply: RpcReplyPort<()>) {
        self.stopping = true;
        self.args.services.stopping.store(true, Ordering::Release);
        let sessions = self.args.services.sessions.clone();
        self.tasks.spawn(async move {
            if sessions.ask(SessionsMsg::Drain, DRAIN_LIMIT).await.is_none() {
                tracing::warn!("not all turns ended in time");
            }
            answer(reply, ());
        });
        me.send_after(DRAIN_LIMIT + STOP_AFTER_DRAIN, || DaemonMsg::Stop);
    }

    /// A service ended although nobody stopped it: again after the usual delays, then the daemon gives up.
    fn ended(&mut self, me: &ActorRef<DaemonMsg>, id: ActorId, why: &str) -> Result<(), ActorProcessingErr> {
        let mine = |child: &&mut Child| child.cell.as_ref().is_some_and(|cell| cell.get_id() == id);
        let Some(child) = self.children.iter_mut().find(mine) else { return Ok(()) };
        let service = child.service;
        child.cell = None;
        if self.stopping {
            return Ok(());
        }
        tracing::error!(?service, why, "a service ended");
        match child.backoff.failed(child.since.elapsed()) {
            Verdict::Restart { delay, .. } => {
                me.send_after(delay, move || DaemonMsg::Restart(service));
                Ok(())
            }
            Verdict::GiveUp => Err(self.give_up(service, why)),
        }
    }

    /// The process must not look healthy.
    fn give_up(&self, service: Service, why: &str) -> ActorProcessingErr {
        let failure = format!("the {service:?} service failed for good: {why}");
        self.args.failure.get_or_init(|| failure.clone());
        failure.into()
    }

    async fn restart(
        &mut self,
        me: &ActorRef<DaemonMsg>,
        service: Service,
    ) -> Result<(), ActorProcessingErr> {
        let missing = |child: &&Child| child.service == service && child.cell.is_none();
        if self.stopping || !self.children.iter().any(|child| missing(&child)) {
            return Ok(());
        }
        let started = self.start(me, service).await;
        let Some(child) = self.children.iter_mut().find(|child| child.service == service) else {
            return Ok(());
        };
        match started {
            Ok(cell) => {
                (child.cell, child.since) = (Some(cell), Instant::now());
                tracing::info!(?service, "a service was started again");
                Ok(())
            }
            Err(error) => match child.backoff.failed(Duration::ZERO) {
                Verdict::Restart { delay, .. } => {
                    me.send_after(delay, move || DaemonMsg::Restart(service));
                    Ok(())
                }
                Verdict::GiveUp => Err(self.give_up(service, &error.to_string())),
            },
        }
    }
}
