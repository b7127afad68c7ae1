//! `kill -9` of a process that writes: nothing that was acknowledged is lost, nothing is there twice, and
//! the store opens at once. `cargo test -p seekclaw-storage --test kill -- 1000000` measures a big one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "test")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use seekclaw_protocol::ReasoningLevel;
use seekclaw_storage::record::log::{Body, Entry, Note};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::store::{Batch, Committed, Options, Store, Write, WriteError, Writer};

const SESSION: u64 = 7;
/// One store that is repaired by reading it, one that is too big for that.
const EVENTS: [u64; 2] = [20_000, 100_000];
const EVENT_BYTES: usize = 270;
const BATCH: u64 = 50;
/// Batches under way while the store is filled.
const WINDOW: usize = 64;
/// The issue asks for 400 ms with a million events, whatever their number.
const OPEN_LIMIT: Duration = Duration::from_millis(400);
const WAIT: Duration = Duration::from_secs(60);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [command, path, events] if command == "fill" => fill(Path::new(path), events.parse().unwrap()),
        _ => match arguments.iter().find_map(|argument| argument.parse().ok()) {
            Some(events) => check(events),
            None => EVENTS.into_iter().for_each(check),
        },
    }
}

type Told = Receiver<Result<Committed, WriteError>>;

fn submit(writer: &Writer, writes: Vec<Write>) -> Told {
    let (tell, told) = channel();
    writer.submit(Batch { writes, done: Box::new(move |answer| tell.send(answer).unwrap()) }).unwrap();
    told
}

fn settle(told: &Told) {
    told.recv_timeout(WAIT).unwrap().unwrap();
}

fn append(first: u64, count: u64) -> Vec<Write> {
    let body = Body::Note(Note { text: "e".repeat(EVENT_BYTES) });
    let entry =
        |seq| Entry { seq, at: 1_780_000_000_000, turn: "00ff00ff00ff00ff".to_owned(), body: body.clone() };
    vec![Write::Append { session: SESSION, entries: (first..first + count).map(entry).collect() }]
}

/// The victim: fills a store, says so, and goes on with one event a commit until it is killed.
fn fill(path: &Path, events: u64) {
    let (writer, _, _) = Store::open(path, &Options::default()).unwrap();
    settle(&submit(&writer, vec![Write::PutSession(session())]));
    let mut waiting = VecDeque::new();
    for first in (1..=events).step_by(usize::try_from(BATCH).unwrap()) {
        waiting.push_back(submit(&writer, append(first, BATCH.min(events - first + 1))));
        if waiting.len() >= WINDOW {
            settle(&waiting.pop_front().unwrap());
        }
    }
    waiting.iter().for_each(settle);
    for seq in events + 1.. {
        settle(&submit(&writer, append(seq, 1)));
        println!("{seq}");
    }
}

/// Reads what the victim acknowledged, and kills it in the middle of its work.
fn kill_after(mut victim: Child, lines: usize) -> u64 {
    let mut acknowledged = 0;
    let mut output = BufReader::new(victim.stdout.take().unwrap()).lines();
    for line in output.by_ref().take(lines) {
        acknowledged = line.unwrap().parse().unwrap();
    }
    victim.kill().unwrap();
    // A line may be cut by the kill.
    let rest = output.map_while(Result::ok).filter_map(|line| line.parse().ok());
    let acknowledged = rest.fold(acknowledged, u64::max);
    victim.wait().unwrap();
    acknowledged
}

fn check(events: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.redb");
    let started = Instant::now();
    let victim = Command::new(std::env::current_exe().unwrap())
        .args(["fill".as_ref(), path.as_os_str(), events.to_string().as_ref()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let acknowledged = kill_after(victim, 100);
    println!("{events} events written in {:?}, killed after {acknowledged}", started.elapsed());

    let (writer, reader, report) = Store::open(&path, &Options::default()).unwrap();
    let bytes = reader.stats().store_bytes;
    println!("opened in {:?} ({bytes} bytes, full repair: {})", report.took, report.repaired);
    assert!(report.took < OPEN_LIMIT, "opening took {:?}", report.took);

    let last = reader.last_seq(SESSION).unwrap();
    assert!(last >= acknowledged, "{acknowledged} was acknowledged, {last} is the last one");
    assert!(last <= acknowledged + 1, "only one event was under way");
    let mut next = 1;
    let each = &mut |entry: Entry| {
        assert_eq!(entry.seq, next);
        next += 1;
        ControlFlow::Continue(())
    };
    reader.log(SESSION, 0, each).unwrap();
    assert_eq!(next, last + 1);
    settle(&submit(&writer, append(last + 1, 1)));
    println!("test kill ... ok");
}

fn session() -> SessionRow {
    SessionRow {
        uid: SESSION,
        key: SessionKey { scope: "global".to_owned(), id: "s".to_owned() },
        workspace: String::new(),
        title: String::new(),
        archived: false,
        reasoning: ReasoningLevel::High,
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
        generation: 1,
        seq_reserved: 1,
        messages: 0,
    }
}
