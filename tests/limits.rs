//! How close the daemon is to what the machine can do. Ratios are taken in one run; the bounds are for a
//! release build (`cargo test --release --test limits`), a debug build gets more room.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]
#![allow(clippy::print_stderr, reason = "figures are what this is about")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use kit::{Daemon, Home};
use seekclaw_protocol::ReasoningLevel;
use seekclaw_storage::record::log::{Body, Entry, Notice};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::store::{Batch, Options, Store, Write as Change};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[path = "kit/lib.rs"]
mod kit;

/// Events of the big store; a million by hand: `SEEKCLAW_MANY_EVENTS=1000000`.
const MANY_EVENTS: u64 = 50_000;
/// Events of one commit while the big store is filled.
const BATCH: u64 = 5_000;

/// The bound for the build under test.
fn bound<T>(release: T, debug: T) -> T {
    let is_debug = kit::home::program() == env!("CARGO_BIN_EXE_seekclaw") && cfg!(debug_assertions);
    if is_debug { debug } else { release }
}

/// The median time of `count` round trips of one line.
fn round_trip(socket: &Path, line: &[u8], count: usize) -> Duration {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut answer = Vec::new();
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let before = Instant::now();
            stream.write_all(line).unwrap();
            answer.clear();
            reader.read_until(b'\n', &mut answer).unwrap();
            before.elapsed()
        })
        .collect();
    times.sort();
    times[count / 2]
}

/// A server that sends back what it reads, and nothing else.
fn echo_server(socket: &Path) -> tokio::runtime::Runtime {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listener = runtime.block_on(async { tokio::net::UnixListener::bind(socket).unwrap() });
    runtime.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                stream.write_all(&buffer[..count]).await.unwrap();
            }
        }
    });
    runtime
}

#[test]
fn a_ping_takes_less_than_twice_a_raw_echo() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let echo_socket = home.path().join("echo.sock");
    let _echo = echo_server(&echo_socket);
    let line = b"{\"id\":1,\"method\":\"ping\"}\n";
    let best = |socket: &Path| round_trip(socket, line, 500);
    let (mut ping, mut echo) = (Duration::MAX, Duration::MAX);
    for _ in 0..8 {
        echo = echo.min(best(&echo_socket));
        ping = ping.min(best(&home.socket()));
    }
    let ratio = ping.as_secs_f64() / echo.as_secs_f64();
    eprintln!("ping {ping:?}, raw echo {echo:?}, ratio {ratio:.2}");
    assert!(ratio < bound(2.0, 20.0), "ping {ping:?}, raw echo {echo:?}, ratio {ratio:.2}");
    drop(daemon);
}

#[test]
fn a_daemon_listens_at_once() {
    let best = (0..5)
        .map(|_| {
            let home = Home::new();
            let before = Instant::now();
            let daemon = Daemon::start(&home);
            let took = before.elapsed();
            drop(daemon);
            took
        })
        .min()
        .unwrap();
    eprintln!("from nothing to listening: {best:?}");
    assert!(best < Duration::from_millis(bound(50, 1000)), "{best:?}");
}

fn row() -> SessionRow {
    SessionRow {
        uid: 7,
        key: SessionKey { scope: "global".to_owned(), id: "20260101-000000-abcdef".to_owned() },
        workspace: String::new(),
        title: "many events".to_owned(),
        archived: false,
        reasoning: ReasoningLevel::High,
        network: true,
        llm_rounds: 0,
        execution_steps: 0,
        input_tokens: 0,
        total_input_tokens: 0,
        cached_input_tokens: 0,
        output_tokens: 0,
        output_elapsed_ms: 0,
        created_at: 1,
        updated_at: 1,
        generation: 1,
        seq_reserved: u64::from(u32::MAX),
        messages: 0,
    }
}

/// Fills the store of `home` with events of about 300 bytes.
fn fill(home: &Home, events: u64) {
    home.make_state();
    let (writer, _, _) = Store::open(&home.state().join("seekclaw.redb"), &Options::default()).unwrap();
    let mut next = 1;
    while next <= events {
        let entries = (next..=events.min(next + BATCH - 1)).map(|seq| {
            let notice =
                Notice::Warning { text: format!("{seq} {}", "x".repeat(260)), code: "filler".to_owned() };
            Entry { seq, at: 1, turn: "0123456789abcdef".to_owned(), body: Body::Notice(notice) }
        });
        let append = Change::Append { session: 7, entries: entries.collect() };
        let (done, stored) = std::sync::mpsc::channel();
        let writes = vec![Change::PutSession(row()), append];
        let done = Box::new(move |result| done.send(result).unwrap());
        assert!(writer.submit(Batch { writes, done }).is_ok());
        stored.recv().unwrap().unwrap();
        next += BATCH;
    }
    writer.close(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_store_with_many_events_opens_at_once_after_a_kill() {
    let many = std::env::var("SEEKCLAW_MANY_EVENTS").ok().and_then(|text| text.parse().ok());
    let home = Home::new();
    fill(&home, many.unwrap_or(MANY_EVENTS));
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    client.ok("session.new", serde_json::json!({"global": true}));
    daemon.kill();
    let before = Instant::now();
    let daemon = Daemon::start(&home);
    let took = before.elapsed();
    eprintln!("open after a kill: {took:?}");
    assert!(took < Duration::from_millis(bound(400, 2000)), "{took:?}");
    let sessions = daemon.connect().json("session.list", serde_json::json!({"global": true}));
    assert_eq!(sessions.as_array().unwrap().len(), 2);
}
