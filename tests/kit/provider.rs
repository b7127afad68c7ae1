//! A provider that does exactly what the test says, request by request, and remembers what it was asked.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use serde_json::{Value, json};

use super::LIMIT;
use super::gate::Gate;
use super::http::{Connection, Request};
use super::openai::{Piece, Reply};

type Rule = Box<dyn Fn(&Request) -> Option<Reply> + Send>;

/// The provider; stops when it is dropped.
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
}

#[derive(Default)]
struct State {
    script: VecDeque<Reply>,
    rules: Vec<Rule>,
    requests: Vec<Request>,
    gates: Vec<Gate>,
}

impl Provider {
    /// A provider whose script is empty: it refuses what it is not prepared for.
    pub fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &of_thread));
        Self { address, shared }
    }

    /// A provider that will answer these requests.
    pub fn script(replies: impl IntoIterator<Item = Reply>) -> Self {
        let provider = Self::new();
        replies.into_iter().for_each(|reply| provider.then(reply));
        provider
    }

    /// Adds what is done for the request after those that are scripted.
    pub fn then(&self, reply: Reply) {
        let mut state = self.state();
        state.gates.extend(reply.pieces.iter().filter_map(gate_of));
        state.script.push_back(reply);
    }

    /// Answers requests that the rule knows, whatever the order; later rules come after earlier ones.
    pub fn rule(&self, rule: impl Fn(&Request) -> Option<Reply> + Send + 'static) {
        self.state().rules.push(Box::new(rule));
    }

    /// Where it listens, as a `baseUrl`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What `config.json` says about it. Its two models are `m` and `n`.
    pub fn config(&self, id: &str) -> Value {
        let model = |id: &str| json!({"id": id, "contextWindow": 128_000, "capabilities": {"vision": true, "thinking": true}});
        json!({"id": id, "kind": "openai", "baseUrl": self.base_url(), "apiKey": "test-key-123",
            "timeoutSeconds": 20, "models": [model("m"), model("n")]})
    }

    /// All completion requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Waits for completion request number `number`, from 1.
    #[track_caller]
    pub fn request(&self, number: usize) -> Request {
        let deadline = Instant::now() + LIMIT;
        let mut state = self.state();
        while state.requests.len() < number {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no request {number}, only {}", state.requests.len());
            state = self.shared.changed.wait_timeout(state, left).unwrap().0;
        }
        state.requests[number - 1].clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.state().gates.iter().for_each(Gate::open);
        // Wakes the accepting thread; if that fails it ends with the process.
        drop(TcpStream::connect(self.address));
    }
}

impl Request {
    /// The conversation without the system prompt.
    pub fn messages(&self) -> Vec<Value> {
        let all = self.body["messages"].as_array().cloned().unwrap_or_default();
        all.into_iter().filter(|message| message["role"] != "system").collect()
    }

    /// The texts of one role, in order.
    pub fn texts(&self, role: &str) -> Vec<String> {
        let of_role = |message: Value| (message["role"] == role).then(|| text_of(&message));
        self.messages().into_iter().filter_map(of_role).collect()
    }

    /// Role and text of the whole conversation.
    pub fn outline(&self) -> Vec<(String, String)> {
        let role = |message: &Value| message["role"].as_str().unwrap_or_default().to_owned();
        self.messages().iter().map(|message| (role(message), text_of(message))).collect()
    }

    /// Names of the offered tools.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
    }

    /// The system prompt.
    pub fn system(&self) -> String {
        self.body["messages"].as_array().and_then(|all| all.first()).map(text_of).unwrap_or_default()
    }
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn gate_of(piece: &Piece) -> Option<Gate> {
    if let Piece::Gate(gate) = piece { Some(gate.clone()) } else { None }
}

fn hang_of(piece: &Piece) -> Option<&Gate> {
    if let Piece::Hang(gone) = piece { Some(gone) } else { None }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        if let Ok(stream) = stream {
            // A connection that fails belongs to a daemon that has gone, or was told to fail.
            std::thread::spawn(move || drop(serve(stream, &shared)));
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.request()? {
        let reply = shared.reply_to(request);
        match play(&mut connection, &reply) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(error) => {
                // The daemon hung up before the provider fell silent: that is what the test waits for.
                reply.pieces.iter().filter_map(hang_of).for_each(Gate::mark);
                return Err(error);
            }
        }
    }
    Ok(())
}

impl Shared {
    fn reply_to(&self, request: Request) -> Reply {
        if request.method == "GET" {
            return Reply::body(200, r#"{"data":[{"id":"m"},{"id":"n"}]}"#);
        }
        let mut state = self.state.lock().unwrap();
        let by_rule = state.rules.iter().find_map(|rule| rule(&request));
        let reply = by_rule.or_else(|| state.script.pop_front());
        state.requests.push(request);
        self.changed.notify_all();
        reply.unwrap_or_else(|| Reply::refusal(418, "the script of this test has no answer left"))
    }
}

/// Does what the reply says; false if the connection is over.
fn play(connection: &mut Connection, reply: &Reply) -> io::Result<bool> {
    let resets = reply.pieces.iter().any(|piece| matches!(piece, Piece::Reset));
    if !resets {
        connection.take_rest()?;
    }
    let (held, pieces) = match reply.pieces.split_first() {
        Some((Piece::Gate(gate), rest)) => (Some(gate), rest),
        _ => (None, &reply.pieces[..]),
    };
    if let Some(gate) = held {
        gate.pass(|| connection.is_gone());
    }
    if reply.status != 0 {
        connection.write(head(reply).as_bytes())?;
    }
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => connection.chunk(bytes)?,
            Piece::Gate(gate) => gate.pass(|| connection.is_gone()),
            Piece::Hang(gone) => {
                connection.wait_until_gone();
                gone.mark();
                return Ok(false);
            }
            Piece::Cut | Piece::Reset => return Ok(false),
        }
    }
    connection.write(b"0\r\n\r\n")?;
    Ok(true)
}

fn head(reply: &Reply) -> String {
    let lines: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!("HTTP/1.1 {} Scripted\r\n{lines}Transfer-Encoding: chunked\r\n\r\n", reply.status)
}
