//! The client side of the JSONL protocol: an ordinary client of the local socket, like any other.
//! Requests are matched to answers by id; the events of a turn are taken one by one with `next`.
//! It says hello before anything else, so that turns outlive this process.

pub(crate) mod identity;
pub(crate) mod line;
pub(crate) mod refusal;
#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use interprocess::local_socket::GenericFilePath;
use interprocess::local_socket::tokio::Stream;
use interprocess::local_socket::tokio::prelude::*;
use seekclaw_protocol::{ErrorCode, RequestId};
use seekclaw_storage::lock::Owner;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::client::line::{Line, LineError, Lines};
use crate::place::Place;
use crate::status::{Failure, Status};

/// Version of the protocol that this client speaks.
pub(crate) const PROTOCOL: &str = "2.1";

/// Until then a daemon has accepted the connection and answered hello and ping, or it counts as hung.
const READY_LIMIT: Duration = Duration::from_secs(2);
/// For answers that need only the store.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// For answers that need a provider; its own limit is 120 s.
const PROBE_LIMIT: Duration = Duration::from_secs(180);
/// For handing one request over; 64 MiB pass in far less.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

const HELLO_ID: RequestId = 1;
const PING_ID: RequestId = 2;

/// Parameters of a request.
pub(crate) type Fields = Map<String, Value>;

/// What the daemon says about itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Hello {
    /// Version of its program.
    pub(crate) server_version: String,
    /// Version of its protocol.
    pub(crate) protocol: String,
}

/// Why there is no connection.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// Nobody listens there.
    Absent,
    /// The daemon is stopping, or went away during the greeting.
    Leaving,
    /// It accepts connections but does not answer.
    Silent,
    /// It answers, but we cannot work together, or the socket cannot be used.
    Failed(Failure),
}

/// One connection that has said hello.
#[derive(Debug)]
pub(crate) struct Client {
    stream: Arc<Stream>,
    lines: Lines,
    last_id: RequestId,
    hello: Hello,
}

impl Client {
    /// Connects, says hello, and waits until a ping is answered.
    pub(crate) async fn connect(place: &Place) -> Result<Self, ConnectError> {
        match tokio::time::timeout(READY_LIMIT, Self::greet(place)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(ConnectError::Silent),
        }
    }

    async fn greet(place: &Place) -> Result<Self, ConnectError> {
        let stream = Arc::new(open(place).await?);
        let mut client = Self { stream, lines: Lines::default(), last_id: PING_ID, hello: Hello::default() };
        let params = json!({
            "clientId": identity::client_id(&place.client_id()),
            "clientVersion": env!("CARGO_PKG_VERSION"),
            "protocol": PROTOCOL,
        });
        let mut bytes = encode(HELLO_ID, "client.hello", &params);
        bytes.extend(encode(PING_ID, "ping", &json!({})));
        if (&*client.stream).write_all(&bytes).await.is_err() {
            return Err(ConnectError::Leaving);
        }
        let (mut greeted, mut answered) = (false, false);
        while !(greeted && answered) {
            let Ok(line) = client.next().await else { return Err(ConnectError::Leaving) };
            match (line.id, line.event.as_str()) {
                (HELLO_ID, "result") => {
                    client.hello = accept_hello(&line, place)?;
                    greeted = true;
                }
                (PING_ID, "pong") => answered = true,
                (HELLO_ID | PING_ID | 0, "error") => return Err(refused_hello(&line, place)),
                _ => {}
            }
        }
        Ok(client)
    }

    /// What the daemon said about itself.
    pub(crate) fn hello(&self) -> &Hello {
        &self.hello
    }

    /// The process at the other end, where the system tells.
    pub(crate) fn peer_pid(&self) -> Option<i32> {
        self.stream.peer_creds().ok().and_then(|peer| peer.pid())
    }

    /// Sends a request and returns its id. That the daemon has gone shows in `next`, after what it said last.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        params: impl Into<Value>,
    ) -> Result<RequestId, Failure> {
        self.last_id += 1;
        let bytes = encode(self.last_id, method, &params.into());
        match tokio::time::timeout(WRITE_LIMIT, (&*self.stream).write_all(&bytes)).await {
            Ok(_) => Ok(self.last_id),
            Err(_) => Err(silent(&format!("take `{method}`"), WRITE_LIMIT)),
        }
    }

    /// The next line, whatever it belongs to. May be dropped midway without losing anything.
    pub(crate) async fn next(&mut self) -> Result<Line, Failure> {
        let gone = |why: &str| {
            Failure::new(Status::Unreachable, format!("lost the daemon: {why}"))
                .next("`seekclaw daemon logs` shows what happened; the next command starts it again")
        };
        let raw = match self.lines.next(&*self.stream).await {
            Ok(Some(raw)) => raw,
            Ok(None) => return Err(gone("it closed the connection")),
            Err(LineError::Io(error)) => return Err(gone(&error.to_string())),
            Err(LineError::TooLong) => return Err(mismatch("it sent a line that does not end")),
        };
        Line::parse(&raw).ok_or_else(|| mismatch("it sent a line that is no event"))
    }

    /// Sends a request and waits for its terminal line, whatever that is.
    pub(crate) async fn ask(&mut self, method: &str, params: impl Into<Value>) -> Result<Line, Failure> {
        let id = self.send(method, params).await?;
        let limit = match method {
            "provider.test" | "model.test" | "doctor.run" => PROBE_LIMIT,
            _ => ANSWER_LIMIT,
        };
        let answer = tokio::time::timeout(limit, self.terminal(id)).await;
        answer.unwrap_or_else(|_| Err(silent(&format!("answer `{method}`"), limit)))
    }

    async fn terminal(&mut self, id: RequestId) -> Result<Line, Failure> {
        loop {
            let line = self.next().await?;
            if line.is_terminal() && belongs(&line, id) {
                return Ok(line);
            }
        }
    }

    /// Sends a request and wants it done; `attempt` completes "cannot …".
    pub(crate) async fn call(
        &mut self,
        attempt: &str,
        method: &str,
        params: impl Into<Value>,
    ) -> Result<Line, Failure> {
        refusal::accepted(self.ask(method, params).await?, attempt, false)
    }

    /// As `call`, for commands that name a session: an unknown one is the user's mistake.
    pub(crate) async fn call_on_session(
        &mut self,
        attempt: &str,
        method: &str,
        params: impl Into<Value>,
    ) -> Result<Line, Failure> {
        refusal::accepted(self.ask(method, params).await?, attempt, true)
    }
}

