//! A provider on raw TCP: it says exactly the bytes of its script, one reply per request, and keeps
//! what it was asked.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// A part of a reply.
#[derive(Clone)]
pub(crate) enum Part {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing for a while.
    Pause(Duration),
    /// Nothing until the client has gone.
    Hang,
    /// The connection is reset instead of closed.
    Reset,
}

/// One reply.
pub(crate) type Script = Vec<Part>;

/// What a client sent.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Request line and headers.
    pub(crate) head: String,
    /// The body.
    pub(crate) body: serde_json::Value,
}

impl Asked {
    /// A header of the request.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }
}

/// The server; it ends when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    gone: Arc<Notify>,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers the first request with the first script, and so on; a request too many is reset.
    pub(crate) async fn start(scripts: Vec<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, gone) = (Arc::<Mutex<Vec<Asked>>>::default(), Arc::new(Notify::new()));
        let mut tasks = JoinSet::new();
        let scripts = Arc::new(Mutex::new(VecDeque::from(scripts)));
        let (kept, left) = (Arc::clone(&asked), Arc::clone(&gone));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        tasks.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (scripts, kept, left) = (Arc::clone(&scripts), Arc::clone(&kept), Arc::clone(&left));
                open.spawn(async move {
                    // A client that goes away ends its connection, not the test.
                    serve(stream, &scripts, &kept, &left).await.unwrap_or_default();
                });
            }
        });
        Self { address, asked, gone, connections, _tasks: tasks }
    }

    /// Base URL for a provider.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Connections that were opened.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Returns once a client has closed a hanging connection.
    pub(crate) async fn client_gone(&self) {
        tokio::time::timeout(Duration::from_secs(10), self.gone.notified()).await.unwrap();
    }
}

async fn serve(
    mut stream: TcpStream,
    scripts: &Mutex<VecDeque<Script>>,
    asked: &Mutex<Vec<Asked>>,
    gone: &Notify,
) -> io::Result<()> {
    while let Some(request) = read_request(&mut stream).await? {
        asked.lock().unwrap().push(request);
        let script = scripts.lock().unwrap().pop_front().unwrap_or_else(|| vec![Part::Reset]);
        for part in script {
            match part {
                Part::Bytes(bytes) => stream.write_all(&bytes).await?,
                Part::Pause(time) => tokio::time::sleep(time).await,
                Part::Hang => {
                    let mut byte = [0];
                    while stream.read(&mut byte).await.unwrap_or(0) > 0 {}
                    gone.notify_one();
                    return Ok(());
                }
                Part::Reset => {
                    stream.set_zero_linger()?;
                    return Ok(());
                }
            }
        }
        if !stays_open(asked) {
            break;
        }
    }
    Ok(())
}

/// Whether the request asked for a connection that is used again (only the test of that does).
fn stays_open(asked: &Mutex<Vec<Asked>>) -> bool {
    asked.lock().unwrap().last().is_some_and(|asked| asked.header("x-keep-open").is_some())
}

async fn read_request(stream: &mut TcpStream) -> io::Result<Option<Asked>> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let asked = Asked { head, body: serde_json::Value::Null };
            let length: usize = asked.header("content-length").unwrap_or("0").parse().unwrap();
            if bytes.len() >= end + 4 + length {
                let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default();
                return Ok(Some(Asked { body, ..asked }));
            }
        }
        match stream.read(&mut buffer).await? {
            0 => return Ok(None),
            read => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

/// Bytes as they are.
pub(crate) fn bytes(text: &str) -> Part {
    Part::Bytes(text.as_bytes().to_vec())
}

/// Head of a stream whose end is the end of the connection.
pub(crate) fn stream_head() -> Part {
    bytes("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

/// One event with a text delta.
pub(crate) fn text(text: &str) -> Part {
    let frame = serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    bytes(&format!("data: {frame}\n\n"))
}

/// Finish reason, figures and end mark.
pub(crate) fn end() -> Part {
    bytes(concat!(
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n",
        "data: [DONE]\n\n"
    ))
}

/// A whole answer.
pub(crate) fn answer(said: &str) -> Script {
    vec![stream_head(), text(said), end()]
}

/// A status with headers and a JSON body.
pub(crate) fn status(status: u16, headers: &str, body: &str) -> Script {
    let length = body.len();
    vec![bytes(&format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))]
}
