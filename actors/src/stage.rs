//! A whole tree on a disk of its own, for tests: real sessions, turns, tools, locks and configuration, no
//! sockets, a scripted model, and a store whose commits run where a paused clock waits for them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "test")]

pub(crate) mod model;
pub(crate) mod store;
pub(crate) mod tool;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use seekclaw_protocol::{Event, ReasoningLevel, TurnId, WireError};
use seekclaw_storage::home::Home;
use seekclaw_storage::record::log::{Body, Entry};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::record::turn::TurnRow;
use seekclaw_storage::store::Write;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigHandle, LastGood, Start};
use crate::history::fold::History;
use crate::history::{Message, Role};
use crate::locks::Locks;
use crate::services::Services;
use crate::session::log::{Page, SessionLog};
use crate::session::record::event_of;
use crate::session::{Accepted, NewGuidance, NewPrompt, SessionMsg, TurnInfo, random};
use crate::sessions::{Sessions, SessionsMsg};
use crate::supervision::{RESTART_DELAYS, Slot, Tasks, attached};
use crate::turn::faults::How;
use crate::workspace::Surroundings;
use model::Script;
use store::TestStore;

/// Nothing in a test takes longer, in the test's own time.
const LIMIT: Duration = Duration::from_secs(90);

/// The tree.
pub(crate) struct Stage {
    _disk: tempfile::TempDir,
    pub(crate) work: PathBuf,
    pub(crate) services: Services,
    pub(crate) store: Arc<TestStore>,
    pub(crate) script: Arc<Script>,
    root: ActorCell,
    tasks: Mutex<Tasks>,
}

/// A session on it.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) key: SessionKey,
    pub(crate) uid: u64,
}

/// What somebody who watches a turn has seen, with the moment since the watch began.
pub(crate) type Seen = Arc<Mutex<Vec<(Duration, Event)>>>;

/// An actor that has children and does not mind their end.
struct Parent;

impl Actor for Parent {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// An actor that panics at its first message.
struct Fragile;

impl Actor for Fragile {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<()>, (): (), (): &mut ()) -> Result<(), ActorProcessingErr> {
        panic!("injected into an owner")
    }
}

/// An actor that panics when it is told anything.
pub(crate) async fn fragile_actor() -> ActorRef<()> {
    Actor::spawn(None, Fragile, ()).await.unwrap().0
}

/// An actor that does nothing but live.
pub(crate) async fn idle_actor() -> ActorCell {
    Actor::spawn(None, Parent, ()).await.unwrap().0.get_cell()
}

impl Stage {
    /// A tree whose model follows `script`.
    pub(crate) async fn new(script: Script) -> Self {
        Self::with_config(script, json!({})).await
    }

    /// As [`Stage::new`], with further members of `agent` in the configuration.
    pub(crate) async fn with_config(script: Script, agent: serde_json::Value) -> Self {
        let disk = tempfile::tempdir_in(fast_disk()).unwrap();
        let top = disk.path().canonicalize().unwrap();
        let (home, work) = (Home::at(&top.join("home")).unwrap(), top.join("work"));
        home.prepare().unwrap();
        std::fs::create_dir_all(work.join(".git")).unwrap();
        let script = model::register(script);
        std::fs::write(home.config(), config(&script.provider, agent)).unwrap();
        let root = idle_actor().await;
        let slot = Slot::default();
        let store = Arc::new(TestStore::open(&home.store(), slot, root.clone()).await);
        let last_good: Arc<dyn LastGood> = Arc::new(store.kept_config());
        let surroundings = Surroundings::new(work.clone(), [home.path().to_owned()]);
        let config = ConfigHandle::load(Start { file: home.config(), surroundings, last_good });
        crate::config::kit::spawn(&config).await;
        let locks = Locks::new();
        locks.spawn_linked(root.clone()).await.unwrap();
        let orphans_gone = CancellationToken::new();
        orphans_gone.cancel();
        let services = Services {
            home: Arc::new(home),
            store: store.handle.clone(),
            config,
            locks,
            sessions: Slot::default(),
            listener: Slot::default(),
            daemon: Slot::default(),
            orphans_gone,
            stopping: Arc::default(),
            cwd: Arc::new(work.clone()),
        };
        let stage = Self { _disk: disk, work, services, store, script, root, tasks: Mutex::default() };
        stage.start_sessions().await;
        stage
    }

    /// Starts the registry, for the first time or again.
    pub(crate) async fn start_sessions(&self) -> ActorRef<SessionsMsg> {
        let (services, root) = (self.services.clone(), self.root.clone());
        let (actor, _) = Actor::spawn_linked(None, Sessions, services, root).await.unwrap();
        self.services.sessions.point(Some(actor.clone()));
        actor
    }

