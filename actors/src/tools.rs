//! The tools of the agent: one file per tool. A tool is prepared (arguments checked, target resolved),
//! declares its intent if it changes something, and only then has its effect.

mod arguments;
pub mod bash;
mod blocking;
mod diff;
pub(crate) mod edit_file;
#[cfg(test)]
mod files_kit;
mod glob;
mod grep;
#[cfg(test)]
mod kit;
mod list_dir;
mod listing;
pub(crate) mod paths;
pub(crate) mod read_file;
pub mod registry;
mod replace;
mod text;
mod walk;
pub(crate) mod write_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ractor::ActorCell;
use seekclaw_storage::record::log::{Effect, ImageRef, Outcome, Seen};
use tokio_util::sync::CancellationToken;

use crate::locks::Locks;

/// What the model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Name, unique.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: serde_json::Value,
    /// Whether it may change something.
    pub mutating: bool,
}

/// Where a turn's tools may look and write (ruling 17).
#[derive(Clone, Debug)]
pub struct Reach {
    /// Root that relative paths start from; the workspace root or a global session's scratch folder.
    pub root: PathBuf,
    /// Directories that may be written beside it.
    pub additional: Vec<PathBuf>,
    /// The daemon's home: neither read nor written, but for a global session's scratch folder.
    pub home: PathBuf,
    /// Further paths that may not be read (ruling 38).
    pub denied: Vec<PathBuf>,
}

/// Bounds of one call.
#[derive(Clone, Copy, Debug)]
pub struct ToolLimits {
    /// Characters of output that the model gets (contract 5.3).
    pub output_chars: usize,
    /// Default limit of a command.
    pub bash_timeout: Duration,
    /// How long a file lock is waited for (contract 10).
    pub lock_wait: Duration,
}

/// Declares an intent and returns once it is durable. An error means: do not have the effect.
pub type DeclareIntent = Arc<dyn Fn(Effect) -> BoxFuture<'static, Result<(), NotRecorded>> + Send + Sync>;

/// The intent of a call could not be made durable, so its effect must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the intent of the call was not recorded")]
pub struct NotRecorded;

/// The content hashes a session has seen, by canonical path (ruling 19).
#[derive(Debug, Default)]
pub struct SeenFiles(std::sync::Mutex<std::collections::HashMap<PathBuf, String>>);

impl SeenFiles {
    /// SHA-256 of what the session last saw in `path`, hex; empty if it saw that it is gone.
    #[must_use]
    pub fn hash(&self, path: &Path) -> Option<String> {
        self.lock().get(path).cloned()
    }

    /// Notes what the session has seen.
    pub fn note(&self, seen: &Seen) {
        self.lock().insert(PathBuf::from(&seen.path), seen.hash.clone());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<PathBuf, String>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// All that a call may use.
#[derive(Clone)]
pub struct ToolContext {
    /// Id of the call.
    pub call_id: String,
    /// Where it may look and write.
    pub reach: Arc<Reach>,
    /// What the session has seen.
    pub seen: Arc<SeenFiles>,
    /// The file-lock coordinator.
    pub locks: Locks,
    /// `<session id>/<8 hex>`, shown to those who wait for a lock.
    pub owner: String,
    /// The actor whose end releases the locks.
    pub holder: ActorCell,
    /// Makes an intent durable.
    pub declare: DeclareIntent,
    /// Ends the call politely.
    pub cancel: CancellationToken,
    /// Bounds.
    pub limits: ToolLimits,
}

/// A file that a call changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Path relative to the root, or absolute outside of it.
    pub path: String,
    /// Unified diff, 3 context lines, `--- a/…`, `+++ b/…`.
    pub diff: String,
}

/// A process that a command left behind (ruling 18).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survivor {
    /// Its number.
    pub pid: u32,
    /// Its process group.
    pub group: u32,
    /// When it was started, in ticks since the system was; tells it from a later one of the same number.
    pub started: u64,
    /// Its command line, cut at 200 characters.
    pub command: String,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReport {
    /// How it ended.
    pub outcome: Outcome,
    /// What the model sees, within the budget.
    pub text: String,
    /// One line for people; empty means the first line of the text.
    pub summary: String,
    /// Bytes of UTF-8 that were left out of the text.
    pub omitted: u64,
    /// What it changed.
    pub change: Option<FileChange>,
    /// Files it saw or wrote.
    pub seen: Vec<Seen>,
    /// Images it attached.
    pub images: Vec<(ImageRef, Vec<u8>)>,
    /// Processes that it left behind.
    pub survivors: Vec<Survivor>,
}

impl ToolReport {
    /// A success with its text.
    pub fn ok(text: impl Into<String>) -> Self {
        Self::new(Outcome::Ok, text)
    }

    /// A failure with the text that tells the model why.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(Outcome::Failed, text)
    }

    /// An outcome with its text and nothing else.
    pub fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            text: text.into(),
            summary: String::new(),
            omitted: 0,
            change: None,
            seen: Vec::new(),
            images: Vec::new(),
            survivors: Vec::new(),
        }
    }
}
