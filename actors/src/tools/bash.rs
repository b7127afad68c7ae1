//! `bash`: runs a command in a process group of its own. Its output is bounded while it runs, it is over
//! when the command itself ends, and cancel, the time limit or a dropped call end all it started.

mod capture;
mod group;
mod orphans;
mod pipes;
mod report;
mod table;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop, ProcessGroup};
use seekclaw_storage::record::log::{Effect, Outcome};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

pub use self::group::end_survivors;
use self::group::{Group, MARK};
pub use self::orphans::end_orphans;
use self::pipes::Pipes;
use self::report::End;
use super::arguments::{ArgumentError, Arguments, integer, required_text, text};
use super::{ToolContext, ToolReport, ToolSpec, blocking, paths};

/// Name of the tool.
pub(crate) const NAME: &str = "bash";
/// Longest time limit that a call may ask for, in seconds (contract 5.3).
const MAX_TIMEOUT_SECONDS: u64 = 3600;
/// Variables of the daemon that commands do not get, but for the harmless home.
const OWN_VARIABLES: &str = "SEEKCLAW_";
/// Kept, so that a `seekclaw` in a command talks to the same daemon.
const HOME_VARIABLE: &str = "SEEKCLAW_HOME";

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Runs a shell command and returns its output (stdout, then stderr). There is no \
            terminal and no input. The call ends when the command does; what it leaves in the background \
            is listed. Long output is shortened in the middle. Use the file and search tools instead of \
            cat, sed, find or grep where they suffice."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "Command line for `bash -c`."},
                "cwd": {
                    "type": "string",
                    "description": "Directory to run it in; the workspace root if absent."
                },
                "timeout_seconds": {
                    "type": "integer", "minimum": 1, "maximum": MAX_TIMEOUT_SECONDS,
                    "description": "Time limit; the command and all it started are killed then."
                }
            },
            "required": ["command"],
            "additionalProperties": false
        }),
        mutating: true,
    }
}

/// Arguments that were understood.
#[derive(Debug)]
struct Job {
    command: String,
    cwd: String,
    limit: Duration,
}

/// Runs the call.
pub(crate) async fn run(arguments: &Arguments, ctx: &ToolContext) -> ToolReport {
    let job = match job(arguments, ctx) {
        Ok(job) => job,
        Err(error) => return error.report(NAME),
    };
    let (reach, cwd) = (ctx.reach.clone(), job.cwd.clone());
    let cwd = match blocking::run(move || paths::resolve_workdir(&reach, &cwd)).await {
        Ok(cwd) => cwd,
        Err(refusal) => return refusal.into(),
    };
    if ctx.cancel.is_cancelled() {
        return not_started();
    }
    let effect = Effect::Command { command: job.command.clone(), cwd: cwd.display().to_string() };
    if let Err(error) = (ctx.declare)(effect).await {
        return ToolReport::failed(format!("The command was not run: {error}"));
    }
    if ctx.cancel.is_cancelled() {
        return not_started();
    }
    match start(&job.command, &cwd, &ctx.reach.home) {
        Ok(group) => attend(group, &job, ctx).await,
        Err(error) => ToolReport::failed(format!("Cannot start the command in {}: {error}", cwd.display())),
    }
}

fn job(arguments: &Arguments, ctx: &ToolContext) -> Result<Job, ArgumentError> {
    let command = required_text(arguments, "command")?.to_owned();
    if command.trim().is_empty() {
        return Err(ArgumentError::Missing("command"));
    }
    let cwd = text(arguments, "cwd")?.filter(|cwd| !cwd.is_empty()).unwrap_or(".").to_owned();
    let limit = integer(arguments, "timeout_seconds", 1..=MAX_TIMEOUT_SECONDS)?
        .map_or(ctx.limits.bash_timeout, Duration::from_secs);
    Ok(Job { command, cwd, limit })
}

fn not_started() -> ToolReport {
    ToolReport::new(Outcome::Cancelled, "Cancelled before the command was started")
}

/// Starts `command` as leader of a new group.
fn start(command: &str, cwd: &Path, home: &Path) -> io::Result<Group> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let value = orphans::mark(home, COUNT.fetch_add(1, Ordering::Relaxed));
    let spawn = |shell: &str| shell_command(shell, command, cwd, &value).spawn();
    let child = match spawn("bash") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => spawn("sh")?,
        started => started?,
    };
    Ok(Group::new(child, format!("{MARK}={value}")))
}

fn shell_command(shell: &str, command: &str, cwd: &Path, mark: &str) -> CommandWrap {
    let mut wrap = CommandWrap::with_new(shell, |shell| {
        shell.arg("-c").arg(command).current_dir(cwd);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in withheld(std::env::vars_os().map(|(name, _)| name)) {
            shell.env_remove(name);
        }
        shell.env(MARK, mark);
    });
    wrap.wrap(ProcessGroup::leader()).wrap(KillOnDrop);
    wrap
}

/// Variables that commands do not get: the daemon's own may hold secrets.
fn withheld(names: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let own = |name: &OsStr| name.as_encoded_bytes().starts_with(OWN_VARIABLES.as_bytes());
    names.filter(move |name| own(name) && name != HOME_VARIABLE)
}

/// Stays with the command until it ends, is cancelled, or its time is up.
async fn attend(mut group: Group, job: &Job, ctx: &ToolContext) -> ToolReport {
    let deadline = Instant::now() + job.limit;
    let mut pipes = Pipes::of(group.child());
    let end = loop {
        tokio::select! {
            () = ctx.cancel.cancelled() => break End::Cancelled,
            () = sleep_until(deadline) => break End::TimedOut(job.limit),
            status = group.wait() => break status.map_or_else(End::Lost, End::Exited),
            () = pipes.fill(), if pipes.is_open() => {}
        }
    };
    let left = match end {
        End::Exited(_) => {
            pipes.drain().await;
            group.let_go().await
        }
        End::Cancelled | End::TimedOut(_) | End::Lost(_) => {
            let left = group.end().await;
            pipes.drain().await;
            left
        }
    };
    report::compose(&end, &job.command, pipes.finish(), left, ctx.limits.output_chars)
}

#[cfg(test)]
mod tests;
