//! Walks a tree of files in a fixed order for the search tools. Links are not followed; ignored,
//! protected and special files are not met.

use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};
use tokio_util::sync::CancellationToken;

use super::listing::counted;
use super::paths::{Guard, Refusal};

/// Files that one search looks at (contract 5.3).
pub(super) const MAX_FILES: usize = 50_000;
/// How long one search may take: even a cold disk gives that many files in it.
pub(super) const MAX_TIME: Duration = Duration::from_secs(120);
/// Directories that hold what was generated, fetched or recorded (contract 5.3).
const IGNORED_DIRECTORIES: [&str; 24] = [
    ".git",
    ".svn",
    ".hg",
    "node_modules",
    "bin",
    "obj",
    "dist",
    "build",
    "out",
    ".cache",
    ".session",
    ".seekclaw",
    ".vs",
    ".idea",
    ".vscode",
    "target",
    "__pycache__",
    ".venv",
    "venv",
    ".next",
    ".nuxt",
    "Library",
    "Temp",
    "packages",
];
/// Files of the search root that say what else is ignored; the later one wins.
const IGNORE_FILES: [&str; 2] = [".gitignore", ".seekclawignore"];
/// A longer ignore file is not one: its patterns are held in memory, several times their size.
const MAX_IGNORE_BYTES: u64 = 1024 * 1024;

/// Whether directories of this name are left out of listings and searches.
pub(super) fn is_ignored_directory(name: &OsStr) -> bool {
    IGNORED_DIRECTORIES.iter().any(|ignored| name == *ignored)
}

/// A tree to walk.
#[derive(Debug)]
pub(super) struct Tree {
    /// Where it starts, without links.
    pub(super) root: PathBuf,
    /// What may not be looked at.
    pub(super) guard: Guard,
    /// The only directory that is of interest, with those above and beneath it; relative, may be empty.
    pub(super) prefix: PathBuf,
    /// Files that are visited; [`MAX_FILES`] but in tests.
    pub(super) max_files: usize,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    /// There are more files than are looked at.
    pub(super) too_many: bool,
    /// It took too long.
    pub(super) too_long: bool,
    /// Directories that could not be read.
    pub(super) unreadable: usize,
}

impl Walked {
    /// Remarks for the result.
    pub(super) fn notes(self) -> Vec<String> {
        let too_many = self.too_many.then(|| format!("stopped after {MAX_FILES} files; name a directory"));
        let too_long = self.too_long.then(|| format!("stopped after {} s", MAX_TIME.as_secs()));
        let unreadable = unreadable_note(self.unreadable);
        [too_many, too_long, unreadable].into_iter().flatten().collect()
    }
}

/// The remark about directories that could not be read, if there are any.
pub(super) fn unreadable_note(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{} could not be read", counted(count, "directory", "directories")))
}

impl Tree {
    /// Visits files by path until `visit` breaks, with their path relative to the root.
    pub(super) fn walk(
        self,
        stop: &CancellationToken,
        mut visit: impl FnMut(&DirEntry, &Path) -> ControlFlow<()>,
    ) -> Walked {
        let (mut walked, mut files) = (Walked::default(), 0);
        let (root, max, end) = (self.root.clone(), self.max_files, Instant::now() + MAX_TIME);
        for entry in self.entries() {
            walked.too_long = Instant::now() >= end;
            if stop.is_cancelled() || walked.too_long {
                break;
            }
            let Ok(entry) = entry else {
                walked.unreadable += 1;
                continue;
            };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            walked.too_many = files == max;
            files += 1;
            let relative = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            if walked.too_many || visit(&entry, relative).is_break() {
                break;
            }
        }
        walked
    }

    fn entries(self) -> ignore::Walk {
        let Self { root, guard, prefix, max_files: _ } = self;
        let mut builder = WalkBuilder::new(&root);
        builder.standard_filters(false).follow_links(false).sort_by_file_name(Ord::cmp);
        let rules = ignore_rules(&root);
        let guard = guard.reaches_beneath(&root).then_some(guard);
        builder.filter_entry(move |entry| {
            entry.depth() == 0 || is_wanted(entry, &root, &prefix, &rules, guard.as_ref())
        });
        builder.build()
    }
}

