//! One configuration file: read leniently, changed with care, never replaced by defaults.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use chrono::Utc;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::model::{Config, WorkspaceConfig};
use super::parse::{self, Fault, InvalidConfig};
use super::{broken, edit};
use crate::atomic;

/// Largest file that is read: a real one has some KiB.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// How often a change is worked out anew because someone else wrote meanwhile.
const ATTEMPTS: usize = 5;

/// Links in a row that are followed by hand, when the last one leads nowhere.
const MAX_LINKS: usize = 8;

/// Keys are inside.
const PRIVATE: u32 = 0o600;

/// A workspace's file belongs to the project, like its sources.
const ORDINARY: u32 = 0o644;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Why a configuration cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It does not parse or has a value of a wrong type.
    #[error(transparent)]
    Invalid(#[from] InvalidConfig),
    /// It cannot be read.
    #[error("cannot read config {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be written; the old one is untouched.
    #[error("cannot write config {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others keep writing it.
    #[error("config {} keeps changing", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The changed configuration would not read back as what was asked for.
    #[error("the change of config {} cannot be expressed in JSON", path.display())]
    Inexpressible {
        /// The file.
        path: PathBuf,
    },
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError<E> {
    /// The file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The change itself said no.
    #[error("the change was refused")]
    Refused(E),
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Updated<T, R> {
    /// The configuration from now on.
    pub config: T,
    /// What the change returned.
    pub answer: R,
    /// Whether the file was written.
    pub changed: bool,
}

/// Tells whether a file is the one that was read before, without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// A file that holds a `T`.
#[derive(Debug)]
pub struct ConfigFile<T> {
    path: PathBuf,
    private: bool,
    holds: PhantomData<fn() -> T>,
}

impl<T> Clone for ConfigFile<T> {
    fn clone(&self) -> Self {
        Self { path: self.path.clone(), private: self.private, holds: PhantomData }
    }
}

impl ConfigFile<Config> {
    /// The `config.json` of a home: kept 0600.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), private: true, holds: PhantomData }
    }
}

impl ConfigFile<WorkspaceConfig> {
    /// `.seekclaw/config.json` of a workspace: a file of the project, with the mode it has.
    #[must_use]
    pub fn of_workspace(root: &Path) -> Self {
        Self { path: root.join(".seekclaw/config.json"), private: false, holds: PhantomData }
    }
}

/// The file as it was read.
struct Content {
    bytes: Vec<u8>,
    mode: u32,
}

impl<T: Clone + Default + Serialize + DeserializeOwned> ConfigFile<T> {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it is now, `None` if there is none.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        let found = fs::metadata(&self.path).ok()?;
        let modified = (found.mtime(), found.mtime_nsec());
        Some(Stamp { inode: found.ino(), bytes: found.len(), modified })
    }

    /// Reads it; a missing file is the default. One that is invalid is copied aside, once.
    ///
    /// # Errors
    /// It cannot be read or used.
    pub fn load(&self) -> Result<T, ConfigError> {
        match self.read()? {
            None => Ok(T::default()),
            Some(content) => self.parse(&content.bytes).map(|(_, _, config)| config),
        }
    }

    /// Reads it, applies `change`, and writes what differs. `change` may run again if someone else wrote
    /// meanwhile.
    ///
    /// # Errors
    /// The file is invalid, the change says no, or writing fails: the file is then untouched.
    pub fn update<R, E>(
        &self,
        mut change: impl FnMut(&mut T) -> Result<R, E>,
    ) -> Result<Updated<T, R>, UpdateError<E>> {
        for _ in 0..ATTEMPTS {
            let found = self.read()?;
            let bytes = found.as_ref().map_or(b"{}\n".as_slice(), |content| &content.bytes);
            let (text, document, old) = self.parse(bytes)?;
            let mut config = old.clone();
            let answer = change(&mut config).map_err(UpdateError::Refused)?;
            let Some(edited) = self.edited(text, &document, &old, &config)? else {
                return Ok(Updated { config, answer, changed: false });
            };
            if u64::try_from(edited.len()).unwrap_or(u64::MAX) > MAX_BYTES {
                let source = io::Error::from(io::ErrorKind::FileTooLarge);
                return Err(ConfigError::Write { path: self.path.clone(), source }.into());
            }
            if self.is_still(found.as_ref())? {
                self.write(&edited, found.map(|content| content.mode))?;
                return Ok(Updated { config, answer, changed: true });
            }
        }
        Err(ConfigError::Busy { path: self.path.clone() }.into())
    }

    fn read(&self) -> Result<Option<Content>, ConfigError> {
        let failed = |source| ConfigError::Read { path: self.path.clone(), source };
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Reading a pipe would wait for ever.
        if !found.is_file() {
            return Err(failed(io::Error::other("not a file")));
        }
        if found.len() > MAX_BYTES {
            return Err(failed(io::Error::from(io::ErrorKind::FileTooLarge)));
        }
        if self.private {
            self.make_private(&found);
        }
        let bytes = fs::read(&self.path).map_err(failed)?;
        Ok(Some(Content { bytes, mode: found.mode() & 0o777 }))
    }

    fn make_private(&self, found: &Metadata) {
        if found.mode() & 0o077 == 0 {
            return;
        }
        let path = self.path.display();
        match fs::set_permissions(&self.path, Permissions::from_mode(PRIVATE)) {
            Ok(()) => tracing::warn!(%path, "config was open to others and is 0600 now"),
            Err(error) => tracing::warn!(%path, %error, "config is open to others"),
        }
    }

    fn parse<'a>(&self, bytes: &'a [u8]) -> Result<(&'a str, Value, T), ConfigError> {
        let parsed = parse::text(bytes).and_then(|text| {
            let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
            let document = parse::document(body)?;
            let config = parse::typed(body, &document)?;
            Ok((text, document, config))
        });
        parsed.map_err(|fault| self.set_aside(fault, bytes).into())
    }

    fn set_aside(&self, fault: Fault, bytes: &[u8]) -> InvalidConfig {
        let invalid = fault.in_file(self.path.clone());
        match broken::keep(&self.path, bytes, Utc::now()) {
            Ok(copy) => tracing::debug!(copy = %copy.display(), "kept a copy of an invalid config"),
            Err(error) => tracing::warn!(%error, "cannot keep a copy of an invalid config"),
        }
        invalid
    }

    /// The new text, `None` if nothing differs. What is written must read back as what was asked for.
    fn edited(&self, text: &str, document: &Value, old: &T, new: &T) -> Result<Option<String>, ConfigError> {
        let inexpressible = |_| ConfigError::Inexpressible { path: self.path.clone() };
        let old = serde_json::to_value(old).map_err(inexpressible)?;
        let wanted = serde_json::to_value(new).map_err(inexpressible)?;
        if old == wanted {
            return Ok(None);
        }
        let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let mark = text.get(..text.len() - body.len()).unwrap_or_default();
        let reads_back = |edited: &String| {
            let config = parse::document(edited).and_then(|document| parse::typed::<T>(edited, &document));
            config.is_ok_and(|config| serde_json::to_value(config).is_ok_and(|value| value == wanted))
        };
        // The editor is written to panic on what it does not foresee; then comments are the price.
        let edited = catch_unwind(AssertUnwindSafe(|| edit::text(body, &old, &wanted)));
        let edited = edited.ok().flatten().filter(reads_back).or_else(|| {
            let merged = edit::value(document, &old, &wanted);
            serde_json::to_string_pretty(&merged).ok().map(|text| text + "\n").filter(reads_back)
        });
        let edited = edited.ok_or_else(|| ConfigError::Inexpressible { path: self.path.clone() })?;
        Ok(Some(format!("{mark}{edited}")))
    }

    fn is_still(&self, before: Option<&Content>) -> Result<bool, ConfigError> {
        let now = self.read()?;
        Ok(now.as_ref().map(|content| &content.bytes) == before.map(|content| &content.bytes))
    }

    fn write(&self, text: &str, mode: Option<u32>) -> Result<(), ConfigError> {
        let mode = if self.private { PRIVATE } else { mode.unwrap_or(ORDINARY) };
        let target = target(&self.path);
        let written = target.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
            atomic::remove_leftovers(&target);
            atomic::replace(&target, text.as_bytes(), mode)
        });
        written.map_err(|source| ConfigError::Write { path: self.path.clone(), source })
    }
}

/// The file behind a link: the link must stay one.
fn target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    target
}

#[cfg(test)]
mod tests;
