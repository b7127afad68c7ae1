//! What is published: the configuration, the current workspace, and what is wrong with their files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use seekclaw_protocol::Mode;
use seekclaw_storage::config::model::{self, WorkspaceConfig};
use seekclaw_storage::config::{ConfigFile, Stamp};

use crate::workspace::Workspace;

/// The configuration and the current workspace at one moment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The configuration: the file's, or the last one that could be read.
    pub config: Arc<model::Config>,
    /// What is wrong with the file, if it could not be read (ruling 24): `Invalid config: …`.
    pub broken: Option<String>,
    /// The file.
    pub file: PathBuf,
    /// The current workspace: what requests mean that name none.
    pub workspace: Arc<Workspace>,
    /// Its own configuration.
    pub own: Arc<OwnConfig>,
    pub(super) seen: Seen,
}

impl Settings {
    /// The effective mode in the current workspace (contract 2.5).
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.own.mode(&self.config)
    }

    /// Whether a file has changed since. Blocks.
    pub(super) fn is_stale(&self) -> bool {
        let now = ConfigFile::<model::Config>::new(&self.file).stamp();
        self.seen != Seen::As(now) || self.own.is_stale(&self.workspace, &self.file)
    }
}

/// What a file looked like when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Nobody looked since it was written.
    Unknown,
    /// Like this; `None` means that it was not there.
    As(Option<Stamp>),
}

/// The configuration that a workspace has of its own.
#[derive(Clone, Debug)]
pub struct OwnConfig {
    /// The configuration; defaults if there is none, or none that could be read.
    pub config: WorkspaceConfig,
    /// What is wrong with the file, if it could not be read: `Invalid config: …`.
    pub broken: Option<String>,
    seen: Seen,
}

impl Default for OwnConfig {
    /// What a global session has.
    fn default() -> Self {
        Self { config: WorkspaceConfig::default(), broken: None, seen: Seen::As(None) }
    }
}

impl OwnConfig {
    /// Reads it; `global` is the daemon's own file, which is no workspace's. Blocks.
    #[must_use]
    pub fn read(workspace: &Workspace, global: &Path) -> Self {
        let Some(file) = own_file(workspace, global) else { return Self::default() };
        // Taken first: a change while it is read is then found by the next look.
        let seen = Seen::As(file.stamp());
        match file.load() {
            Ok(config) => Self { config, broken: None, seen },
            Err(error) => {
                tracing::warn!(%error, "the configuration of the workspace does not count");
                Self { config: WorkspaceConfig::default(), broken: Some(error.to_string()), seen }
            }
        }
    }

    /// The effective mode with `global` (contract 2.5). A file that cannot be read may have forbidden to
    /// write, so nothing is written until it can.
    #[must_use]
    pub fn mode(&self, global: &model::Config) -> Mode {
        let mode = Mode::from_config(self.config.mode.as_deref().unwrap_or(&global.agent.mode));
        if self.broken.is_some() && mode.may_mutate() { Mode::Readonly } else { mode }
    }

    pub(super) fn is_stale(&self, workspace: &Workspace, global: &Path) -> bool {
        self.seen != Seen::As(own_file(workspace, global).and_then(|file| file.stamp()))
    }
}

/// The file of a workspace, unless the workspace is the user's own directory: there it is the daemon's.
pub(super) fn own_file(workspace: &Workspace, global: &Path) -> Option<ConfigFile<WorkspaceConfig>> {
    let state = global.parent().and_then(|folder| folder.canonicalize().ok());
    let own = workspace.own_folder().canonicalize().ok();
    (own.is_none() || own != state).then(|| ConfigFile::of_workspace(&workspace.root))
}