fn is_wanted(entry: &DirEntry, root: &Path, prefix: &Path, rules: &Gitignore, guard: Option<&Guard>) -> bool {
    let Some(kind) = entry.file_type() else { return false };
    let relative = entry.path().strip_prefix(root).unwrap_or(entry.path());
    let of_interest = if kind.is_dir() {
        !is_ignored_directory(entry.file_name())
            && (relative.starts_with(prefix) || prefix.starts_with(relative))
    } else {
        kind.is_file()
    };
    of_interest
        && !rules.matched(relative, kind.is_dir()).is_ignore()
        && guard.is_none_or(|guard| guard.check(entry.path()).is_ok())
}

/// The ignore files of the search root; lines that are no patterns are left out.
fn ignore_rules(root: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(root);
    // The only failure is a build error of a pattern, and then there is nothing to ignore by.
    if builder.case_insensitive(true).is_err() {
        return Gitignore::empty();
    }
    for name in IGNORE_FILES {
        let file = root.join(name);
        let usable =
            fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_IGNORE_BYTES);
        if usable && let Some(error) = builder.add(&file) {
            tracing::debug!(%error, file = %file.display(), "ignore file has unusable lines");
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// A pattern for paths relative to the root of a search.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    matcher: GlobMatcher,
    prefix: PathBuf,
}

impl Pattern {
    /// Understands a pattern: relative to `root`, or absolute beneath it.
    pub(super) fn new(pattern: &str, root: &Path) -> Result<Self, globset::Error> {
        let inner = Path::new(pattern).strip_prefix(root).ok().and_then(Path::to_str).unwrap_or(pattern);
        let inner = inner.trim_start_matches("./").trim_start_matches('/');
        let inner = if inner.ends_with('/') { format!("{inner}**") } else { inner.to_owned() };
        let matcher = GlobBuilder::new(&inner).literal_separator(true).build()?.compile_matcher();
        Ok(Self { matcher, prefix: literal_prefix(&inner) })
    }

    /// As [`Self::new`], but a pattern without a slash fits in every directory.
    pub(super) fn at_any_depth(pattern: &str, root: &Path) -> Result<Self, globset::Error> {
        if pattern.contains('/') {
            Self::new(pattern, root)
        } else {
            Self::new(&format!("**/{pattern}"), root)
        }
    }

    /// Whether it fits a path relative to the root.
    pub(super) fn fits(&self, relative: &Path) -> bool {
        self.matcher.is_match(relative)
    }

    /// Directory that holds all it fits; empty if that is the root.
    pub(super) fn prefix(&self) -> PathBuf {
        self.prefix.clone()
    }
}

fn literal_prefix(pattern: &str) -> PathBuf {
    let Some((directories, _)) = pattern.rsplit_once('/') else { return PathBuf::new() };
    if directories.contains(['{', '}', ',']) {
        // Alternatives may span slashes.
        return PathBuf::new();
    }
    directories.split('/').take_while(|part| !part.contains(['*', '?', '[', ']', '\\'])).collect()
}

/// Where a search starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// In a directory.
    Directory(PathBuf),
    /// At a single file.
    File(PathBuf),
}

/// Why a search cannot start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    /// A rule refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There is nothing.
    #[error("Path not found: {0}")]
    NotFound(String),
    /// It is a pipe, a socket or a device.
    #[error("Not a file or directory: {0}")]
    Special(String),
}

impl From<StartError> for super::ToolReport {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Refused(refusal) => refusal.into(),
            StartError::NotFound(_) | StartError::Special(_) => Self::failed(error.to_string()),
        }
    }
}

/// Resolves where a search starts.
pub(super) fn start(reach: &super::Reach, path: &str) -> Result<Start, StartError> {
    let path = super::paths::resolve_read(reach, path)?;
    let shown = || path.display().to_string();
    match fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => Ok(Start::Directory(path)),
        Ok(meta) if meta.is_file() => Ok(Start::File(path)),
        Ok(_) => Err(StartError::Special(shown())),
        Err(_) => Err(StartError::NotFound(shown())),
    }
}

#[cfg(test)]
mod tests;
