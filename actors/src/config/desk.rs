//! Where the files of the configuration are read and changed. Everything here blocks, and is done by one
//! caller at a time.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use seekclaw_protocol::{ErrorCode, Mode, WireError};
use seekclaw_storage::config::{ConfigError, ConfigFile, UpdateError, model};
use tokio::sync::watch;

use super::settings::{OwnConfig, Seen, Settings, own_file};
use crate::workspace::{Surroundings, Workspace};

/// Keeps the last readable configuration somewhere that a broken file does not reach (ruling 24).
/// Called on a blocking thread.
pub trait LastGood: Send + Sync {
    /// What was saved last.
    fn load(&self) -> Option<String>;
    /// Saves a configuration; one that cannot be saved is only logged.
    fn save(&self, text: &str);
}

pub(super) struct Desk {
    file: ConfigFile<model::Config>,
    surroundings: Arc<Surroundings>,
    last_good: Arc<dyn LastGood>,
    /// What `last_good` holds.
    saved: Option<String>,
    settings: watch::Sender<Arc<Settings>>,
}

impl Desk {
    pub(super) fn open(
        path: PathBuf,
        surroundings: Arc<Surroundings>,
        last_good: Arc<dyn LastGood>,
    ) -> (Self, watch::Receiver<Arc<Settings>>) {
        let saved = last_good.load();
        let kept = saved.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let workspace = Arc::new(surroundings.start());
        let first = Settings {
            config: Arc::new(kept),
            broken: None,
            own: Arc::new(OwnConfig::read(&workspace, &path)),
            file: path.clone(),
            workspace,
            seen: Seen::Unknown,
        };
        let (settings, published) = watch::channel(Arc::new(first));
        let mut desk = Self { file: ConfigFile::new(path), surroundings, last_good, saved, settings };
        desk.refresh();
        (desk, published)
    }

    /// Reads what has changed on disk and publishes it.
    pub(super) fn refresh(&mut self) -> Arc<Settings> {
        let old = self.settings.borrow().clone();
        if !old.is_stale() {
            return old;
        }
        let mut new = Settings::clone(&old);
        if old.seen != Seen::As(self.file.stamp()) {
            self.read_file(&mut new);
        }
        if old.own.is_stale(&old.workspace, &old.file) {
            new.own = Arc::new(OwnConfig::read(&old.workspace, &old.file));
        }
        self.publish(new)
    }

    /// Reads everything, changed or not.
    pub(super) fn reload(&mut self) -> Result<(), WireError> {
        let mut new = Settings::clone(&self.settings.borrow());
        self.read_file(&mut new);
        new.own = Arc::new(OwnConfig::read(&new.workspace, &new.file));
        match self.publish(new).broken.clone() {
            None => Ok(()),
            Some(text) => Err(WireError::new(ErrorCode::Conflict, text)),
        }
    }

    pub(super) fn change<T>(
        &mut self,
        change: impl FnMut(&mut model::Config) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        match self.file.update(change) {
            Ok(updated) => {
                let mut new = Settings::clone(&self.settings.borrow());
                new.config = Arc::new(updated.config);
                new.broken = None;
                // Someone else may have written right after us: the next look decides.
                new.seen = Seen::Unknown;
                self.keep(&new.config);
                self.publish(new);
                Ok(updated.answer)
            }
            Err(UpdateError::Refused(error)) => Err(error),
            Err(UpdateError::Config(error)) => {
                self.refresh();
                Err(on_wire(&error))
            }
        }
    }

    pub(super) fn open_workspace(&mut self, path: &str) -> Result<Arc<Settings>, WireError> {
        let workspace = Arc::new(self.surroundings.open(path)?);
        let mut new = Settings::clone(&self.refresh());
        new.own = Arc::new(OwnConfig::read(&workspace, &new.file));
        new.workspace = workspace;
        Ok(self.publish(new))
    }

    /// Writes the mode globally, in the active profile, and in the workspace's file if it has one.
    pub(super) fn switch_mode(&mut self, mode: Mode) -> Result<(), WireError> {
        let settings = self.refresh();
        if let Some(text) = &settings.broken {
            return Err(WireError::new(ErrorCode::Conflict, text));
        }
        let workspace = Arc::clone(&settings.workspace);
        // First the one that wins: if it cannot be written, nothing at all has changed.
        let own = own_file(&workspace, &settings.file).is_some();
        if own && workspace.config_file().symlink_metadata().is_ok() {
            write_own_mode(&workspace, mode)?;
        }
        let text = mode.as_str();
        self.change(|config| {
            text.clone_into(&mut config.agent.mode);
            let profile = config.profiles.entry(config.active_profile.clone()).or_default();
            profile.mode = Some(text.to_owned());
            Ok(())
        })?;
        self.refresh();
        Ok(())
    }

    fn read_file(&mut self, settings: &mut Settings) {
        // Taken first: a change while it is read is then found by the next look.
        settings.seen = Seen::As(self.file.stamp());
        match self.file.load() {
            Ok(config) => {
                if settings.broken.take().is_some() {
                    tracing::info!(file = %self.file.path().display(), "the configuration is in order again");
                }
                self.keep(&config);
                settings.config = Arc::new(config);
            }
            Err(error) => {
                tracing::error!(%error, "the configuration cannot be used, the last good one stays in force");
                settings.broken = Some(error.to_string());
            }
        }
    }

    fn keep(&mut self, config: &model::Config) {
        let Ok(text) = serde_json::to_string(config) else { return };
        // A fresh home has nothing to lose yet.
        let worthless = self.saved.is_none() && *config == model::Config::default();
        if !worthless && self.saved.as_ref() != Some(&text) {
            self.last_good.save(&text);
            self.saved = Some(text);
        }
    }

    fn publish(&self, settings: Settings) -> Arc<Settings> {
        let settings = Arc::new(settings);
        self.settings.send_replace(Arc::clone(&settings));
        settings
    }
}

fn write_own_mode(workspace: &Workspace, mode: Mode) -> Result<(), WireError> {
    let outside = |path: &Path| path.canonicalize().is_ok_and(|path| !path.starts_with(&workspace.root));
    if outside(&workspace.config_file()) {
        let text = "the configuration of the workspace leads out of it";
        return Err(WireError::new(ErrorCode::PathDenied, text));
    }
    let written = ConfigFile::of_workspace(&workspace.root).update(|config| {
        config.mode = Some(mode.as_str().to_owned());
        Ok::<(), std::convert::Infallible>(())
    });
    match written {
        Ok(_) => Ok(()),
        Err(UpdateError::Config(error)) => Err(on_wire(&error)),
        Err(UpdateError::Refused(never)) => match never {},
    }
}

fn on_wire(error: &ConfigError) -> WireError {
    let code = match error {
        ConfigError::Invalid(_) => ErrorCode::Conflict,
        ConfigError::Busy { .. } => ErrorCode::Overloaded,
        ConfigError::Inexpressible { .. } => ErrorCode::InvalidParams,
        ConfigError::Write { source, .. } if is_full(source) => ErrorCode::StorageFull,
        ConfigError::Write { .. } | ConfigError::Read { .. } => ErrorCode::Internal,
    };
    WireError::new(code, error.to_string())
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
