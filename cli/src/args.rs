//! The command line as typed. Doc comments here and in `commands` are the help texts.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use serde_json::Value;

use crate::client::Fields;
use crate::commands::{
    completions, daemon, doctor, lock, mode, model, provider, raw, run, session, turn, workspace,
};
use crate::status::Failure;

/// One daemon per user that hosts coding-agent turns and loses nothing.
#[derive(Debug, Parser)]
#[command(name = "seekclaw", version, arg_required_else_help = true, propagate_version = false)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON object, or one a line for lists and streams, and nothing else on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Fail instead of starting a daemon when none answers
    #[arg(long, global = true)]
    pub(crate) no_start: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run, start, stop or look at the daemon
    Daemon(daemon::DaemonArgs),
    /// Run one turn: the answer on standard output, progress on standard error
    Run(run::RunArgs),
    /// Send any method and print every event line as it comes
    Call(raw::CallArgs),
    /// Guide the running turn of a session
    Steer(turn::SteerArgs),
    /// Cancel the running turn and the waiting messages of a session
    Cancel(turn::CancelArgs),
    /// List, show and change sessions
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Configure where models are served
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    /// List, choose and test models
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Show or set what turns may do: plan, readonly, edit, auto
    Mode(mode::ModeArgs),
    /// Show, change or prepare the daemon's current workspace
    #[command(subcommand)]
    Workspace(workspace::WorkspaceCommand),
    /// Look at file locks
    #[command(subcommand)]
    Lock(lock::LockCommand),
    /// Check that everything a turn needs is in place
    Doctor(doctor::DoctorArgs),
    /// Show the versions of this program and of the running daemon
    Version,
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

/// Which sessions a command is about.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Scope {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', value_name = "DIR", conflicts_with = "global")]
    pub(crate) dir: Option<PathBuf>,
    /// Use the global scope, which belongs to no directory
    #[arg(long)]
    pub(crate) global: bool,
}

impl Scope {
    /// The scope parameters of a request.
    pub(crate) fn params(&self) -> Result<Fields, Failure> {
        let mut params = Fields::new();
        if self.global {
            params.insert("global".into(), Value::Bool(true));
        } else {
            params.insert("workspace".into(), Value::String(directory(self.dir.as_deref())?));
        }
        Ok(params)
    }

    /// The scope in words.
    pub(crate) fn describe(&self) -> String {
        if self.global {
            return "the global scope".to_owned();
        }
        directory(self.dir.as_deref()).unwrap_or_else(|_| "this directory".to_owned())
    }
}

/// `dir`, or the current directory, as absolute text.
pub(crate) fn directory(dir: Option<&Path>) -> Result<String, Failure> {
    let dir = dir.unwrap_or(Path::new("."));
    if !dir.is_dir() {
        return Err(Failure::usage(format!("cannot work in {}: it is no directory", dir.display())));
    }
    let absolute = dir.canonicalize().map_err(|error| {
        Failure::usage(format!("cannot work in {}: {error}", dir.display()))
            .next("choose another with -C DIR")
    })?;
    absolute.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!("cannot work in {}: its name is not valid UTF-8", absolute.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn common_flags_may_stand_anywhere() {
        let after = Cli::try_parse_from(["seekclaw", "session", "list", "--json", "--no-start"]).unwrap();
        assert!(after.common.json && after.common.no_start);
        let before = Cli::try_parse_from(["seekclaw", "--json", "version"]).unwrap();
        assert!(before.common.json && !before.common.no_start);
    }

    #[test]
    fn wrong_usage_is_status_two_and_help_is_none() {
        assert!(Cli::try_parse_from(["seekclaw"]).unwrap_err().use_stderr());
        assert!(Cli::try_parse_from(["seekclaw", "nonsense"]).unwrap_err().use_stderr());
        assert!(!Cli::try_parse_from(["seekclaw", "--help"]).unwrap_err().use_stderr());
        assert!(!Cli::try_parse_from(["seekclaw", "--version"]).unwrap_err().use_stderr());
    }

    #[test]
    fn scopes_become_parameters() {
        let temp = tempfile::tempdir().unwrap();
        let here = Scope { dir: Some(temp.path().to_owned()), global: false };
        let expected = temp.path().canonicalize().unwrap();
        assert_eq!(here.params().unwrap()["workspace"], expected.to_str().unwrap());
        let global = Scope { dir: None, global: true };
        assert_eq!(global.params().unwrap()["global"], true);
        assert!(Scope { dir: Some("/no/such/dir".into()), global: false }.params().is_err());
        assert!(Cli::try_parse_from(["seekclaw", "session", "list", "-C", "/", "--global"]).is_err());
    }
}
