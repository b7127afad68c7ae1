//! What the tests of the file tools share: a workspace on disk and a context whose intents are recorded.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use seekclaw_storage::record::log::{Effect, Seen};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{NotRecorded, Reach, SeenFiles, ToolContext, ToolLimits, ToolReport};
use crate::locks::Locks;

type Hook = Box<dyn FnMut() -> Result<(), NotRecorded> + Send>;

/// A workspace, and what happened to it.
pub(super) struct Kit {
    _temp: tempfile::TempDir,
    pub(super) top: PathBuf,
    pub(super) ctx: ToolContext,
    pub(super) intents: Arc<Mutex<Vec<Effect>>>,
    on_declare: Arc<Mutex<Option<Hook>>>,
}

struct Idle;

impl Actor for Idle {
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

/// An actor that does nothing but live.
pub(super) async fn actor() -> ActorCell {
    Actor::spawn(None, Idle, ()).await.unwrap().0.get_cell()
}

impl Kit {
    pub(super) async fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path().canonicalize().unwrap();
        for dir in ["ws", "home", "outside"] {
            std::fs::create_dir(top.join(dir)).unwrap();
        }
        let locks = Locks::new();
        locks.spawn_linked(actor().await).await.unwrap();
        let (intents, on_declare) =
            (Arc::<Mutex<Vec<Effect>>>::default(), Arc::<Mutex<Option<Hook>>>::default());
        let (recorded, hook) = (intents.clone(), on_declare.clone());
        let ctx = ToolContext {
            call_id: "call_1".to_owned(),
            reach: Arc::new(Reach {
                root: top.join("ws"),
                additional: Vec::new(),
                home: top.join("home"),
                denied: Vec::new(),
            }),
            seen: Arc::new(SeenFiles::default()),
            locks,
            owner: "session/0a1b2c3d".to_owned(),
            holder: actor().await,
            declare: Arc::new(move |effect| {
                recorded.lock().unwrap().push(effect);
                let answer = hook.lock().unwrap().as_mut().map_or(Ok(()), |hook| hook());
                async move { answer }.boxed()
            }),
            cancel: CancellationToken::new(),
            limits: ToolLimits {
                output_chars: 10_000,
                bash_timeout: Duration::from_secs(1),
                lock_wait: Duration::from_secs(30),
            },
        };
        Self { _temp: temp, top, ctx, intents, on_declare }
    }

    /// Another session in the same workspace of the same daemon.
    pub(super) async fn another(&self, owner: &str) -> ToolContext {
        let mut ctx = self.ctx.clone();
        ctx.owner = owner.to_owned();
        ctx.holder = actor().await;
        ctx.seen = Arc::new(SeenFiles::default());
        ctx
    }

    /// Called when an intent is declared; its answer is that of the record.
    pub(super) fn on_declare(&self, hook: impl FnMut() -> Result<(), NotRecorded> + Send + 'static) {
        *self.on_declare.lock().unwrap() = Some(Box::new(hook));
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.top.join("ws").join(name)
    }

    pub(super) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.file(name), bytes).unwrap();
    }

    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap()
    }

    /// Files in the workspace folder; a temporary one left behind would be among them.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.top.join("ws")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(super) fn declared(&self) -> usize {
        self.intents.lock().unwrap().len()
    }

    /// What the session does once a result is recorded.
    pub(super) fn note(&self, report: &ToolReport) {
        report.seen.iter().for_each(|seen: &Seen| self.ctx.seen.note(seen));
    }
}

/// Arguments of a call.
pub(super) fn args(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}
