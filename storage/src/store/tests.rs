//! The store through its public face, on real files; `faults` puts a failing disk below it.

use std::collections::HashSet;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};

use tempfile::TempDir;

use super::*;
use crate::record::log::{Body, Entry, Note};
use crate::record::session::{SessionKey, SessionRow};
use crate::record::turn::TurnRow;

mod faults;

const WAIT: Duration = Duration::from_secs(30);

fn key(scope: &str, id: &str) -> SessionKey {
    SessionKey { scope: scope.to_owned(), id: id.to_owned() }
}

fn session(uid: u64, scope: &str, id: &str, updated_at: i64) -> SessionRow {
    SessionRow {
        uid,
        key: key(scope, id),
        workspace: String::new(),
        title: format!("title of {id}"),
        archived: false,
        reasoning: seekclaw_protocol::ReasoningLevel::High,
        network: false,
        llm_rounds: 0,
        execution_steps: 0,
        input_tokens: 0,
        total_input_tokens: 0,
        cached_input_tokens: 0,
        output_tokens: 0,
        output_elapsed_ms: 0,
        created_at: 1,
        updated_at,
        generation: 1,
        seq_reserved: 1,
        messages: 0,
    }
}

fn turn(uid: u64, id: &str, prompt_seq: u64) -> TurnRow {
    TurnRow {
        session: uid,
        key: key("global", "a"),
        turn: id.to_owned(),
        prompt_seq,
        running: false,
        client_owned: false,
        client: String::new(),
        accepted_at: 1,
        touched_at: 1,
        deaths: 0,
        mode: String::new(),
        model: String::new(),
    }
}

fn note(seq: u64, bytes: usize) -> Entry {
    Entry { seq, at: 5, turn: String::new(), body: Body::Note(Note { text: "n".repeat(bytes) }) }
}

fn append(session: u64, seqs: impl Iterator<Item = u64>, bytes: usize) -> Write {
    Write::Append { session, entries: seqs.map(|seq| note(seq, bytes)).collect() }
}

fn submit(writer: &Writer, writes: Vec<Write>) -> Receiver<Result<Committed, WriteError>> {
    let (tell, told) = channel();
    let done: Done = Box::new(move |answer| tell.send(answer).unwrap());
    writer.submit(Batch { writes, done }).unwrap();
    told
}

fn store(writer: &Writer, writes: Vec<Write>) -> Result<Committed, WriteError> {
    submit(writer, writes).recv_timeout(WAIT).unwrap()
}

fn open(folder: &TempDir) -> (Writer, Reader, OpenReport) {
    Store::open(&folder.path().join("s.redb"), &Options::default()).unwrap()
}

fn seqs(reader: &Reader, session: u64, after: u64, limit: usize) -> Vec<u64> {
    let mut found = Vec::new();
    reader
        .log(session, after, &mut |entry| {
            found.push(entry.seq);
            if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
    found
}

fn ids(rows: &[SessionRow]) -> Vec<&str> {
    rows.iter().map(|row| row.key.id.as_str()).collect()
}

/// Compiles only if both can be shared between threads.
const _: () = {
    const fn shareable<T: Send + Sync>() {}
    shareable::<Writer>();
    shareable::<Reader>();
};

#[test]
fn new_store_is_private_and_everything_survives_reopening() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _, report) = open(&folder);
    assert!(report.created);
    let mode = fs::metadata(folder.path().join("s.redb")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let writes = vec![
        Write::PutSession(session(1, "global", "a", 10)),
        append(1, 1..=3, 10),
        Write::PutTurn(turn(1, "t", 1)),
        Write::PutImage { session: 1, id: "i".to_owned(), bytes: vec![1, 2] },
        Write::PutMeta { key: "m".to_owned(), value: vec![3] },
    ];
    store(&writer, writes).unwrap();
    writer.close(WAIT).unwrap();

    let (writer, reader, report) = open(&folder);
    assert!(!report.created && !report.repaired);
    assert_eq!(reader.session(&key("global", "a")).unwrap(), Some(session(1, "global", "a", 10)));
    assert_eq!(seqs(&reader, 1, 0, usize::MAX), [1, 2, 3]);
    assert_eq!(reader.open_turns().unwrap(), [turn(1, "t", 1)]);
    assert_eq!(reader.image(1, "i").unwrap(), Some(vec![1, 2]));
    assert_eq!(reader.meta("m").unwrap(), Some(vec![3]));
    assert_eq!(reader.counts().unwrap(), Counts { sessions: 1, log_rows: 1, turns: 1, images: 1 });
    assert_eq!(store(&writer, vec![append(1, 4..=4, 10)]).unwrap().commit, 2);
}

#[test]
fn many_submits_share_few_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1))]).unwrap();
    let waiting: Vec<_> = (1..=500).map(|seq| submit(&writer, vec![append(1, seq..=seq, 20)])).collect();
    let commits: HashSet<u64> =
        waiting.iter().map(|told| told.recv_timeout(WAIT).unwrap().unwrap().commit).collect();
    assert!(commits.len() <= 100, "{} commits", commits.len());
    assert_eq!(seqs(&reader, 1, 0, usize::MAX), (1..=500).collect::<Vec<_>>());
    let stats = writer.stats();
    assert_eq!((stats.commits, stats.batches), (commits.len() as u64 + 1, 501));
    assert!(stats.store_bytes > 0 && stats.last_commit > Duration::ZERO);
}

