//! Where a tool may write: beneath the root and the additional directories, links and races included.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use super::{Dir, Guard, Located, Reach, Refusal, absolute, canonical_or_same, locate};

/// A file that may be replaced. Its parent, or the innermost ancestor that exists, is held open.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    path: PathBuf,
    dir: Dir,
    at: PathBuf,
    missing: Vec<OsString>,
    name: OsString,
}

impl WriteTarget {
    /// Path without links: the identity of the file for locks and for what a session has seen.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Name in the parent directory.
    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The parent directory; `None` while it does not exist.
    pub(crate) fn parent(&self) -> Option<&Dir> {
        self.missing.is_empty().then_some(&self.dir)
    }

    /// The parent directory, created if need be, each level inside the one that is held.
    pub(crate) fn ensure_parent(&mut self) -> io::Result<&Dir> {
        for name in std::mem::take(&mut self.missing) {
            self.dir = self.dir.ensure(&name)?;
            self.at.push(name);
        }
        Ok(&self.dir)
    }

    /// Whether the directory that is held is still where the path says.
    pub(crate) fn in_place(&self) -> bool {
        self.dir.is_at(&self.at)
    }
}

/// Resolves `path`, absolute or relative to the root, to a file that may be replaced or created. A link
/// to a file that exists inside is followed; the result names the file it leads to.
pub(crate) fn resolve_write(reach: &Reach, path: &str) -> Result<WriteTarget, Refusal> {
    resolve_write_in(reach, &Guard::new(reach), path)
}

pub(super) fn resolve_write_in(reach: &Reach, guard: &Guard, path: &str) -> Result<WriteTarget, Refusal> {
    let unusable = |source| Refusal::Unusable { path: path.to_owned(), source };
    // Such a path names a directory, which a file must not become by leaving its end off.
    if path.ends_with('/') || path.ends_with("/.") {
        return Err(unusable(io::ErrorKind::IsADirectory.into()));
    }
    let Located { mut existing, mut missing } = locate(&absolute(reach, path)?)?;
    let full = missing.iter().fold(existing.clone(), |path, name| path.join(name));
    let base = allowed_base(reach, guard, path, &full)?;
    let name = match missing.pop() {
        Some(name) => name,
        None => {
            let name = existing.file_name().map(OsStr::to_owned);
            existing.pop();
            name.ok_or_else(|| unusable(io::ErrorKind::IsADirectory.into()))?
        }
    };
    // The base itself is a directory: its parent is outside and is not opened.
    let inner = existing.strip_prefix(&base).map_err(|_| unusable(io::ErrorKind::IsADirectory.into()))?;
    let dir = Dir::open(&base).and_then(|base| base.beneath(inner)).map_err(unusable)?;
    Ok(WriteTarget { path: full, dir, at: existing, missing, name })
}

/// Resolves an existing directory that may be written, for a command to run in.
pub(crate) fn resolve_workdir(reach: &Reach, path: &str) -> Result<PathBuf, Refusal> {
    let asked = absolute(reach, path)?;
    let found = asked.canonicalize().map_err(|source| Refusal::Unusable { path: path.to_owned(), source })?;
    allowed_base(reach, &Guard::new(reach), path, &found)?;
    if !found.is_dir() {
        return Err(Refusal::Unusable { path: path.to_owned(), source: io::ErrorKind::NotADirectory.into() });
    }
    Ok(found)
}

/// The innermost directory that allows writing to `canonical`, without links.
fn allowed_base(reach: &Reach, guard: &Guard, asked: &str, canonical: &Path) -> Result<PathBuf, Refusal> {
    guard.check(canonical)?;
    std::iter::once(&reach.root)
        .chain(&reach.additional)
        .map(|base| canonical_or_same(base))
        .filter(|base| canonical.starts_with(base))
        .max_by_key(|base| base.components().count())
        .ok_or_else(|| Refusal::Outside { path: asked.to_owned(), root: reach.root.display().to_string() })
}
