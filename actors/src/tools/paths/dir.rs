//! Directories held open, so that a link swapped into a path later cannot redirect what is done in them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Mode of directories that a tool creates, before the umask.
const NEW_DIRECTORY: Mode = Mode::from_raw_mode(0o777);
/// Tries for a free temporary name; each has 64 random bits, so a second one is already unlikely.
const NAME_TRIES: usize = 8;

/// A directory that is held open.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

impl Dir {
    /// Opens a directory by an absolute path without links in it.
    pub(crate) fn open(canonical: &Path) -> io::Result<Self> {
        Ok(Self(open_without_links(canonical, directory_flags())?))
    }

    /// Opens a directory by a path beneath this one, without links or `..` in it.
    pub(crate) fn beneath(&self, relative: &Path) -> io::Result<Self> {
        if relative.as_os_str().is_empty() {
            return Ok(Self(self.0.try_clone()?));
        }
        Ok(Self(open_beneath(&self.0, relative, directory_flags())?))
    }

    /// Opens the directory `name` in this one, creating it if need be.
    pub(crate) fn ensure(&self, name: &OsStr) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.0, name, NEW_DIRECTORY) {
            Ok(()) => self.sync()?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.beneath(Path::new(name))
    }

    /// Opens the file `name` for reading; a link is refused, a pipe does not block.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
        Ok(rustix::fs::openat(&self.0, name, file_flags(), Mode::empty())?.into())
    }

    /// Creates a file with a name of its own and, before the umask, `mode`.
    pub(crate) fn create_temporary(&self, mode: u32) -> io::Result<(OsString, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..NAME_TRIES {
            let name = OsString::from(format!(".seekclaw-{:016x}.tmp", random()?));
            match rustix::fs::openat(&self.0, &name, flags, Mode::from_raw_mode(mode)) {
                Ok(file) => return Ok((name, file.into())),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Renames within the directory, replacing what is there.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes the file `name`.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Makes the names in it durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.0) {
            // Some file systems have no such thing for directories.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether `path` still leads to this very directory.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let here = rustix::fs::fstat(&self.0);
        let there = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
        matches!((here, there), (Ok(here), Ok(there)) if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens a file by an absolute path without links in it.
pub(super) fn open_file(canonical: &Path) -> io::Result<File> {
    Ok(open_without_links(canonical, file_flags())?.into())
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn file_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC
}

fn random() -> io::Result<u64> {
    getrandom::u64().map_err(|error| io::Error::other(error.to_string()))
}

fn open_without_links(canonical: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let top = rustix::fs::openat(CWD, "/", step_flags(), Mode::empty())?;
    let relative = canonical.strip_prefix("/").map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let relative = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
    open_beneath(&top, relative, flags)
}

/// One call where the kernel has one for it, else step by step.
#[cfg(target_os = "linux")]
fn open_beneath(base: &OwnedFd, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(base, relative, flags, Mode::empty(), resolve) {
        // Old kernels, filters that do not know the call, and a rename that raced with it.
        Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => walk_beneath(base, relative, flags),
        opened => Ok(opened?),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(base: &OwnedFd, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    walk_beneath(base, relative, flags)
}

fn walk_beneath(base: &OwnedFd, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut current = base.try_clone()?;
    let mut steps = relative.components().peekable();
    while let Some(step) = steps.next() {
        let name = match step {
            Component::Normal(name) => name,
            Component::CurDir => OsStr::new("."),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        };
        let flags = if steps.peek().is_some() { step_flags() } else { flags };
        current = rustix::fs::openat(&current, name, flags, Mode::empty())?;
    }
    Ok(current)
}

/// Directories on the way need not be readable, where the system can say so.
fn step_flags() -> OFlags {
    #[cfg(target_os = "linux")]
    let access = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let access = OFlags::RDONLY;
    access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_opening_refuse_links_and_climbing() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("real")).unwrap();
        std::fs::write(temp.path().join("real/file"), "x").unwrap();
        std::os::unix::fs::symlink("real", temp.path().join("link")).unwrap();
        std::os::unix::fs::symlink("real/file", temp.path().join("leaf")).unwrap();
        let base = Dir::open(&temp.path().canonicalize().unwrap()).unwrap();
        for open in [open_beneath, walk_beneath] {
            assert!(open(&base.0, Path::new("real/file"), file_flags()).is_ok());
            assert!(open(&base.0, Path::new("link/file"), file_flags()).is_err());
            assert!(open(&base.0, Path::new("leaf"), file_flags()).is_err());
            assert!(open(&base.0, Path::new("real/../../x"), file_flags()).is_err());
            assert!(open(&base.0, Path::new("real/file"), directory_flags()).is_err());
        }
    }

    #[test]
    fn a_directory_knows_whether_it_was_moved() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().canonicalize().unwrap().join("d");
        std::fs::create_dir(&path).unwrap();
        let dir = Dir::open(&path).unwrap();
        assert!(dir.is_at(&path));
        std::fs::rename(&path, temp.path().join("e")).unwrap();
        assert!(!dir.is_at(&path));
        std::fs::create_dir(&path).unwrap();
        assert!(!dir.is_at(&path));
    }
}
