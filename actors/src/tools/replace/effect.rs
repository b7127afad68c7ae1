//! The effect itself: a new file beside the old one, made durable, then put in its place in one step.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{Access, AtFlags};
use sha2::{Digest, Sha256};

use super::super::paths::{Dir, WriteTarget};
use super::super::text::hex;
use super::require_regular;

/// Mode of a new file, before the umask.
const NEW_FILE: u32 = 0o666;
/// Mode of a replacement until it gets that of the file it replaces: nobody else reads it before.
const UNFINISHED: u32 = 0o600;
/// Bits of a mode that are kept.
const KEPT: u32 = 0o7777;
/// Bytes read at a time.
const CHUNK: usize = 64 * 1024;

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The system refused, nothing has changed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Somebody else changed it at the last moment.
    #[error("it was changed by somebody else just now; re-read it, then retry")]
    Changed,
    /// Its directory was moved or replaced.
    #[error("its directory was moved or replaced just now; retry")]
    Moved,
    /// It is marked read-only.
    #[error("it is read-only")]
    ReadOnly,
    /// It was replaced, but the directory could not be synced.
    #[error(transparent)]
    NotDurable(io::Error),
}

/// Puts `bytes` in the place of the file if its hash is `before` still, `None` for no file.
pub(super) fn put(target: &mut WriteTarget, before: Option<&str>, bytes: &[u8]) -> Result<(), Error> {
    target.ensure_parent()?;
    let target = &*target;
    let dir = target.parent().ok_or(Error::Moved)?;
    let old = existing(dir, target.name())?;
    let mode = if old.is_some() { UNFINISHED } else { NEW_FILE };
    let mut new = Unfinished::create(dir, mode)?;
    new.fill(bytes, old.as_ref())?;
    if current_hash(dir, target.name())?.as_deref() != before {
        return Err(Error::Changed);
    }
    if !target.in_place() {
        return Err(Error::Moved);
    }
    new.rename(target.name())?;
    dir.sync().map_err(Error::NotDurable)
}

/// The old file, if it is there and may be written: replacing would not ask for that.
fn existing(dir: &Dir, name: &OsStr) -> Result<Option<File>, Error> {
    let file = match dir.read(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    require_regular(&file)?;
    match rustix::fs::accessat(dir, name, Access::WRITE_OK, AtFlags::empty()) {
        Ok(()) => Ok(Some(file)),
        Err(_) => Err(Error::ReadOnly),
    }
}

fn current_hash(dir: &Dir, name: &OsStr) -> io::Result<Option<String>> {
    let mut file = match dir.read(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    require_regular(&file)?;
    let mut hasher = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read(&mut chunk)?;
        let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else { break };
        hasher.update(part);
    }
    Ok(Some(hex(&hasher.finalize())))
}

/// A temporary file that is removed unless it takes its place.
struct Unfinished<'a> {
    dir: &'a Dir,
    name: Option<std::ffi::OsString>,
    file: File,
}

impl<'a> Unfinished<'a> {
    fn create(dir: &'a Dir, mode: u32) -> io::Result<Self> {
        let (name, file) = dir.create_temporary(mode)?;
        Ok(Self { dir, name: Some(name), file })
    }

    fn fill(&mut self, bytes: &[u8], old: Option<&File>) -> io::Result<()> {
        self.file.write_all(bytes)?;
        if let Some(old) = old {
            let (old, new) = (old.metadata()?, self.file.metadata()?);
            self.take_owner((old.uid(), old.gid()), (new.uid(), new.gid()));
            self.file.set_permissions(Permissions::from_mode(old.mode() & KEPT))?;
        }
        self.file.sync_all()
    }

    /// Only root can give files away; for others the file becomes theirs, as with most editors.
    fn take_owner(&self, old: (u32, u32), new: (u32, u32)) {
        if old == new {
            return;
        }
        let both = std::os::unix::fs::fchown(&self.file, Some(old.0), Some(old.1));
        if both.or_else(|_| std::os::unix::fs::fchown(&self.file, None, Some(old.1))).is_err() {
            tracing::debug!(?old, "owner of a replaced file not kept");
        }
    }

    fn rename(mut self, to: &OsStr) -> io::Result<()> {
        if let Some(name) = &self.name {
            self.dir.rename(name, to)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        if self.dir.remove(&name).is_err() {
            tracing::debug!(?name, "temporary file not removed");
        }
    }
}
