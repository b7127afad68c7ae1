//! A private home of a user: state directory, workspaces, and nothing of the machine's own environment.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::process;
use super::provider::Provider;

/// The program under test: the one that was built with the tests, unless `SEEKCLAW_TEST_PROGRAM` names
/// another, such as the release build.
pub fn program() -> String {
    std::env::var("SEEKCLAW_TEST_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_seekclaw").to_owned())
}

/// A user's directory; what was started in it ends with it.
pub struct Home {
    directory: TempDir,
}

impl Home {
    /// An empty home with a short path: socket paths are limited.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("sk").rand_bytes(6).tempdir_in("/tmp").unwrap();
        Self { directory }
    }

    /// A home that knows `provider` under the id `p`, with retries that do not keep a test waiting.
    pub fn with(provider: &Provider) -> Self {
        let home = Self::new();
        home.configure(&provider_config(&[("p", provider)]));
        home
    }

    /// The user's directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The state directory.
    pub fn state(&self) -> PathBuf {
        self.path().join(".seekclaw")
    }

    /// The socket.
    pub fn socket(&self) -> PathBuf {
        self.state().join("daemon.sock")
    }

    /// The configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.state().join("config.json")
    }

    /// Writes `config.json`.
    pub fn configure(&self, config: &Value) {
        self.make_state();
        fs::write(self.config_file(), config.to_string()).unwrap();
        fs::set_permissions(self.config_file(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Makes the state directory as the daemon would.
    pub fn make_state(&self) {
        use std::os::unix::fs::DirBuilderExt as _;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(self.state()).unwrap();
    }

    /// Makes a workspace that has no check of its own.
    pub fn workspace(&self, name: &str) -> PathBuf {
        self.workspace_with(name, &json!({"autoVerify": false}))
    }

    /// Makes a workspace with a configuration of its own.
    pub fn workspace_with(&self, name: &str, config: &Value) -> PathBuf {
        let root = self.path().join(name);
        fs::create_dir_all(root.join(".seekclaw")).unwrap();
        fs::write(root.join(".seekclaw/config.json"), config.to_string()).unwrap();
        root
    }

    /// The program with this home, ready for arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path()).env("LANG", "C.UTF-8").env("SEEKCLAW_LOG", "info");
        // Coverage and sanitizers speak through these.
        for (name, value) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LLVM_PROFILE") {
                command.env(name, value);
            }
        }
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Processes that were started with this home.
    pub fn processes(&self) -> Vec<u32> {
        process::of_home(self.path())
    }

    /// The backgrounds daemon's log, if there is one.
    pub fn log(&self) -> String {
        let foreground = fs::read_to_string(self.path().join("daemon.log")).unwrap_or_default();
        let background = fs::read_to_string(self.state().join("logs/daemon.log")).unwrap_or_default();
        foreground + &background
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(60).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            show(&format!("--- end of the daemon's log ---\n{}\n---", tail.join("\n")));
        }
        // A killed daemon leaves commands behind; those may start others while they are being found.
        for _ in 0..5 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            left.into_iter().for_each(process::kill);
        }
    }
}

/// A configuration with these providers, the first one active.
pub fn provider_config(providers: &[(&str, &Provider)]) -> Value {
    let list: Vec<Value> = providers.iter().map(|(id, provider)| provider.config(id)).collect();
    let first = providers.first().map_or("", |(id, _)| id);
    json!({
        "activeProfile": "default",
        "profiles": {"default": {"provider": first, "model": "m"}},
        "providers": list,
        "routing": {"retry": {"maxAttempts": 3, "baseDelaySeconds": 0.01, "maxDelaySeconds": 0.05}},
    })
}

#[expect(clippy::print_stderr, reason = "the log of a failed test belongs into its output")]
pub(crate) fn show(text: &str) {
    eprintln!("{text}");
}