#[test]
fn full_queue_gives_the_batch_back() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _, _) = open(&folder);
    let (release, held) = channel::<()>();
    let hold: Done = Box::new(move |_| held.recv_timeout(WAIT).unwrap());
    writer.submit(Batch { writes: Vec::new(), done: hold }).unwrap();
    let mut taken = 0;
    let refused = loop {
        match writer.submit(Batch { writes: Vec::new(), done: Box::new(|_| {}) }) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SubmitError::Full(_)));
    // The thread may or may not have taken the first one out of the queue by then.
    assert!(taken + 1 >= QUEUE_BATCHES, "{taken}");
    release.send(()).unwrap();
    writer.close(WAIT).unwrap();
}

#[test]
fn sessions_come_newest_first_and_move_when_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    let rows = [session(1, "global", "a", 10), session(2, "global", "b", 30), session(3, "global", "c", 20)];
    let mut writes: Vec<Write> = rows.into_iter().map(Write::PutSession).collect();
    writes.push(Write::PutSession(session(4, "globalx", "other", 99)));
    store(&writer, writes).unwrap();
    assert_eq!(ids(&reader.sessions("global", true, None).unwrap()), ["b", "c", "a"]);
    assert_eq!(ids(&reader.sessions("global", true, Some(2)).unwrap()), ["b", "c"]);

    let archived = SessionRow { archived: true, ..session(1, "global", "a", 40) };
    store(&writer, vec![Write::PutSession(archived)]).unwrap();
    assert_eq!(ids(&reader.sessions("global", true, None).unwrap()), ["a", "b", "c"]);
    assert_eq!(ids(&reader.sessions("global", false, None).unwrap()), ["b", "c"]);
    assert_eq!(reader.latest_session("global").unwrap().unwrap().key.id, "b");
    assert_eq!(reader.latest_session("nowhere").unwrap(), None);
}

#[test]
fn delete_removes_everything_of_the_session_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    for uid in [u64::MAX, 7, 8] {
        let id = format!("s{uid}");
        let writes = vec![
            Write::PutSession(session(uid, "global", &id, 1)),
            append(uid, 1..=40, 1000),
            Write::PutTurn(turn(uid, "t", 1)),
            Write::PutImage { session: uid, id: "i".to_owned(), bytes: vec![1] },
        ];
        store(&writer, writes).unwrap();
    }
    let one = reader.counts().unwrap().log_rows / 3;
    let deletes = [7, u64::MAX].map(|uid| Write::DeleteSession(key("global", &format!("s{uid}"))));
    store(&writer, deletes.to_vec()).unwrap();
    assert_eq!(ids(&reader.sessions("global", true, None).unwrap()), ["s8"]);
    assert_eq!(reader.counts().unwrap(), Counts { sessions: 1, log_rows: one, turns: 1, images: 1 });
    assert_eq!(reader.image(8, "i").unwrap(), Some(vec![1]));
    assert_eq!((reader.last_seq(8).unwrap(), reader.last_seq(7).unwrap()), (40, 0));
    store(&writer, vec![Write::DeleteSession(key("global", "s7"))]).unwrap();
}

