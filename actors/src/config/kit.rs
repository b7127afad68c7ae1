//! A configuration on a disk of its own, for tests.
#![allow(clippy::unwrap_used, reason = "test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ractor::{Actor, ActorRef};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::{Config, ConfigHandle, ConfigMsg, LastGood, Start};
use crate::workspace::Surroundings;

/// A store of one value.
#[derive(Default)]
pub(crate) struct Memory(pub(crate) Mutex<Option<String>>);

impl LastGood for Memory {
    fn load(&self) -> Option<String> {
        self.0.lock().unwrap().clone()
    }

    fn save(&self, text: &str) {
        *self.0.lock().unwrap() = Some(text.to_owned());
    }
}

/// A home, a project in which the daemon starts, and what was kept.
pub(crate) struct Disk {
    _keep: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) memory: Arc<Memory>,
}

impl Disk {
    pub(crate) fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        for folder in ["home", "work"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        fs::write(root.join("work/Cargo.toml"), "").unwrap();
        Self { _keep: keep, root, memory: Arc::default() }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.root.join("home/config.json")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub(crate) fn write(&self, text: &str) -> &Self {
        fs::write(self.file(), text).unwrap();
        self
    }

    pub(crate) fn read(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    pub(crate) fn write_own(&self, text: &str) -> PathBuf {
        let folder = self.work().join(".seekclaw");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.json"), text).unwrap();
        folder.join("config.json")
    }

    pub(crate) fn load(&self) -> ConfigHandle {
        let home = self.root.join("home");
        ConfigHandle::load(Start {
            file: self.file(),
            surroundings: Surroundings::new(self.work(), [home]),
            last_good: self.memory.clone(),
        })
    }

    /// A handle that an actor serves.
    pub(crate) async fn serve(&self) -> ConfigHandle {
        let handle = self.load();
        spawn(&handle).await;
        handle
    }

    pub(crate) fn copies(&self) -> usize {
        let is_copy = |path: &Path| path.display().to_string().contains("config.json.broken-");
        let entries = fs::read_dir(self.root.join("home")).unwrap();
        entries.filter(|entry| is_copy(&entry.as_ref().unwrap().path())).count()
    }
}

pub(crate) async fn spawn(handle: &ConfigHandle) -> (ActorRef<ConfigMsg>, JoinHandle<()>) {
    Actor::spawn(None, Config, handle.clone()).await.unwrap()
}