/// Whether `line` is about request `id`. While one request is open, an error that the daemon cannot attribute is its.
pub(crate) fn belongs(line: &Line, id: RequestId) -> bool {
    line.id == id || (line.id == 0 && line.event == "error")
}

async fn open(place: &Place) -> Result<Stream, ConnectError> {
    place.check_socket_path().map_err(ConnectError::Failed)?;
    let socket = place.socket();
    let failed = |error: io::Error| {
        let text = format!("cannot connect to the daemon at {}: {error}", socket.display());
        ConnectError::Failed(
            Failure::new(Status::Unreachable, text).next("check the permissions of the daemon's home"),
        )
    };
    let name = socket.as_path().to_fs_name::<GenericFilePath>().map_err(failed)?;
    Stream::connect(name).await.map_err(|error| {
        let nobody = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused);
        if nobody { ConnectError::Absent } else { failed(error) }
    })
}

fn encode(id: RequestId, method: &str, params: &Value) -> Vec<u8> {
    let mut bytes = json!({"id": id, "method": method, "params": params}).to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

fn accept_hello(line: &Line, place: &Place) -> Result<Hello, ConnectError> {
    let hello: Hello = serde_json::from_str(&line.data)
        .map_err(|error| ConnectError::Failed(mismatch(&format!("its greeting cannot be read: {error}"))))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&hello.protocol) == major(PROTOCOL) {
        return Ok(hello);
    }
    let why =
        format!("it speaks protocol {}, this client {PROTOCOL} ({})", hello.protocol, place.home().display());
    Err(ConnectError::Failed(mismatch(&why)))
}

fn refused_hello(line: &Line, place: &Place) -> ConnectError {
    let code = line.code();
    if code == Some(ErrorCode::ShuttingDown) {
        return ConnectError::Leaving;
    }
    if code != Some(ErrorCode::Overloaded) {
        return ConnectError::Failed(mismatch(&format!("it refused the greeting: {}", line.data)));
    }
    let text = format!("the daemon at {} takes no further client: {}", place.socket().display(), line.data);
    ConnectError::Failed(
        Failure::new(Status::Unreachable, text).next("close other clients, or try again in a moment"),
    )
}

fn mismatch(why: &str) -> Failure {
    Failure::new(Status::Mismatch, format!("cannot work with the running daemon: {why}")).next(
        "client and daemon differ in version: `seekclaw daemon restart` starts the daemon of this version",
    )
}

fn silent(what: &str, limit: Duration) -> Failure {
    let text = format!("the daemon did not {what} within {} s", limit.as_secs());
    Failure::new(Status::Unreachable, text)
        .next("`seekclaw daemon logs` shows what it does; `seekclaw daemon restart` replaces it")
}

impl ConnectError {
    /// The error as a command that starts nothing tells it.
    pub(crate) fn into_failure(self, place: &Place) -> Failure {
        let at = place.socket();
        match self {
            Self::Failed(failure) => failure,
            Self::Absent => Failure::new(
                Status::Unreachable,
                format!("cannot reach the daemon at {}: it is not running", at.display()),
            )
            .next("start it with `seekclaw daemon start`"),
            Self::Leaving => Failure::new(
                Status::Unreachable,
                format!("cannot reach the daemon at {}: it is stopping", at.display()),
            )
            .next("try again in a moment"),
            Self::Silent => {
                let limit = READY_LIMIT.as_secs();
                let text = format!(
                    "the daemon at {} accepts connections but did not answer within {limit} s",
                    at.display()
                );
                let owner = Owner::read(&place.storage().lock());
                let process =
                    owner.map_or_else(|| "its process".to_owned(), |owner| format!("process {}", owner.pid));
                Failure::new(Status::Unreachable, text).next(format!(
                    "`seekclaw daemon logs` shows what it does; if it hangs, end {process} and run the command again"
                ))
            }
        }
    }
}
