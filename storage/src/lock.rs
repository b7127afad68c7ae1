//! One daemon a home: a kernel lock on `daemon.lock`, held for the life of the process. The content
//! only names the owner for people; whether there is one is for the kernel to say.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use fs4::{FileExt, TryLockError};
use seekclaw_protocol::Timestamp;
use serde::{Deserialize, Serialize};

/// Longest content that is read: a real one has about 100 bytes.
const MAX_CONTENT_BYTES: u64 = 4096;

/// How often a lock file that is replaced under our hands is opened anew.
const ATTEMPTS: usize = 3;

/// Who holds a home, as it wrote so itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Process id, for people: it may have been reused.
    pub pid: u32,
    /// Version of its program.
    pub version: String,
    /// When it took the lock, ISO 8601.
    pub started_at: String,
}

impl Owner {
    /// What the lock file at `path` says, whether or not somebody holds it; `None` if it says nothing.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        let mut content = Vec::new();
        File::open(path).ok()?.take(MAX_CONTENT_BYTES).read_to_end(&mut content).ok()?;
        serde_json::from_slice(&content).ok()
    }

    fn current(version: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at = Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).to_string();
        Self { pid: std::process::id(), version: version.to_owned(), started_at }
    }
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("another daemon owns this home: {}", describe(owner.as_ref()))]
    AlreadyRunning {
        /// The one that holds it, unless it has not said yet.
        owner: Option<Owner>,
    },
    /// The file cannot be opened, locked or written.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn describe(owner: Option<&Owner>) -> String {
    owner.map_or_else(
        || "it is just starting".to_owned(),
        |owner| format!("pid {} (version {}, since {})", owner.pid, owner.version, owner.started_at),
    )
}

/// The right to be the daemon of a home, until it is dropped or the process ends in any way.
#[derive(Debug)]
pub struct InstanceLock {
    file: File,
    owner: Owner,
}

impl InstanceLock {
    /// Takes the lock or says who has it; never waits.
    ///
    /// # Errors
    /// It is held, or the file is unusable.
    pub fn acquire(path: &Path, version: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        for _ in 0..ATTEMPTS {
            let file = open(path).map_err(failed)?;
            match FileExt::try_lock(&file) {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::AlreadyRunning { owner: Owner::read(path) });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            if is_still_at(&file, path).map_err(failed)? {
                let owner = Owner::current(version);
                write(&file, &owner).map_err(failed)?;
                return Ok(Self { file, owner });
            }
        }
        Err(failed(io::Error::other("the lock file keeps being replaced")))
    }

    /// What this process wrote about itself.
    #[must_use]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        if let Err(error) = FileExt::unlock(&self.file) {
            tracing::debug!(%error, "cannot release the instance lock");
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// A lock on a file that was removed meanwhile excludes nobody.
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok(found.dev() == held.dev() && found.ino() == held.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Over the old content and then cut: whoever reads meanwhile sees one owner or nothing that parses.
fn write(file: &File, owner: &Owner) -> io::Result<()> {
    let mut line = serde_json::to_vec(owner)?;
    line.push(b'\n');
    file.write_all_at(&line, 0)?;
    file.set_len(line.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_holder_learns_who_is_first() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("daemon.lock");
        let first = InstanceLock::acquire(&path, "1.2.3").unwrap();
        let error = InstanceLock::acquire(&path, "1.2.4").unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("pid {} (version 1.2.3, since ", std::process::id())), "{text}");
        assert!(matches!(error, LockError::AlreadyRunning { owner: Some(owner) } if owner == *first.owner()));
    }

    #[test]
    fn released_lock_can_be_taken_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("daemon.lock");
        drop(InstanceLock::acquire(&path, "1").unwrap());
        let again = InstanceLock::acquire(&path, "2").unwrap();
        assert_eq!(Owner::read(&path).as_ref(), Some(again.owner()));
    }

    #[test]
    fn content_without_a_lock_stops_nobody() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("daemon.lock");
        let stale = format!(
            r#"{{"pid":{},"version":"a long old version text","startedAt":"x"}}"#,
            std::process::id()
        );
        fs::write(&path, stale).unwrap();
        let lock = InstanceLock::acquire(&path, "1").unwrap();
        assert_eq!(Owner::read(&path).as_ref(), Some(lock.owner()));
    }

    #[test]
    fn holder_that_has_not_written_yet_is_still_the_holder() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("daemon.lock");
        let silent = open(&path).unwrap();
        FileExt::try_lock(&silent).unwrap();
        let error = InstanceLock::acquire(&path, "1").unwrap_err();
        assert!(matches!(error, LockError::AlreadyRunning { owner: None }), "{error}");
    }

    #[test]
    fn missing_folder_is_an_io_error_with_the_path() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("none/daemon.lock");
        let text = InstanceLock::acquire(&path, "1").unwrap_err().to_string();
        assert!(text.contains("none/daemon.lock"), "{text}");
    }
}
