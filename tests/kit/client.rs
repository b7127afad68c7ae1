//! A client of the socket that sees every byte.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::events::is_terminal;
use super::{LIMIT, until_some};

/// One connection. Lines that nobody waited for yet are kept.
pub struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
    scanned: usize,
    next_id: i64,
    /// Every line so far, in order.
    pub lines: Vec<Value>,
}

impl Client {
    /// Connects; the daemon may still be about to listen.
    #[track_caller]
    pub fn connect(socket: &Path) -> Self {
        let stream = until_some("a connection", || UnixStream::connect(socket).ok());
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Self { stream, buffer: Vec::new(), scanned: 0, next_id: 1, lines: Vec::new() }
    }

    /// Says hello.
    #[track_caller]
    pub fn hello(&mut self, client: &str) -> Value {
        self.json("client.hello", json!({ "clientId": client }))
    }

    /// Sends bytes as they are.
    #[track_caller]
    pub fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends bytes to a peer that may hang up meanwhile.
    pub fn try_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends a request under the next id.
    #[track_caller]
    pub fn send(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        self.raw(format!("{}\n", json!({"id": id, "method": method, "params": params})));
        id
    }

    /// Closes the sending half.
    pub fn finish_sending(&mut self) {
        self.stream.shutdown(std::net::Shutdown::Write).unwrap();
    }

    /// Sends and waits for the terminal line.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.terminal(id)
    }

    /// Sends, and expects a `result`; its text.
    #[track_caller]
    pub fn ok(&mut self, method: &str, params: Value) -> String {
        let line = self.call(method, params.clone());
        assert_eq!(line["event"], "result", "{method} {params}: {line}");
        line["data"].as_str().unwrap().to_owned()
    }

    /// Sends, and expects a `result` that holds a JSON document.
    #[track_caller]
    pub fn json(&mut self, method: &str, params: Value) -> Value {
        serde_json::from_str(&self.ok(method, params)).unwrap()
    }

    /// Sends, and expects an `error`; its text and code.
    #[track_caller]
    pub fn error(&mut self, method: &str, params: Value) -> (String, String) {
        let line = self.call(method, params.clone());
        assert_eq!(line["event"], "error", "{method} {params}: {line}");
        (line["data"].as_str().unwrap().to_owned(), line["details"]["code"].as_str().unwrap().to_owned())
    }

    /// The terminal line of request `id`.
    #[track_caller]
    pub fn terminal(&mut self, id: i64) -> Value {
        self.find(&format!("the end of request {id}"), |line| line["id"] == id && is_terminal(line))
    }

    /// The first line of request `id` with that event.
    #[track_caller]
    pub fn event(&mut self, id: i64, event: &str) -> Value {
        self.find(&format!("{event} of request {id}"), |line| line["id"] == id && line["event"] == event)
    }

    /// The first line of request `id` with that event and data.
    #[track_caller]
    pub fn event_saying(&mut self, id: i64, event: &str, data: &str) -> Value {
        let what = format!("{event} {data} of request {id}");
        self.find(&what, |line| line["id"] == id && line["event"] == event && line["data"] == data)
    }

    /// Every line of request `id`, to its end.
    #[track_caller]
    pub fn stream_of(&mut self, id: i64) -> Vec<Value> {
        self.terminal(id);
        self.seen(id)
    }

    /// Every line of request `id` so far.
    pub fn seen(&self, id: i64) -> Vec<Value> {
        self.lines.iter().filter(|line| line["id"] == id).cloned().collect()
    }

    /// The first line that `wanted` accepts, among those that came and those that will.
    #[track_caller]
    pub fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + LIMIT;
        let mut looked = 0;
        loop {
            while looked < self.lines.len() {
                if wanted(&self.lines[looked]) {
                    return self.lines[looked].clone();
                }
                looked += 1;
            }
            match self.read_line(deadline) {
                Ok(Some(line)) => self.lines.push(line),
                Ok(None) => panic!("the daemon hung up before {what}; lines: {:#?}", self.tail()),
                Err(error) => panic!("waiting for {what}: {error}; lines: {:#?}", self.tail()),
            }
        }
    }

    /// The next line, whatever it is; `None` when the daemon has hung up.
    #[track_caller]
    pub fn next(&mut self) -> Option<Value> {
        let line = self.read_line(Instant::now() + LIMIT).expect("no line in time");
        self.lines.extend(line.clone());
        line
    }

    /// The next line as bytes, its end included.
    #[track_caller]
    pub fn next_bytes(&mut self) -> Vec<u8> {
        self.read_bytes(Instant::now() + LIMIT).expect("no line in time").expect("the daemon hung up")
    }

    /// Reads until the daemon hangs up.
    #[track_caller]
    pub fn until_closed(&mut self) -> Vec<Value> {
        let from = self.lines.len();
        while self.next().is_some() {}
        self.lines[from..].to_vec()
    }

    fn tail(&self) -> Vec<String> {
        let skip = self.lines.len().saturating_sub(15);
        self.lines.iter().skip(skip).map(Value::to_string).collect()
    }

    fn read_line(&mut self, deadline: Instant) -> io::Result<Option<Value>> {
        let Some(bytes) = self.read_bytes(deadline)? else { return Ok(None) };
        let line = serde_json::from_slice(&bytes);
        Ok(Some(line.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)))))
    }

    fn read_bytes(&mut self, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let rest = self.buffer.split_off(self.scanned + at + 1);
                self.scanned = 0;
                return Ok(Some(std::mem::replace(&mut self.buffer, rest)));
            }
            self.scanned = self.buffer.len();
            let left = deadline.saturating_duration_since(Instant::now());
            self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let mut part = [0; 64 * 1024];
            match self.stream.read(&mut part) {
                Ok(0) => return Ok(None),
                Ok(read) => self.buffer.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