    /// A new session in the workspace.
    pub(crate) async fn seat(&self) -> Seat {
        let (key, uid) = (SessionKey { scope: "test".to_owned(), id: format!("s{:x}", random()) }, random());
        let row = SessionRow {
            uid,
            key: key.clone(),
            workspace: self.work.to_string_lossy().into_owned(),
            title: String::new(),
            archived: false,
            reasoning: ReasoningLevel::None,
            network: false,
            llm_rounds: 0,
            execution_steps: 0,
            input_tokens: 0,
            total_input_tokens: 0,
            cached_input_tokens: 0,
            output_tokens: 0,
            output_elapsed_ms: 0,
            created_at: 0,
            updated_at: 0,
            generation: 0,
            seq_reserved: 1,
            messages: 0,
        };
        self.store.put(vec![Write::PutSession(row)]).await;
        Seat { key, uid }
    }

    /// The live session.
    pub(crate) async fn open(&self, seat: &Seat) -> ActorRef<SessionMsg> {
        let key = seat.key.clone();
        self.services.sessions.ask(|port| SessionsMsg::Open(key, port), LIMIT).await.expect("a session")
    }

    /// Sends a prompt whose turn nobody owns.
    pub(crate) async fn prompt(&self, seat: &Seat, text: &str) -> Result<Accepted, WireError> {
        self.prompt_of(seat, text, None).await
    }

    /// Sends a prompt whose turn ends with `owner`.
    pub(crate) async fn prompt_of(
        &self,
        seat: &Seat,
        text: &str,
        owner: Option<ActorCell>,
    ) -> Result<Accepted, WireError> {
        let prompt = NewPrompt { owner, ..Self::new_prompt(text) };
        let session = self.open(seat).await;
        session.call(|port| SessionMsg::Prompt(Box::new(prompt), port), Some(LIMIT)).await.unwrap().unwrap()
    }

    /// What a session that may not be there says to a prompt.
    pub(crate) async fn prompt_if_open(&self, seat: &Seat, text: &str) -> Option<WireError> {
        let (session, prompt) = (self.open(seat).await, Self::new_prompt(text));
        match session.call(|port| SessionMsg::Prompt(Box::new(prompt), port), Some(LIMIT)).await {
            Ok(CallResult::Success(answered)) => Some(answered.err().expect("no session")),
            Ok(CallResult::Timeout) => panic!("no answer"),
            Ok(CallResult::SenderError) | Err(_) => None,
        }
    }

    /// A prompt whose turn nobody owns.
    pub(crate) fn new_prompt(text: &str) -> NewPrompt {
        NewPrompt {
            text: text.to_owned(),
            images: Vec::new(),
            reasoning: None,
            mode: None,
            model: None,
            client: None,
            owner: None,
        }
    }

    /// Guides a turn.
    pub(crate) async fn steer(&self, seat: &Seat, turn: &TurnId, text: &str) -> Result<(), WireError> {
        steer(&self.open(seat).await, turn, text).await
    }

    /// Cancels a turn; whether there was one.
    pub(crate) async fn cancel(&self, seat: &Seat, turn: &TurnId) -> bool {
        let (session, turn) = (self.open(seat).await, turn.clone());
        session.call(|port| SessionMsg::Cancel(turn, port), Some(LIMIT)).await.unwrap().unwrap()
    }

    /// Turns that are open as the session says.
    pub(crate) async fn turns(&self, seat: &Seat) -> Vec<TurnInfo> {
        self.open(seat).await.call(SessionMsg::Turns, Some(LIMIT)).await.unwrap().unwrap()
    }

    /// Watches a turn from its beginning.
    pub(crate) fn watch(&self, accepted: &Accepted) -> Seen {
        let seen = Seen::default();
        let (log, turn) = (Arc::clone(&accepted.log), accepted.turn.clone());
        self.tasks.lock().unwrap().spawn(follow(log, turn, accepted.after, Arc::clone(&seen)));
        seen
    }