#[test]
fn late_writes_do_not_bring_a_deleted_session_back() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1))]).unwrap();
    store(&writer, vec![Write::DeleteSession(key("global", "a"))]).unwrap();
    let late = [
        Write::PutSession(session(1, "global", "a", 2)),
        append(1, 1..=1, 1),
        Write::PutTurn(turn(1, "t", 1)),
        Write::PutImage { session: 1, id: "i".to_owned(), bytes: vec![1] },
    ];
    for write in late {
        let unknown = WriteError::Invalid(InvalidWrite::UnknownSession { session: 1 });
        assert_eq!(store(&writer, vec![write]), Err(unknown));
    }
    store(&writer, vec![Write::PutSession(session(2, "global", "a", 3))]).unwrap();
    assert_eq!(reader.sessions("global", true, None).unwrap()[0].uid, 2);
}

#[test]
fn invalid_batch_fails_alone_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1)), append(1, 1..=5, 1)]).unwrap();
    let good = submit(&writer, vec![append(1, 6..=6, 1)]);
    let bad =
        submit(&writer, vec![Write::PutMeta { key: "m".to_owned(), value: vec![1] }, append(1, 6..=6, 1)]);
    let after = submit(&writer, vec![append(1, 7..=7, 1)]);
    assert!(good.recv_timeout(WAIT).unwrap().is_ok());
    let sequence = InvalidWrite::Sequence { session: 1, last: 6, seq: 6 };
    assert_eq!(bad.recv_timeout(WAIT).unwrap(), Err(WriteError::Invalid(sequence)));
    assert!(after.recv_timeout(WAIT).unwrap().is_ok());
    assert_eq!(reader.meta("m").unwrap(), None);
    assert_eq!(seqs(&reader, 1, 0, usize::MAX), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn contradictions_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1))]).unwrap();
    let cases = [
        (Write::PutSession(session(2, "global", "a", 1)), "session a exists already"),
        (
            Write::PutSession(session(1, "global", "b", 1)),
            "session with uid 0000000000000001 has another key",
        ),
        (Write::PutSession(session(3, "global", "", 1)), "session id is empty or contains a zero character"),
        (Write::PutSession(session(3, "a\0b", "c", 1)), "scope is empty or contains a zero character"),
        (append(9, 1..=1, 1), "no session with uid 0000000000000009"),
        (append(1, 0..=0, 1), "sequence number 0 of session 0000000000000001 does not follow 0"),
        (
            Write::PutMeta { key: "store.format".to_owned(), value: vec![] },
            "the name store.format is reserved",
        ),
        (append(1, 1..=1, crate::codec::MAX_RECORD_BYTES), "log entry cannot be encoded"),
    ];
    for (write, text) in cases {
        let error = store(&writer, vec![write]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("invalid write: {text}")), "{error}");
    }
    assert_eq!(writer.stats().commits, 1);
}

#[test]
fn a_batch_sees_its_own_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    let writes = vec![
        Write::PutSession(session(1, "global", "a", 1)),
        append(1, 1..=2, 1),
        append(1, 3..=3, 1),
        Write::DeleteSession(key("global", "a")),
        Write::PutSession(session(2, "global", "a", 1)),
        append(2, 1..=1, 1),
    ];
    store(&writer, writes).unwrap();
    assert_eq!((reader.last_seq(1).unwrap(), reader.last_seq(2).unwrap()), (0, 1));
    let twice = vec![append(2, 2..=3, 1), append(2, 3..=4, 1)];
    assert!(matches!(store(&writer, twice), Err(WriteError::Invalid(InvalidWrite::Sequence { .. }))));
    assert_eq!(reader.last_seq(2).unwrap(), 1);
}

