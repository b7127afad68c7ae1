//! Which paths a tool may touch (rulings 17 and 38), in one place.
//!
//! - [`resolve_read`]: a path to look at. It may be missing: opening it then says so.
//! - [`resolve_write`]: a file to replace. Holds its parent directory open; do every effect through it.
//! - [`resolve_workdir`]: an existing directory to run a command in; must be writable by the rules.
//! - [`Guard`]: the rules of reading, resolved once, for walkers that meet many paths: skip what
//!   [`Guard::check`] refuses and do not follow links.
//! - [`open_read`]: opens what [`resolve_read`] returned, refusing links that were put there since.
//! - [`display_path`]: how a path is shown. [`credential_paths`]: the folders, for a sandbox.
//!
//! All but [`display_path`] ask the file system: call them off the runtime. A [`Refusal`] becomes the
//! call's result by `ToolReport::from(refusal)`.

mod credentials;
mod dir;
mod write;

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use seekclaw_storage::record::log::Outcome;

pub(crate) use self::credentials::credential_paths;
pub(crate) use self::dir::Dir;
pub(crate) use self::write::{WriteTarget, resolve_workdir, resolve_write};
use super::{Reach, ToolReport};

/// Folder of the daemon's home that holds one scratch folder per global session (ruling 17).
const SCRATCH: &str = "scratch";

/// Why a path may not be touched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// It names nothing.
    #[error("Path denied: the path is empty or contains a NUL character")]
    Malformed,
    /// It is in the daemon's home.
    #[error("Path denied: {0} is inside the daemon's home, which tools neither read nor write")]
    Home(String),
    /// It is in a credential folder.
    #[error(
        "Path denied: {path} is inside {rule}, which holds credentials (agent.deniedReadPaths and defaults)"
    )]
    Credentials {
        /// The path as it was given.
        path: String,
        /// The folder that the rule protects.
        rule: String,
    },
    /// It shows the memory or environment of a process.
    #[error("Path denied: {0} shows the inside of a process")]
    Process(String),
    /// It may be read but not written.
    #[error(
        "Path denied: {path} is outside of the workspace {root} and of agent.additionalDirectories, where alone tools write"
    )]
    Outside {
        /// The path as it was given.
        path: String,
        /// Workspace root.
        root: String,
    },
    /// Writing through it would create its target.
    #[error("Path denied: {0} is or goes through a link to something that does not exist")]
    Dangling(String),
    /// It climbs out of a directory that does not exist.
    #[error("Path denied: {0} leaves a directory that does not exist by `..`")]
    Climbs(String),
    /// The file system refused.
    #[error("Cannot use path {path}: {source}")]
    Unusable {
        /// The path as it was given.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl From<Refusal> for ToolReport {
    fn from(refusal: Refusal) -> Self {
        let outcome = match refusal {
            Refusal::Unusable { .. } => Outcome::Failed,
            Refusal::Malformed
            | Refusal::Home(_)
            | Refusal::Credentials { .. }
            | Refusal::Process(_)
            | Refusal::Outside { .. }
            | Refusal::Dangling(_)
            | Refusal::Climbs(_) => Outcome::Denied,
        };
        Self::new(outcome, refusal.to_string())
    }
}

/// The rules of reading with every link in them resolved, for many checks.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    home: Vec<PathBuf>,
    spared: Option<PathBuf>,
    denied: Vec<PathBuf>,
}

impl Guard {
    /// The rules that hold in `reach` for the user that runs the daemon.
    pub(crate) fn new(reach: &Reach) -> Self {
        Self::for_user(reach, std::env::home_dir().as_deref())
    }

    fn for_user(reach: &Reach, user_home: Option<&Path>) -> Self {
        let home = both_spellings(reach.home.clone());
        let root = canonical_or_same(&reach.root);
        let scratch = root.parent().is_some_and(|p| home.iter().any(|h| p.starts_with(h.join(SCRATCH))));
        let defaults = user_home.map(|home| credential_paths(home).collect::<Vec<_>>()).unwrap_or_default();
        let denied =
            defaults.into_iter().chain(reach.denied.iter().cloned()).flat_map(both_spellings).collect();
        Self { home, spared: scratch.then_some(root), denied }
    }

