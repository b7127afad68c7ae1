//! Project workspaces (contract 2.1, 2.4): which directory a path belongs to, what kind of project it is,
//! and the files of ours in it. Everything here blocks; callers use `spawn_blocking`.
//!
//! A workspace has two spellings. `root` is canonical and is its identity: two links to one directory are one
//! workspace with one set of sessions. `shown` is the spelling a client used, because clients compare it with
//! the paths they keep.

mod init;
mod kinds;

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use seekclaw_protocol::WireError;
use seekclaw_protocol::workspace::{directory_not_found, invalid_path};

pub use init::init;

/// Folder of a workspace that holds what is ours.
pub const OWN_FOLDER: &str = ".seekclaw";

/// Names that make a directory a project root (contract 2.4), beside solution files.
const MARKERS: [&str; 6] = [".git", OWN_FOLDER, "package.json", "pyproject.toml", "Cargo.toml", "go.mod"];

/// A detected project root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Canonical root: the identity of the workspace, and where tools are confined to.
    pub root: PathBuf,
    /// The same directory as the client spelled it; what answers show as `path`.
    pub shown: PathBuf,
    /// Last segment of `shown`.
    pub name: String,
    /// Project kinds, in the order of the contract.
    pub kinds: Vec<&'static str>,
}

impl Workspace {
    /// The workspace whose canonical root is `root`, found earlier. Blocks.
    ///
    /// # Errors
    /// The directory is gone.
    pub fn at(root: PathBuf) -> Result<Self, WireError> {
        if root.is_dir() { Ok(described(root.clone(), root)) } else { Err(missing(&root)) }
    }

    /// Key of the sessions of this workspace (contract 11).
    #[must_use]
    pub fn scope(&self) -> String {
        format!("workspace|{}", self.root.display())
    }

    /// Its `.seekclaw` folder.
    #[must_use]
    pub fn own_folder(&self) -> PathBuf {
        self.root.join(OWN_FOLDER)
    }

    /// Its own `config.json`.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.own_folder().join("config.json")
    }
}

/// Key of the sessions that belong to no directory (contract 11).
pub const GLOBAL_SCOPE: &str = "global";

/// What detection must know about the daemon itself.
#[derive(Clone, Debug)]
pub struct Surroundings {
    cwd: PathBuf,
    state: Vec<PathBuf>,
}

impl Surroundings {
    /// `cwd` is where relative paths start; `state` are state folders of ours, which mark no project.
    #[must_use]
    pub fn new(cwd: PathBuf, state: impl IntoIterator<Item = PathBuf>) -> Self {
        let state = state.into_iter().map(|folder| canonical(&folder).unwrap_or(folder)).collect();
        Self { cwd, state }
    }

    /// The process as it is: its working directory, the daemon's `home` and the user's `~/.seekclaw`.
    #[must_use]
    pub fn of_process(home: &Path) -> Self {
        let user = std::env::home_dir().filter(|folder| folder.is_absolute());
        let usual = user.map(|folder| folder.join(OWN_FOLDER));
        let cwd = std::env::current_dir().unwrap_or_else(|_| home.to_owned());
        Self::new(cwd, [home.to_owned()].into_iter().chain(usual))
    }

    /// The workspace that `path` belongs to.
    ///
    /// # Errors
    /// The texts of contract 2.1: the path makes no sense, or is no directory.
    pub fn open(&self, path: &str) -> Result<Workspace, WireError> {
        self.detect(&self.absolute(path)?)
    }

    /// The workspace of the working directory: what a fresh daemon starts with.
    #[must_use]
    pub fn start(&self) -> Workspace {
        self.detect(&normal(&self.cwd)).unwrap_or_else(|_| described(self.cwd.clone(), self.cwd.clone()))
    }

    fn absolute(&self, path: &str) -> Result<PathBuf, WireError> {
        if path.trim().is_empty() {
            return Err(invalid_path("The path is empty"));
        }
        if path.contains('\0') {
            return Err(invalid_path("The path contains a null character"));
        }
        Ok(normal(&self.cwd.join(path)))
    }

    fn detect(&self, start: &Path) -> Result<Workspace, WireError> {
        let found = canonical(start).filter(|folder| folder.is_dir()).ok_or_else(|| missing(start))?;
        let root = found.ancestors().find(|folder| self.is_root(folder)).unwrap_or(&found).to_owned();
        let shown = start.ancestors().find(|folder| canonical(folder).as_ref() == Some(&root));
        let shown = shown.unwrap_or(&root).to_owned();
        Ok(described(root, shown))
    }

    fn is_root(&self, folder: &Path) -> bool {
        let marked = |name: &str| {
            let marker = folder.join(name);
            marker.exists() && !(name == OWN_FOLDER && self.is_state(&marker))
        };
        MARKERS.into_iter().any(marked) || kinds::has_file(folder, &["sln", "slnx"])
    }

    fn is_state(&self, folder: &Path) -> bool {
        canonical(folder).is_some_and(|folder| self.state.contains(&folder))
    }
}

fn described(root: PathBuf, shown: PathBuf) -> Workspace {
    let name = shown.file_name().unwrap_or(shown.as_os_str()).to_string_lossy().into_owned();
    let kinds = kinds::of(&root);
    Workspace { root, shown, name, kinds }
}

/// `path` without `.` and `..`, by its text alone, as a shell's `cd` reads it.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // At the root there is nothing to pop, and `/..` is `/`.
            Component::ParentDir => drop(normal.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

fn canonical(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

fn missing(path: &Path) -> WireError {
    directory_not_found(&path.display().to_string())
}

/// Whether `name` ends in one of `extensions`, in any case.
fn has_extension(name: &OsStr, extensions: &[&str]) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    extension.is_some_and(|found| extensions.iter().any(|wanted| found.eq_ignore_ascii_case(wanted)))
}

#[cfg(test)]
mod tests;