    /// Waits until no turn of the session is open in the store.
    pub(crate) async fn settled(&self, seat: &Seat) {
        let done = tokio::time::timeout(LIMIT, async {
            while !self.open_turns(seat).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        assert!(done.await.is_ok(), "a turn stays open: {:#?}", self.log(seat).await);
    }

    /// Turns of the session that are open in the store.
    pub(crate) async fn open_turns(&self, seat: &Seat) -> Vec<TurnRow> {
        let (reader, uid) = (self.services.store.reader().clone(), seat.uid);
        let turns = tokio::task::spawn_blocking(move || reader.open_turns().unwrap()).await.unwrap();
        turns.into_iter().filter(|turn| turn.session == uid).collect()
    }

    /// All that is stored of the session.
    pub(crate) async fn log(&self, seat: &Seat) -> Vec<Entry> {
        let (reader, uid) = (self.services.store.reader().clone(), seat.uid);
        let read = tokio::task::spawn_blocking(move || {
            let mut entries = Vec::new();
            let push = &mut |entry| {
                entries.push(entry);
                ControlFlow::Continue(())
            };
            reader.log(uid, 0, push).unwrap();
            entries
        });
        read.await.unwrap()
    }

    /// The stored row of the session.
    pub(crate) async fn row(&self, seat: &Seat) -> SessionRow {
        let (reader, key) = (self.services.store.reader().clone(), seat.key.clone());
        tokio::task::spawn_blocking(move || reader.session(&key).unwrap().unwrap()).await.unwrap()
    }

    /// The conversation as it is stored.
    pub(crate) async fn history(&self, seat: &Seat) -> Vec<Message> {
        let mut history = History::default();
        self.log(seat).await.iter().for_each(|entry| history.apply(entry));
        history.messages
    }

    /// How the turns of the session ended, in order.
    pub(crate) async fn ends(&self, seat: &Seat) -> Vec<(String, Event)> {
        let end = |entry: Entry| {
            let event = matches!(entry.body, Body::Finished(_)).then(|| event_of(&entry.body))?;
            Some((entry.turn, event.unwrap()))
        };
        self.log(seat).await.into_iter().filter_map(end).collect()
    }

    /// The store's actor is killed and comes back after the usual delay.
    pub(crate) fn store_dies(&self) -> How {
        let store = Arc::clone(&self.store);
        How::Do(Arc::new(move |_| {
            store.kill();
            let store = Arc::clone(&store);
            attached(async move {
                tokio::time::sleep(RESTART_DELAYS[0]).await;
                store.start().await;
            });
        }))
    }

    pub(crate) fn put_file(&self, name: &str, text: &str) {
        std::fs::write(self.work.join(name), text).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.work.join(name)).unwrap()
    }
}

/// Guides a turn of a session.
pub(crate) async fn steer(
    session: &ActorRef<SessionMsg>,
    turn: &TurnId,
    text: &str,
) -> Result<(), WireError> {
    let guidance = NewGuidance { id: format!("{:x}", random()), text: text.to_owned(), images: Vec::new() };
    let guided = session.call(|port| SessionMsg::Steer(turn.clone(), Arc::new(guidance), port), Some(LIMIT));
    match guided.await {
        Ok(CallResult::Success(answered)) => answered,
        _ => Err(crate::session::no_turn()),
    }
}

/// Waits until `seen` has something that `fits`.
pub(crate) async fn until(seen: &Seen, fits: impl Fn(&Event) -> bool) {
    let done = tokio::time::timeout(LIMIT, async {
        while !seen.lock().unwrap().iter().any(|(_, event)| fits(event)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    assert!(done.await.is_ok(), "it did not come: {:#?}", seen.lock().unwrap());
}

/// Waits for the end of a turn.
pub(crate) async fn until_end(seen: &Seen) -> Event {
    until(seen, Event::is_terminal).await;
    let seen = seen.lock().unwrap();
    seen.iter().map(|(_, event)| event.clone()).find(Event::is_terminal).unwrap()
}

/// Texts of what the user said, in order.
pub(crate) fn said_by_user(history: &[Message]) -> Vec<&str> {
    let user = history.iter().filter(|message| message.role == Role::User);
    user.map(|message| message.text.as_str()).collect()
}

/// Thousands of commits happen in these tests, and none of them needs to survive a power cut.
pub(crate) fn fast_disk() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

async fn follow(log: Arc<SessionLog>, turn: TurnId, mut cursor: u64, seen: Seen) {
    let (wake, began) = (Arc::new(Notify::new()), Instant::now());
    log.watch(&wake);
    loop {
        if let Page::Events(events, reached) = log.page(cursor, Some(&turn), usize::MAX) {
            cursor = reached;
            let mut seen = seen.lock().unwrap();
            seen.extend(events.iter().map(|published| (began.elapsed(), published.event.clone())));
        }
        if log.is_closed() {
            return;
        }
        wake.notified().await;
    }
}

fn config(provider: &str, agent: serde_json::Value) -> String {
    let mut config = json!({
        "providers": [{"id": provider, "baseUrl": "http://scripted.invalid", "models": [{"id": "m"}]}],
        "agent": {"autoVerify": false, "mode": "auto"},
    });
    for (name, value) in agent.as_object().unwrap() {
        config["agent"][name] = value.clone();
    }
    config.to_string()
}
