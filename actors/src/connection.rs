//! The Connection actor: one client of the local socket.
//!
//! A reader task decodes lines and sends them here with a permit; quick requests are answered at once, the
//! others go through one lane in order of arrival, so that cancel and steer never wait. A writer task owns
//! the socket's other half and pulls session events by cursor. When the client goes, so does this actor;
//! sessions watch it and end the turns that it owned.

mod lane;
mod reader;
mod turns;
pub(crate) mod writer;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use interprocess::local_socket::tokio::Stream;
use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use seekclaw_protocol::chat::{CancelParams, SteerParams};
use seekclaw_protocol::hello::{HelloParams, HelloResult};
use seekclaw_protocol::limits::{MAX_ANSWERS_QUEUED, MAX_REQUESTS_IN_FLIGHT};
use seekclaw_protocol::method::Command;
use seekclaw_protocol::{ErrorCode, RequestId, WireError, jsonl};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::services::Services;
use crate::session::Accepted;
use crate::supervision::Tasks;
use turns::OwnTurns;
use writer::Out;

pub(crate) use lane::Answer;
pub(crate) use turns::Token;

/// How long a client that has sent its last line may wait for the answers.
const LINGER: Duration = Duration::from_secs(3);
/// How long the writer may take to flush when the daemon stops.
const FLUSH_LIMIT: Duration = Duration::from_millis(300);

/// What a connection is told by its own tasks.
pub(crate) enum ConnectionMsg {
    /// A request, or what is wrong with it.
    Arrived(Box<reader::Arrival>),
    /// A `chat` of this client was accepted.
    Accepted(u64, Box<Accepted>),
    /// A `chat` of this client has its terminal line.
    Over(u64),
    /// A line for every client; one that does not read misses it.
    Broadcast(Bytes),
    /// The client has sent its last line.
    Eof,
    /// The connection is of no more use.
    Ended(String),
}

/// What a connection is started with.
pub(crate) struct ConnectionArgs {
    pub(crate) stream: Stream,
    pub(crate) number: u64,
    pub(crate) services: Services,
    /// One of the places of the listener; free again when this actor ends.
    pub(crate) place: OwnedSemaphorePermit,
}

/// The actor.
pub(crate) struct Connection;

pub(crate) struct State {
    me: ActorRef<ConnectionMsg>,
    number: u64,
    services: Services,
    client: Option<Arc<str>>,
    turns: OwnTurns,
    lane: Option<mpsc::Sender<lane::Item>>,
    out: Option<mpsc::Sender<Out>>,
    tasks: Tasks,
    writer: Option<tokio::task::JoinHandle<()>>,
    _place: OwnedSemaphorePermit,
}

impl Actor for Connection {
    type Msg = ConnectionMsg;
    type State = State;
    type Arguments = ConnectionArgs;

    async fn pre_start(
        &self,
        me: ActorRef<ConnectionMsg>,
        args: ConnectionArgs,
    ) -> Result<State, ActorProcessingErr> {
        let stream = Arc::new(args.stream);
        let (out, outbox) = mpsc::channel(MAX_ANSWERS_QUEUED);
        let (lane, items) = mpsc::channel(MAX_REQUESTS_IN_FLIGHT);
        let permits = Arc::new(Semaphore::new(MAX_REQUESTS_IN_FLIGHT));
        let mut tasks = Tasks::default();
        tasks.spawn(reader::run(Arc::clone(&stream), me.clone(), permits));
        tasks.spawn(lane::run(lane::Lane::new(args.services.clone(), me.clone(), out.clone()), items));
        let writer = writer::Writer::new(stream, outbox, me.clone(), args.services.store.reader().clone());
        let writer = crate::supervision::attached(writer.run());
        Ok(State {
            me,
            number: args.number,
            services: args.services,
            client: None,
            turns: OwnTurns::default(),
            lane: Some(lane),
            out: Some(out),
            tasks,
            writer: Some(writer),
            _place: args.place,
        })
    }

    async fn handle(
        &self,
        _me: ActorRef<ConnectionMsg>,
        message: ConnectionMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ConnectionMsg::Arrived(arrival) => state.arrived(*arrival),
            ConnectionMsg::Accepted(token, accepted) => state.turns.accepted(token, *accepted),
            ConnectionMsg::Over(token) => state.turns.over(token),
            ConnectionMsg::Broadcast(line) => state.broadcast(line),
            ConnectionMsg::Eof => state.eof(),
            ConnectionMsg::Ended(why) => state.me.stop(Some(why)),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<ConnectionMsg>,
        event: SupervisionEvent,
        _state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        tracing::debug!(%event, "a connection has no children: ignored");
        Ok(())
    }

