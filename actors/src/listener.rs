//! The Listener actor: accepts clients of the local socket and supervises their connections.
//!
//! One listener for the life of the daemon; accept errors never end it. A socket file is removed only if it
//! is stale, and at the end only if it is still ours. A connection that fails takes nobody with it.

mod socket;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::traits::tokio::Listener as _;
use ractor::{Actor, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};
use seekclaw_protocol::limits::MAX_CONNECTIONS;
use seekclaw_protocol::{ErrorCode, WireError, jsonl};
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connection::{Connection, ConnectionArgs, ConnectionMsg};
use crate::services::Services;
use crate::supervision::{Tasks, stop_together, tell};

pub(crate) use socket::{Bound, SocketError};

/// Wait after a failed accept: descriptors may be used up, and a spin would not help.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long one connection may take to flush when the daemon stops.
const STOP_BUDGET: Duration = Duration::from_millis(500);
/// How long a client that is turned away may take to read why.
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);

/// What the listener is told.
pub(crate) enum ListenerMsg {
    /// A client has connected, and there is a place for it.
    Connected(Stream, OwnedSemaphorePermit),
    /// A line for every client.
    Broadcast(Bytes),
}

/// What the listener is started with.
pub(crate) struct ListenerArgs {
    pub(crate) bound: Arc<Bound>,
    pub(crate) services: Services,
}

/// The actor.
pub(crate) struct Listener;

pub(crate) struct State {
    services: Services,
    tasks: Tasks,
    next: u64,
}

impl Actor for Listener {
    type Msg = ListenerMsg;
    type State = State;
    type Arguments = ListenerArgs;

    async fn pre_start(
        &self,
        me: ActorRef<ListenerMsg>,
        args: ListenerArgs,
    ) -> Result<State, ActorProcessingErr> {
        let mut tasks = Tasks::default();
        tasks.spawn(accept(args.bound, me));
        Ok(State { services: args.services, tasks, next: 1 })
    }

    async fn handle(
        &self,
        me: ActorRef<ListenerMsg>,
        message: ListenerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ListenerMsg::Connected(stream, place) => state.connected(&me, stream, place),
            ListenerMsg::Broadcast(line) => broadcast(&me, &line),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ListenerMsg>,
        event: SupervisionEvent,
        _state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let SupervisionEvent::ActorFailed(cell, error) = event {
            tracing::error!(connection = ?cell.get_name(), %error, "a connection failed");
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        me: ActorRef<ListenerMsg>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        state.tasks.shutdown().await;
        stop_together(me.get_children(), "daemon stops", STOP_BUDGET).await;
        Ok(())
    }
}

impl State {
    fn connected(&mut self, me: &ActorRef<ListenerMsg>, stream: Stream, place: OwnedSemaphorePermit) {
        let number = self.next;
        self.next += 1;
        let args = ConnectionArgs { stream, number, services: self.services.clone(), place };
        if let Err(error) = ActorRuntime::spawn_linked_instant(None, Connection, args, me.get_cell()) {
            tracing::error!(%error, "cannot serve a client");
        }
    }
}

fn broadcast(me: &ActorRef<ListenerMsg>, line: &Bytes) {
    for child in me.get_children() {
        tell(&ActorRef::<ConnectionMsg>::from(child), ConnectionMsg::Broadcast(line.clone()));
    }
}

/// Accepts for ever; a client beyond the bound is told so.
async fn accept(bound: Arc<Bound>, listener: ActorRef<ListenerMsg>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let stream = match bound.listener.accept().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a client");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if !socket::is_ours(&stream) {
            tracing::warn!("a client of another user was turned away");
            continue;
        }
        match Arc::clone(&places).try_acquire_owned() {
            Ok(place) => tell(&listener, ListenerMsg::Connected(stream, place)),
            Err(_) => turn_away(stream).await,
        }
    }
}

async fn turn_away(stream: Stream) {
    let text = format!("{MAX_CONNECTIONS} clients are connected already");
    let line = jsonl::error(0, &WireError::new(ErrorCode::Overloaded, text), None);
    if tokio::time::timeout(REFUSAL_LIMIT, (&stream).write_all(&line)).await.is_err() {
        tracing::debug!("a client that was turned away did not read why");
    }
}