#[test]
fn log_is_read_from_the_middle_to_where_the_reader_stops() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(5, "global", "a", 1))]).unwrap();
    store(&writer, vec![Write::PutSession(session(6, "global", "b", 1)), append(6, 1..=2000, 50)]).unwrap();
    // Gaps, as after a crash that lost reserved numbers.
    for first in [10, 1000, 5000] {
        store(&writer, vec![append(5, first..first + 300, 150)]).unwrap();
    }
    assert!(reader.counts().unwrap().log_rows > 6);
    assert_eq!(seqs(&reader, 5, 1149, 3), [1150, 1151, 1152]);
    assert_eq!(seqs(&reader, 5, 309, 2), [1000, 1001]);
    assert_eq!(seqs(&reader, 5, 700, 1), [1000]);
    assert_eq!(seqs(&reader, 5, 0, usize::MAX).len(), 900);
    assert_eq!(seqs(&reader, 5, 5298, usize::MAX), [5299]);
    assert!(seqs(&reader, 5, 5299, 1).is_empty() && seqs(&reader, 5, u64::MAX, 1).is_empty());
    assert_eq!(reader.last_seq(5).unwrap(), 5299);
}

#[test]
fn rows_hold_a_batch_just_under_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1))]).unwrap();
    let waiting: Vec<_> = (1..=1000).map(|seq| submit(&writer, vec![append(1, seq..=seq, 300)])).collect();
    waiting.iter().for_each(|told| {
        told.recv_timeout(WAIT).unwrap().unwrap();
    });
    // An entry that fills more than a row stands alone; the next one begins a row.
    let giant = 100_000;
    store(&writer, vec![append(1, 1001..=1001, giant)]).unwrap();
    store(&writer, vec![append(1, 1002..=1003, 300)]).unwrap();
    let sizes = row_sizes(&reader, 1);
    let (ordinary, rest) = sizes.split_at(sizes.len() - 2);
    assert!(ordinary.iter().all(|bytes| *bytes <= rows::ROW_BYTES), "{sizes:?}");
    assert!(ordinary.iter().rev().skip(1).all(|bytes| *bytes > rows::ROW_BYTES - 400), "{sizes:?}");
    assert!(rest[0] > giant && rest[1] < 700, "{sizes:?}");
}

fn row_sizes(reader: &Reader, session: u64) -> Vec<usize> {
    let table = reader_table(reader);
    let rows = table.range((session, 0)..=(session, u64::MAX)).unwrap();
    rows.map(|row| row.unwrap().1.value().len()).collect()
}

fn reader_table(reader: &Reader) -> redb::ReadOnlyTable<(u64, u64), &'static [u8]> {
    reader.shared().begin_read().unwrap().open_table(tables::LOG).unwrap()
}

#[test]
fn closing_stores_what_is_queued_and_ends_reading() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1))]).unwrap();
    let waiting: Vec<_> = (1..=100).map(|seq| submit(&writer, vec![append(1, seq..=seq, 20)])).collect();
    drop(writer);
    assert!(waiting.iter().all(|told| told.try_recv().unwrap().is_ok()));
    assert_eq!(reader.counts(), Err(ReadError::Failed(Failure::Closed)));
    let (_writer, reader, _) = open(&folder);
    assert_eq!(reader.last_seq(1).unwrap(), 100);
}

#[test]
fn second_open_is_locked_until_the_first_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.redb");
    let (writer, _reader, _) = open(&folder);
    assert!(matches!(Store::open(&path, &Options::default()), Err(OpenError::Locked { .. })));
    writer.close(WAIT).unwrap();
    Store::open(&path, &Options::default()).unwrap();
}

#[test]
fn file_that_is_no_store_is_damaged_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.redb");
    for content in [Vec::new(), b"not a database".to_vec(), vec![7; 300_000]] {
        fs::write(&path, &content).unwrap();
        let error = Store::open(&path, &Options::default()).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[test]
fn half_a_store_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _, _) = open(&folder);
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1)), append(1, 1..=3000, 300)]).unwrap();
    writer.close(WAIT).unwrap();
    let path = folder.path().join("s.redb");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = Store::open(&path, &Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
}

#[test]
fn newer_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.redb");
    drop(open(&folder));
    let database = redb::Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction
        .open_table(tables::META)
        .unwrap()
        .insert(tables::FORMAT_NAME, (FORMAT + 1).to_le_bytes().as_slice())
        .unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = Store::open(&path, &Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::NewerFormat { found: 2, .. }), "{error:?}");
}

#[test]
fn leftover_of_an_interrupted_creation_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.redb.new"), b"half a database").unwrap();
    let (_writer, _, report) = open(&folder);
    assert!(report.created);
    assert!(!folder.path().join("s.redb.new").exists());
}