    /// Whether something beneath a path that may be looked at may be refused: else a walker need not ask.
    pub(crate) fn reaches_beneath(&self, canonical: &Path) -> bool {
        let mut rules =
            self.home.iter().chain(&self.denied).map(PathBuf::as_path).chain([Path::new("/proc")]);
        rules.any(|rule| rule.starts_with(canonical))
    }

    /// Whether a path without links in it may be looked at.
    pub(crate) fn check(&self, canonical: &Path) -> Result<(), Refusal> {
        let shown = || canonical.display().to_string();
        let spared = self.spared.as_ref().is_some_and(|root| canonical.starts_with(root));
        if !spared && self.home.iter().any(|home| canonical.starts_with(home)) {
            return Err(Refusal::Home(shown()));
        }
        if let Some(rule) = self.denied.iter().find(|rule| canonical.starts_with(rule)) {
            return Err(Refusal::Credentials { path: shown(), rule: rule.display().to_string() });
        }
        if is_inside_of_process(canonical) {
            return Err(Refusal::Process(shown()));
        }
        Ok(())
    }
}

/// Resolves `path`, absolute or relative to the root, to one without links that may be read. What does
/// not exist is resolved as far as it does.
pub(crate) fn resolve_read(reach: &Reach, path: &str) -> Result<PathBuf, Refusal> {
    let asked = absolute(reach, path)?;
    let (found, missing) = match locate(&asked) {
        Ok(located) => (located.existing, located.missing),
        // Reading a dangling link finds nothing, whatever it names.
        Err(Refusal::Dangling(_)) => return guarded(reach, asked),
        Err(other) => return Err(other),
    };
    guarded(reach, missing.iter().fold(found, |path, name| path.join(name)))
}

/// Opens a path that [`resolve_read`] returned. Fails if a link is in it by now; never blocks on a pipe.
pub(crate) fn open_read(canonical: &Path) -> io::Result<File> {
    dir::open_file(canonical)
}

/// How a path is shown: relative to the root with `/`, or absolute outside of it.
pub(crate) fn display_path(reach: &Reach, path: &Path) -> String {
    let root = &reach.root;
    let inner = path.strip_prefix(root).ok().map(Path::to_path_buf);
    let inner = inner.or_else(|| path.strip_prefix(canonical_or_same(root)).ok().map(Path::to_path_buf));
    match inner {
        Some(rel) if rel.as_os_str().is_empty() => ".".to_owned(),
        Some(rel) => rel.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/"),
        None => path.display().to_string(),
    }
}

fn guarded(reach: &Reach, path: PathBuf) -> Result<PathBuf, Refusal> {
    Guard::new(reach).check(&path).map(|()| path)
}

fn absolute(reach: &Reach, path: &str) -> Result<PathBuf, Refusal> {
    if path.trim().is_empty() || path.contains('\0') {
        return Err(Refusal::Malformed);
    }
    Ok(reach.root.join(path))
}

/// A path taken apart where it stops to exist.
struct Located {
    /// The existing part, without links.
    existing: PathBuf,
    /// What does not exist beneath it, outermost first.
    missing: Vec<std::ffi::OsString>,
}

/// Finds how far `path` exists. Dangling links and `..` out of nowhere are refused, since creating what
/// is missing would follow them.
fn locate(path: &Path) -> Result<Located, Refusal> {
    let shown = || path.display().to_string();
    let mut missing = Vec::new();
    let mut current = path.to_path_buf();
    loop {
        match current.canonicalize() {
            Ok(existing) => {
                missing.reverse();
                return Ok(Located { existing, missing });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Refusal::Unusable { path: shown(), source }),
        }
        if current.symlink_metadata().is_ok() {
            return Err(Refusal::Dangling(shown()));
        }
        match current.components().next_back() {
            Some(Component::Normal(name)) => missing.push(name.to_owned()),
            Some(_) | None => return Err(Refusal::Climbs(shown())),
        }
        current.pop();
    }
}

fn canonical_or_same(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn both_spellings(path: PathBuf) -> Vec<PathBuf> {
    let canonical = canonical_or_same(&path);
    if canonical == path { vec![path] } else { vec![canonical, path] }
}

/// `/proc/<pid>/…` gives away keys in environments and memory, the daemon's own included.
fn is_inside_of_process(canonical: &Path) -> bool {
    canonical.strip_prefix("/proc").is_ok_and(|rest| {
        rest.components().next().is_some_and(|first| {
            first.as_os_str().to_string_lossy().starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

#[cfg(test)]
mod tests;
