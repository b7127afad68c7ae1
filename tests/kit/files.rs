//! Files that count effects and hold commands at a place.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A file to which a tool appends a line, to count how often it ran.
#[derive(Clone, Debug)]
pub struct Effects(PathBuf);

impl Effects {
    /// Counted in `directory`.
    pub fn in_directory(directory: &Path) -> Self {
        Self(directory.join("effects.txt"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Arguments of a `bash` call that appends `line`.
    pub fn append(&self, line: &str) -> Value {
        json!({"command": format!("echo {line} >> {}", self.0.display())})
    }

    /// Arguments of a `bash` call that appends `line`, says so in `started`, and ends when `go` appears.
    pub fn append_and_wait(&self, line: &str, go: &Path) -> Value {
        let (file, go) = (self.0.display(), go.display());
        json!({"command": format!("echo {line} >> {file}; until [ -e {go} ]; do sleep 0.02; done; echo went on")})
    }

    /// The lines so far.
    pub fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until there are `count` lines.
    #[track_caller]
    pub fn wait(&self, count: usize) {
        super::until("the effect", || self.lines().len() >= count);
    }
}
