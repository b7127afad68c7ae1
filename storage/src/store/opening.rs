//! Opening the database file: as it is, or a new one that appears only when it is complete.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use redb::{Builder, Database, DatabaseError, ReadOnlyTable, ReadableDatabase};

use super::failure::Failure;
use super::tables::{self, COMMITS_NAME, FORMAT_NAME, META};
use super::{FORMAT, OpenError};

/// A database that is ready for use.
pub(crate) struct Opened {
    pub(crate) database: Database,
    pub(crate) repaired: bool,
    pub(crate) format: u32,
    /// Number of the last commit.
    pub(crate) commits: u64,
}

/// How the writer's thread opens its database, again after a failure.
pub(crate) trait Opener: Send {
    /// The file, for messages.
    fn path(&self) -> &Path;

    /// Opens what is there; never makes a new database.
    fn open(&self) -> Result<Opened, OpenError>;
}

pub(crate) struct FileOpener {
    path: PathBuf,
    cache_bytes: usize,
}

impl FileOpener {
    pub(crate) fn new(path: &Path, cache_bytes: usize) -> Self {
        Self { path: path.to_owned(), cache_bytes }
    }

    /// Makes the database if there is no file. It is filled beside its place and then moved there, so
    /// that a crash leaves nothing that looks like a damaged store.
    pub(crate) fn create_if_missing(&self) -> Result<bool, OpenError> {
        match fs::symlink_metadata(&self.path) {
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(self.io_error(&error)),
        }
        let mut name = self.path.clone().into_os_string();
        name.push(OsString::from(".new"));
        let pending = PathBuf::from(name);
        if let Err(failure) = self.fill(&pending) {
            if let Err(error) = fs::remove_file(&pending) {
                tracing::debug!(%error, "cannot remove an unfinished store");
            }
            return Err(self.error(failure));
        }
        fs::rename(&pending, &self.path)
            .and_then(|()| self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()))
            .map_err(|error| self.io_error(&error))?;
        Ok(true)
    }

    fn fill(&self, pending: &Path) -> Result<(), Failure> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(pending);
        file.map_err(|error| Failure::from(&error))?;
        let database = Builder::new().set_cache_size(self.cache_bytes).create(pending)?;
        let transaction = database.begin_write()?;
        tables::create_all(&transaction, FORMAT)?;
        transaction.commit()?;
        Ok(database.close()?)
    }

    fn error(&self, failure: Failure) -> OpenError {
        from_failure(&self.path, failure)
    }

    fn io_error(&self, error: &io::Error) -> OpenError {
        if error.kind() == io::ErrorKind::PermissionDenied {
            return OpenError::Permission { path: self.path.clone() };
        }
        self.error(Failure::from(error))
    }
}

impl Opener for FileOpener {
    fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<Opened, OpenError> {
        let found = fs::metadata(&self.path).map_err(|error| self.io_error(&error))?;
        // redb would make a new database in an empty file: a store that was cut to nothing.
        if !found.is_file() || found.len() == 0 {
            let message = if found.is_file() { "the file is empty" } else { "not a file" };
            return Err(OpenError::Damaged { path: self.path.clone(), message: message.to_owned() });
        }
        let path = &self.path;
        open_with(path, self.cache_bytes, |builder| builder.open(path))
    }
}

/// Opens by `open` and checks that it is a store of ours.
pub(crate) fn open_with(
    path: &Path,
    cache_bytes: usize,
    open: impl FnOnce(&Builder) -> Result<Database, DatabaseError>,
) -> Result<Opened, OpenError> {
    let repaired = Arc::new(AtomicBool::new(false));
    let noticed = Arc::clone(&repaired);
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes).set_repair_callback(move |_| noticed.store(true, Relaxed));
    // redb documents that opening a file that was altered behind its back may panic.
    let opened = catch_unwind(AssertUnwindSafe(|| {
        let database = open(&builder)?;
        let (format, commits) = identify(&database)?;
        Ok((database, format, commits))
    }));
    let (database, format, commits) = match opened {
        Ok(Ok(found)) => found,
        Ok(Err(Unopened::Redb(error))) => return Err(from_database_error(path, error)),
        Ok(Err(Unopened::Other(failure))) => return Err(from_failure(path, failure)),
        Err(_) => return Err(damaged(path, "its content makes no sense")),
    };
    match format {
        FORMAT => Ok(Opened { database, repaired: repaired.load(Relaxed), format, commits }),
        found if found > FORMAT => Err(OpenError::NewerFormat { path: path.to_owned(), found }),
        _ => Err(damaged(path, "its format is unknown")),
    }
}

enum Unopened {
    Redb(DatabaseError),
    Other(Failure),
}

impl From<DatabaseError> for Unopened {
    fn from(error: DatabaseError) -> Self {
        Self::Redb(error)
    }
}

impl From<Failure> for Unopened {
    fn from(failure: Failure) -> Self {
        Self::Other(failure)
    }
}

fn identify(database: &Database) -> Result<(u32, u64), Failure> {
    let meta = database.begin_read()?.open_table(META)?;
    Ok((u32::from_le_bytes(number(&meta, FORMAT_NAME)?), u64::from_le_bytes(number(&meta, COMMITS_NAME)?)))
}

fn number<const N: usize>(
    meta: &ReadOnlyTable<&'static str, &'static [u8]>,
    name: &str,
) -> Result<[u8; N], Failure> {
    let value = meta.get(name)?.and_then(|value| value.value().try_into().ok());
    value.ok_or_else(|| Failure::Damaged { message: format!("{name} is missing") })
}

fn damaged(path: &Path, message: &str) -> OpenError {
    OpenError::Damaged { path: path.to_owned(), message: message.to_owned() }
}

fn from_database_error(path: &Path, error: DatabaseError) -> OpenError {
    let path_owned = || path.to_owned();
    if matches!(error, DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch) {
        return OpenError::Locked { path: path_owned() };
    }
    if let DatabaseError::Storage(redb::StorageError::Io(error)) = &error
        && error.kind() == io::ErrorKind::PermissionDenied
    {
        return OpenError::Permission { path: path_owned() };
    }
    from_failure(path, error.into())
}

fn from_failure(path: &Path, failure: Failure) -> OpenError {
    let path = path.to_owned();
    match failure {
        Failure::Full { message } => OpenError::Full { path, message },
        Failure::Damaged { message } => OpenError::Damaged { path, message },
        Failure::Io { message } | Failure::Defect { message } => OpenError::Io { path, message },
        Failure::Closed => OpenError::Io { path, message: "it was closed".to_owned() },
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let message = error.to_string();
        match error {
            OpenError::Full { .. } => Self::Full { message },
            OpenError::Damaged { .. } | OpenError::NewerFormat { .. } => Self::Damaged { message },
            OpenError::Locked { .. } | OpenError::Permission { .. } | OpenError::Io { .. } => {
                Self::Io { message }
            }
        }
    }
}
