//! The socket file: bound under the instance lock, private, and never taken from a living daemon.

use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::local_socket::traits::{Stream as _, StreamCommon};
use interprocess::local_socket::{GenericFilePath, ListenerOptions, Stream as BlockingStream, ToFsName};
use interprocess::os::unix::local_socket::ListenerOptionsExt;

/// Mode of the socket: its owner only.
const MODE: u32 = 0o600;

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Something else has the name.
    #[error("{path} is in the way: it is no socket; move it and start again")]
    InTheWay {
        /// The path.
        path: PathBuf,
    },
    /// Somebody answers on it who does not hold the lock of this home.
    #[error("another process listens on {path}; stop it and start again")]
    Taken {
        /// The path.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot listen on {path}")]
    Io {
        /// The path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

/// A bound socket; its file goes with it, if it is still ours.
pub(crate) struct Bound {
    pub(super) listener: Listener,
    path: PathBuf,
    inode: u64,
}

impl Bound {
    /// Binds `path`, after removing a stale socket. The caller holds the instance lock.
    pub(crate) fn bind(path: &Path) -> Result<Self, SocketError> {
        remove_stale(path)?;
        let failed = |source| SocketError::Io { path: path.to_owned(), source };
        let name = path.to_fs_name::<GenericFilePath>().map_err(failed)?;
        let options = ListenerOptions::new().name(name).mode(MODE).reclaim_name(false);
        let listener = options.create_tokio().map_err(failed)?;
        let inode = path.symlink_metadata().map_err(failed)?.ino();
        Ok(Self { listener, path: path.to_owned(), inode })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let ours = self.path.symlink_metadata().is_ok_and(|found| found.ino() == self.inode);
        if ours && let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "cannot remove the socket");
        }
    }
}

/// Removes the socket of a daemon that died: one that exists and refuses.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Io { path: path.to_owned(), source };
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    if !found.file_type().is_socket() {
        return Err(SocketError::InTheWay { path: path.to_owned() });
    }
    let name = path.to_fs_name::<GenericFilePath>().map_err(failed)?;
    match BlockingStream::connect(name) {
        Ok(_) => Err(SocketError::Taken { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Whether the client runs as the same user as the daemon.
pub(super) fn is_ours(stream: &Stream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_creds().ok().and_then(|creds| creds.euid()).is_some_and(|user| user == own)
}
