//! The Sessions actor: registry and supervisor of live sessions.
//!
//! Connections ask it for a session; it starts the actor if none lives. At start it opens every session
//! that a crash left with open turns. A session that fails is taken out, and opened again after the usual
//! delays, since its open turns must be settled.

use std::collections::HashMap;
use std::time::Duration;

use ractor::{
    Actor, ActorId, ActorProcessingErr, ActorRef, ActorRuntime, RpcReplyPort, SpawnErr, SupervisionEvent,
};
use seekclaw_protocol::SessionId;
use seekclaw_storage::record::session::SessionKey;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::services::Services;
use crate::session::{Session, SessionArgs, SessionMsg};
use crate::supervision::{Backoff, Tasks, Verdict, answer, stop_together, tell};

/// How long all sessions together may take to end their turns when the daemon stops (contract 4.6).
pub(crate) const DRAIN_LIMIT: Duration = Duration::from_millis(800);
/// How long one session may take to stop.
const STOP_BUDGET: Duration = Duration::from_millis(1200);

/// What the registry is asked.
pub(crate) enum SessionsMsg {
    /// A live session, opened if need be.
    Open(SessionKey, RpcReplyPort<ActorRef<SessionMsg>>),
    /// All live sessions.
    Live(RpcReplyPort<Vec<(SessionKey, ActorRef<SessionMsg>)>>),
    /// The actor of a session did not start.
    NotStarted(ActorId, String),
    /// These sessions have open turns: settle them.
    Recover(Vec<SessionKey>),
    /// End all turns of all sessions and answer when that is done.
    Drain(RpcReplyPort<()>),
}

/// The actor.
pub(crate) struct Sessions;

pub(crate) struct State {
    services: Services,
    live: HashMap<SessionKey, Entry>,
    failures: HashMap<SessionKey, Backoff>,
    /// The daemon stops: sessions that are opened now take nothing new either.
    stopping: bool,
    tasks: Tasks,
}

struct Entry {
    actor: ActorRef<SessionMsg>,
    since: Instant,
}

impl Actor for Sessions {
    type Msg = SessionsMsg;
    type State = State;
    type Arguments = Services;

    async fn pre_start(
        &self,
        me: ActorRef<SessionsMsg>,
        services: Services,
    ) -> Result<State, ActorProcessingErr> {
        let mut tasks = Tasks::default();
        let store = services.store.clone();
        tasks.spawn(async move {
            store.settled().await;
            let reader = store.reader().clone();
            match tokio::task::spawn_blocking(move || reader.open_turns()).await {
                Ok(Ok(turns)) => {
                    tell(&me, SessionsMsg::Recover(turns.into_iter().map(|turn| turn.key).collect()))
                }
                Ok(Err(error)) => tracing::error!(%error, "cannot look for interrupted turns"),
                Err(error) => tracing::error!(%error, "looking for interrupted turns was cut off"),
            }
        });
        Ok(State { services, live: HashMap::new(), failures: HashMap::new(), stopping: false, tasks })
    }

    async fn handle(
        &self,
        me: ActorRef<SessionsMsg>,
        message: SessionsMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            SessionsMsg::Open(key, reply) => state.open_for(&me, key, reply),
            SessionsMsg::Live(reply) => answer(reply, state.list()),
            SessionsMsg::NotStarted(id, error) => state.failed(&me, id, &error),
            SessionsMsg::Recover(keys) => state.recover(&me, keys),
            SessionsMsg::Drain(reply) => state.drain(reply),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SessionsMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(cell, error) => {
                state.failed(&me, cell.get_id(), &error.to_string())
            }
            SupervisionEvent::ActorTerminated(cell, _, Some(reason))
                if reason == "killed" || reason == "actor_task_cancelled" =>
            {
                state.failed(&me, cell.get_id(), &reason);
            }
            SupervisionEvent::ActorTerminated(cell, ..) => {
                state.remove(cell.get_id());
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<SessionsMsg>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.tasks.shutdown().await;
        stop_together(me.get_children(), "daemon stops", STOP_BUDGET).await;
        Ok(())
    }
}

impl State {
    fn open_for(
        &mut self,
        me: &ActorRef<SessionsMsg>,
        key: SessionKey,
        reply: RpcReplyPort<ActorRef<SessionMsg>>,
    ) {
        if let Some(actor) = self.open(me, key) {
            answer(reply, actor);
        }
    }