    async fn post_stop(
        &self,
        _me: ActorRef<ConnectionMsg>,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        tracing::debug!(connection = state.number, "connection ends");
        (state.lane, state.out) = (None, None);
        state.tasks.shutdown().await;
        if let Some(mut writer) = state.writer.take()
            && tokio::time::timeout(FLUSH_LIMIT, &mut writer).await.is_err()
        {
            writer.abort();
        }
        Ok(())
    }
}

impl State {
    #[expect(clippy::wildcard_enum_match_arm, reason = "all that is not quick takes the lane")]
    fn arrived(&mut self, arrival: reader::Arrival) {
        let reader::Arrival { id, command, permit } = arrival;
        let command = match command {
            Ok(command) => command,
            Err(refused) => {
                return self.answer(jsonl::error(id, &refused.error, refused.session.as_deref()), permit);
            }
        };
        match command {
            Command::Ping(_) => self.answer(jsonl::answer(id, "pong", ""), permit),
            Command::ClientHello(hello) => self.hello(id, hello, permit),
            Command::AgentCancel(params) => self.cancel(id, params, permit),
            Command::AgentSteer(params) => self.steer(id, params, permit),
            other if lane::runs_aside(&other) => self.run_aside(id, other, permit),
            other => self.enqueue(id, other, permit),
        }
    }

    /// Hands a line to the writer. There is always room: each line holds a permit, and there are fewer
    /// permits than places.
    fn answer(&self, line: Bytes, permit: OwnedSemaphorePermit) {
        let Some(out) = &self.out else { return };
        if out.try_send(Out::Line(line, Some(permit))).is_err() {
            tracing::debug!(connection = self.number, "the writer has ended: an answer is dropped");
        }
    }

    fn broadcast(&self, line: Bytes) {
        let Some(out) = &self.out else { return };
        if out.try_send(Out::Line(line, None)).is_err() {
            tracing::warn!(connection = self.number, "a client does not read: it misses a broadcast");
        }
    }

    fn hello(&mut self, id: RequestId, hello: HelloParams, permit: OwnedSemaphorePermit) {
        if self.client.as_deref().is_some_and(|known| *known != *hello.client_id) {
            let text = "This connection already said hello as another client";
            let error = WireError::new(ErrorCode::Conflict, text);
            return self.answer(jsonl::error(id, &error, None), permit);
        }
        self.client = Some(hello.client_id.as_str().into());
        let result = HelloResult::current(self.number.to_string(), env!("CARGO_PKG_VERSION"));
        self.answer(jsonl::json_result(id, &result), permit);
    }

    fn enqueue(&mut self, id: RequestId, command: Command, permit: OwnedSemaphorePermit) {
        let token = matches!(command, Command::Chat(_)).then(|| self.turns.begin(id));
        let item = lane::Item { id, command, permit, client: self.client.clone(), token };
        let Some(lane) = &self.lane else { return };
        if lane.try_send(item).is_err() {
            tracing::debug!(connection = self.number, "the lane has ended: a request is dropped");
        }
    }

    /// Network probes and the like take long and change nothing: nobody waits behind them.
    fn run_aside(&mut self, id: RequestId, command: Command, permit: OwnedSemaphorePermit) {
        let Some(out) = self.out.clone() else { return };
        let services = self.services.clone();
        self.tasks.spawn(async move {
            let line = crate::dispatch::read_only(&services, id, command).await;
            lane::send(&out, Out::Line(line, Some(permit))).await;
        });
    }

    fn cancel(&mut self, id: RequestId, params: CancelParams, permit: OwnedSemaphorePermit) {
        let Some(out) = self.out.clone() else { return };
        let abroad = self.client.is_some().then(|| self.services.clone());
        let cancelling = self.turns.cancel(params, abroad);
        self.tasks.spawn(async move {
            let line = jsonl::answer(id, "result", &cancelling.await);
            lane::send(&out, Out::Line(line, Some(permit))).await;
        });
    }

    fn steer(&mut self, id: RequestId, params: SteerParams, permit: OwnedSemaphorePermit) {
        let Some(out) = self.out.clone() else { return };
        let abroad = self.client.is_some().then(|| self.services.clone());
        let steering = self.turns.steer(params, abroad);
        self.tasks.spawn(async move {
            let line = steering.await.line(id);
            lane::send(&out, Out::Line(line, Some(permit))).await;
        });
    }

    /// The client will send nothing more: what it asked for is answered, for a while.
    fn eof(&mut self) {
        (self.lane, self.out) = (None, None);
        let resident = self.client.is_some();
        if !resident {
            self.turns.cancel_all();
        }
        // A client that only shut its sending side still hears its turns out; one that has gone shows
        // with the next write.
        if !resident || self.turns.is_empty() {
            self.me.send_after(LINGER, || ConnectionMsg::Ended("lingered".to_owned()));
        }
    }
}
