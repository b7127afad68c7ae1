//! The state directory: where it is, what is in it, and that nobody else can look inside.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Longest path of a Unix socket, without the terminating zero byte.
pub const MAX_SOCKET_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// For the owner alone: keys, prompts and the socket are inside.
const PRIVATE_DIR: u32 = 0o700;

/// Set on folders that everybody may write in, such as `/tmp`.
const STICKY: u32 = 0o1000;

const FOLDERS: [&str; 6] = ["logs", "skills", "prompts", "memory", "blobs", "scratch"];

/// Why a home cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The environment names no place for it.
    #[error("no home directory: set SEEKCLAW_HOME or HOME")]
    Unknown,
    /// Something else is there.
    #[error("home {} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be made.
    #[error("cannot create home directory {}: {source}", path.display())]
    CannotCreate {
        /// The directory that failed.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is there, but nothing can be stored in it.
    #[error("home {} is not writable: {source}", path.display())]
    NotWritable {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is a place that others use too; making it private would break them.
    #[error("home {} is a shared directory: choose one of its own", path.display())]
    Shared {
        /// The directory.
        path: PathBuf,
    },
    /// It belongs to another user.
    #[error("home {} belongs to another user (uid {owner})", path.display())]
    NotOwned {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// A socket there could not be bound.
    #[error("socket path {} is {length} bytes long, more than the {limit} that the system accepts: choose a shorter SEEKCLAW_HOME", path.display())]
    SocketPathTooLong {
        /// The socket's path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// It cannot be looked at.
    #[error("cannot access home {}: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The state directory of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// The home that the environment of this process names.
    ///
    /// # Errors
    /// The environment names none.
    pub fn from_env() -> Result<Self, HomeError> {
        Self::locate(|name| std::env::var_os(name))
    }

    /// `SEEKCLAW_HOME`, or `.seekclaw` in `HOME`; an empty variable counts as unset.
    ///
    /// # Errors
    /// Neither is set.
    pub fn locate(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, HomeError> {
        let set = |name| variable(name).filter(|value| !value.is_empty());
        let path = set("SEEKCLAW_HOME")
            .map(PathBuf::from)
            .or_else(|| set("HOME").map(|home| Path::new(&home).join(".seekclaw")))
            .ok_or(HomeError::Unknown)?;
        Self::at(&path)
    }

    /// A home at `path`; a relative one counts from the working directory of now.
    ///
    /// # Errors
    /// The working directory is unknown.
    pub fn at(path: &Path) -> Result<Self, HomeError> {
        let absolute = std::path::absolute(path)
            .map_err(|source| HomeError::Unreadable { path: path.to_owned(), source })?;
        Ok(Self { path: absolute })
    }

    /// Creates what is missing, makes it private, and checks that a daemon can work here.
    ///
    /// # Errors
    /// It cannot be used as a home.
    pub fn prepare(&self) -> Result<(), HomeError> {
        self.check_socket_path()?;
        match fs::metadata(&self.path) {
            Ok(found) => self.adopt(&found)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => create_private(&self.path)?,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(HomeError::NotADirectory { path: self.path.clone() });
            }
            Err(source) => return Err(HomeError::Unreadable { path: self.path.clone(), source }),
        }
        self.check_writable()?;
        FOLDERS.iter().try_for_each(|name| create_private(&self.path.join(name)))
    }

    /// Checks the length of the socket's path, which needs no directory to be there.
    ///
    /// # Errors
    /// It is too long to be bound or connected to.
    pub fn check_socket_path(&self) -> Result<(), HomeError> {
        let path = self.socket();
        let length = path.as_os_str().as_bytes().len();
        if length <= MAX_SOCKET_PATH_BYTES {
            return Ok(());
        }
        Err(HomeError::SocketPathTooLong { path, length, limit: MAX_SOCKET_PATH_BYTES })
    }

    /// Takes a directory that exists already.
    fn adopt(&self, found: &Metadata) -> Result<(), HomeError> {
        let path = self.path.clone();
        if !found.is_dir() {
            return Err(HomeError::NotADirectory { path });
        }
        if found.mode() & STICKY != 0 || self.path.parent().is_none() {
            return Err(HomeError::Shared { path });
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(HomeError::NotOwned { path, owner: found.uid() });
        }
        if found.mode() & 0o777 != PRIVATE_DIR {
            fs::set_permissions(&self.path, Permissions::from_mode(PRIVATE_DIR))
                .map_err(|source| HomeError::NotWritable { path, source })?;
        }
        Ok(())
    }

    fn check_writable(&self) -> Result<(), HomeError> {
        rustix::fs::access(&self.path, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| HomeError::NotWritable { path: self.path.clone(), source: error.into() })
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path.join("config.json")
    }

    /// The database.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.path.join("seekclaw.redb")
    }

    /// The socket that clients connect to.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.path.join("daemon.sock")
    }

    /// The lock file of the one daemon.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.path.join("daemon.lock")
    }

    /// Log files.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Skills of the user.
    #[must_use]
    pub fn skills(&self) -> PathBuf {
        self.path.join("skills")
    }

    /// Prompts of the user.
    #[must_use]
    pub fn prompts(&self) -> PathBuf {
        self.path.join("prompts")
    }

    /// What the agent remembers over sessions.
    #[must_use]
    pub fn memory(&self) -> PathBuf {
        self.path.join("memory")
    }

    /// Big values kept beside the database.
    #[must_use]
    pub fn blobs(&self) -> PathBuf {
        self.path.join("blobs")
    }

    /// Where sessions without a workspace write, a folder each.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.path.join("scratch")
    }
}

/// Makes a directory and its parents for the owner alone; one that exists stays as it is.
fn create_private(path: &Path) -> Result<(), HomeError> {
    let created = DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(path);
    created.map_err(|source| {
        let path = path.to_owned();
        if source.kind() == io::ErrorKind::NotADirectory {
            return HomeError::NotADirectory { path };
        }
        HomeError::CannotCreate { path, source }
    })
}

#[cfg(test)]
mod tests;