    fn open(&mut self, me: &ActorRef<SessionsMsg>, key: SessionKey) -> Option<ActorRef<SessionMsg>> {
        if let Some(entry) = self.live.get(&key) {
            return Some(entry.actor.clone());
        }
        let id = SessionId::parse(&key.id)?;
        let args = SessionArgs { key: key.clone(), id, services: self.services.clone() };
        match ActorRuntime::spawn_linked_instant(None, Session, args, me.get_cell()) {
            Ok((actor, started)) => {
                self.watch_start(me, actor.get_id(), started);
                self.live.insert(key, Entry { actor: actor.clone(), since: Instant::now() });
                if self.stopping {
                    let (port, _) = ractor::concurrency::oneshot();
                    tell(&actor, SessionMsg::Drain(RpcReplyPort::from(port)));
                }
                Some(actor)
            }
            Err(error) => {
                tracing::error!(%error, session = %key.id, "cannot open the session");
                None
            }
        }
    }

    /// An actor that is killed before it has started is reported by nobody else.
    fn watch_start<T: Send + 'static>(
        &mut self,
        me: &ActorRef<SessionsMsg>,
        id: ActorId,
        started: JoinHandle<Result<T, SpawnErr>>,
    ) {
        let me = me.clone();
        self.tasks.spawn(async move {
            let failed = match started.await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            tell(&me, SessionsMsg::NotStarted(id, failed));
        });
    }

    fn list(&self) -> Vec<(SessionKey, ActorRef<SessionMsg>)> {
        self.live.iter().map(|(key, entry)| (key.clone(), entry.actor.clone())).collect()
    }

    fn recover(&mut self, me: &ActorRef<SessionsMsg>, keys: Vec<SessionKey>) {
        for key in keys {
            self.open(me, key);
        }
    }

    /// Every session gets the same time; those that need longer are stopped by the daemon's end.
    fn drain(&mut self, reply: RpcReplyPort<()>) {
        self.stopping = true;
        let actors: Vec<_> = self.live.values().map(|entry| entry.actor.clone()).collect();
        self.tasks.spawn(async move {
            let drained = actors.iter().map(|actor| actor.call(SessionMsg::Drain, Some(DRAIN_LIMIT)));
            for outcome in futures_util::future::join_all(drained).await {
                if outcome.is_err() {
                    tracing::debug!("a session ended before it was drained");
                }
            }
            answer(reply, ());
        });
    }

    fn remove(&mut self, id: ActorId) -> Option<(SessionKey, Entry)> {
        let key =
            self.live.iter().find(|(_, entry)| entry.actor.get_id() == id).map(|(key, _)| key.clone())?;
        let entry = self.live.remove(&key)?;
        Some((key, entry))
    }

    /// Its open turns are settled by opening it again.
    fn failed(&mut self, me: &ActorRef<SessionsMsg>, id: ActorId, error: &str) {
        let Some((key, entry)) = self.remove(id) else { return };
        tracing::error!(session = %key.id, error, "a session failed");
        match self.failures.entry(key.clone()).or_default().failed(entry.since.elapsed()) {
            Verdict::Restart { delay, .. } => {
                me.send_after(delay, move || SessionsMsg::Recover(vec![key]));
            }
            Verdict::GiveUp => {
                self.failures.remove(&key);
                tracing::error!(session = %key.id, "given up until somebody opens it");
            }
        }
    }
}

#[cfg(test)]
mod tests;
