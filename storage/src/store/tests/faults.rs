//! A disk that is full, breaks, or panics on command.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::*;
use crate::store::opening::{Opened, open_with};

const HEALTHY: u8 = 0;
const FULL: u8 = 1;
const BROKEN: u8 = 2;
const PANICS: u8 = 3;
const SYNC_LIES: u8 = 4;

#[derive(Clone, Debug)]
struct Switch(Arc<AtomicU8>);

impl Switch {
    fn set(&self, state: u8) {
        self.0.store(state, SeqCst);
    }

    fn write_allowed(&self) -> io::Result<()> {
        match self.0.load(SeqCst) {
            FULL => Err(io::Error::from(io::ErrorKind::StorageFull)),
            BROKEN => Err(io::Error::other("the disk is broken")),
            PANICS => {
                self.set(HEALTHY);
                panic!("injected")
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Disk {
    file: FileBackend,
    switch: Switch,
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.switch.write_allowed()?;
        self.file.set_len(len)
    }

    /// `SYNC_LIES`: the next sync works but reports an error.
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        if self.switch.0.load(SeqCst) == SYNC_LIES {
            self.switch.set(HEALTHY);
            return Err(io::Error::other("sync failed"));
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.switch.write_allowed()?;
        self.file.write(offset, data)
    }
}

struct DiskOpener {
    path: PathBuf,
    switch: Switch,
}

impl Opener for DiskOpener {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<Opened, OpenError> {
        open_with(&self.path, 1024 * 1024, |builder| {
            let file = fs::OpenOptions::new().read(true).write(true).open(&self.path)?;
            let disk = Disk { file: FileBackend::new(file)?, switch: self.switch.clone() };
            builder.create_with_backend(disk)
        })
    }
}

fn open_on_disk(folder: &TempDir) -> (Writer, Reader, Switch) {
    drop(open(folder));
    let switch = Switch(Arc::new(AtomicU8::new(HEALTHY)));
    let opener = DiskOpener { path: folder.path().join("s.redb"), switch: switch.clone() };
    let (writer, reader, _) = Store::start(Box::new(opener)).unwrap();
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1)), append(1, 1..=10, 100)]).unwrap();
    (writer, reader, switch)
}

#[test]
fn full_disk_fails_its_waiters_and_recovers_when_space_returns() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, switch) = open_on_disk(&folder);
    switch.set(FULL);
    let waiting: Vec<_> = (0..3).map(|_| submit(&writer, vec![append(1, 11..=400, 1000)])).collect();
    for told in waiting {
        let answer = told.recv_timeout(WAIT).unwrap();
        assert!(matches!(answer, Err(WriteError::Failed(Failure::Full { .. }))), "{answer:?}");
    }
    let stats = writer.stats();
    assert!(stats.failures >= 1 && stats.commits == 1, "{stats:?}");

    switch.set(HEALTHY);
    store(&writer, vec![append(1, 11..=400, 1000)]).unwrap();
    assert_eq!(seqs(&reader, 1, 0, usize::MAX), (1..=400).collect::<Vec<_>>());
    assert_eq!(writer.stats().down, None);
}

#[test]
fn reading_comes_back_by_itself_after_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, switch) = open_on_disk(&folder);
    switch.set(FULL);
    store(&writer, vec![append(1, 11..=400, 1000)]).unwrap_err();
    switch.set(HEALTHY);
    let deadline = Instant::now() + WAIT;
    while reader.last_seq(1) != Ok(10) {
        assert!(Instant::now() < deadline, "{:?}", reader.last_seq(1));
        std::thread::yield_now();
    }
}

#[test]
fn broken_disk_is_an_io_error_and_nothing_is_half_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, switch) = open_on_disk(&folder);
    switch.set(BROKEN);
    let answer = store(&writer, vec![append(1, 11..=400, 1000)]);
    assert!(matches!(&answer, Err(WriteError::Failed(Failure::Io { .. }))), "{answer:?}");
    switch.set(HEALTHY);
    store(&writer, vec![append(1, 11..=11, 10)]).unwrap();
    assert_eq!(reader.last_seq(1).unwrap(), 11);
}

#[test]
fn panic_in_a_commit_answers_its_waiters_and_the_thread_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, switch) = open_on_disk(&folder);
    switch.set(PANICS);
    let answer = store(&writer, vec![append(1, 11..=400, 1000)]);
    assert!(matches!(answer, Err(WriteError::Failed(Failure::Defect { .. }))), "{answer:?}");
    store(&writer, vec![append(1, 11..=11, 10)]).unwrap();
    assert_eq!(reader.last_seq(1).unwrap(), 11);
}

#[test]
fn panicking_waiter_disturbs_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _, _) = open(&folder);
    writer.submit(Batch { writes: Vec::new(), done: Box::new(|_| panic!("injected")) }).unwrap();
    store(&writer, vec![Write::PutSession(session(1, "global", "a", 1))]).unwrap();
}

#[test]
fn commit_that_is_there_in_spite_of_an_error_counts_as_stored() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, reader, switch) = open_on_disk(&folder);
    switch.set(SYNC_LIES);
    let answer = store(&writer, vec![append(1, 11..=11, 10)]);
    assert_eq!(answer.as_ref().map(|committed| committed.commit), Ok(2), "{answer:?}");
    assert_eq!(writer.stats().failures, 1);
    store(&writer, vec![append(1, 12..=12, 10)]).unwrap();
    assert_eq!(seqs(&reader, 1, 9, usize::MAX), [10, 11, 12]);
}

#[test]
fn store_whose_file_went_away_says_so_and_makes_no_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _, switch) = open_on_disk(&folder);
    fs::remove_file(folder.path().join("s.redb")).unwrap();
    switch.set(BROKEN);
    store(&writer, vec![append(1, 11..=400, 1000)]).unwrap_err();
    switch.set(HEALTHY);
    let answer = store(&writer, vec![append(1, 11..=11, 10)]);
    assert!(matches!(answer, Err(WriteError::Failed(Failure::Io { .. }))), "{answer:?}");
    assert!(!folder.path().join("s.redb").exists());
}
