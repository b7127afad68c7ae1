//! `daemon`: the process itself.

mod foreground;
mod logs;
mod stop;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::client::{Client, ConnectError};
use crate::commands::Context;
use crate::output::print;
use crate::render::escape::neutral;
use crate::start;
use crate::status::Status;

pub(crate) use foreground::foreground;

/// Arguments of `daemon`.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    command: Option<DaemonCommand>,
}

/// What to do with the daemon.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Run in the foreground; also what plain `daemon` does
    Run {
        /// Leave the terminal of whoever starts it
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Start it in the background, unless it runs already
    Start,
    /// Stop it and wait until it has gone
    Stop,
    /// Stop it and start it again
    Restart,
    /// Show whether it runs; status 3 if it does not
    Status,
    /// Show what it logged in the background
    Logs(logs::LogsArgs),
}

impl DaemonArgs {
    /// Whether this process is to be the daemon.
    pub(crate) fn is_run(&self) -> bool {
        matches!(self.command, None | Some(DaemonCommand::Run { .. }))
    }

    fn is_detached(&self) -> bool {
        matches!(self.command, Some(DaemonCommand::Run { detached: true }))
    }
}

/// Runs a `daemon` command of a client.
pub(crate) async fn run(context: &Context, args: DaemonArgs) -> anyhow::Result<Status> {
    match args.command {
        Some(DaemonCommand::Stop) => stop::run(context).await,
        Some(DaemonCommand::Restart) => {
            stop::stop(&context.place).await?;
            started(context).await
        }
        Some(DaemonCommand::Status) => status(context).await,
        Some(DaemonCommand::Logs(args)) => logs::run(context, &args).await,
        Some(DaemonCommand::Start | DaemonCommand::Run { .. }) | None => started(context).await,
    }
}

async fn started(context: &Context) -> anyhow::Result<Status> {
    let client = start::connect(&context.place, true).await?;
    let facts = facts(context, &client);
    context.output.result(&facts, |_| describe(&facts))?;
    Ok(Status::Done)
}

async fn status(context: &Context) -> anyhow::Result<Status> {
    let mut client = match Client::connect(&context.place).await {
        Ok(client) => client,
        Err(ConnectError::Absent) => return stopped(context),
        Err(error) => return Err(error.into_failure(&context.place).into()),
    };
    let mut facts = facts(context, &client);
    let answer = client.ask("daemon.status", json!({})).await?;
    if let Ok(Value::Object(more)) = serde_json::from_str(&answer.data) {
        facts.extend(more);
    }
    context.output.result(&facts, |_| describe(&facts))?;
    Ok(Status::Done)
}

fn stopped(context: &Context) -> anyhow::Result<Status> {
    let facts = json!({"running": false, "socket": context.place.socket(), "home": context.place.home()});
    let text = format!("not running (home {})\n", context.place.home().display());
    print(&if context.output.json { format!("{facts}\n") } else { neutral(&text) })?;
    Ok(Status::Unreachable)
}

fn facts(context: &Context, client: &Client) -> Map<String, Value> {
    let facts = [
        ("running", json!(true)),
        ("pid", json!(client.peer_pid())),
        ("version", json!(client.hello().server_version)),
        ("protocol", json!(client.hello().protocol)),
        ("socket", json!(context.place.socket())),
        ("home", json!(context.place.home())),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn describe(facts: &Map<String, Value>) -> String {
    let text = |name: &str| facts.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
    let pid = facts.get("pid").and_then(Value::as_i64).map_or_else(String::new, |pid| format!(", pid {pid}"));
    let mut shown = format!("running: seekclaw {} (protocol {}{pid})\n", text("version"), text("protocol"));
    shown.push_str(&format!("  home    {}\n  socket  {}\n", text("home"), text("socket")));
    let count = |path: &str| facts.get("turns").and_then(|turns| turns.get(path)).and_then(Value::as_u64);
    if let (Some(running), Some(queued)) = (count("running"), count("queued")) {
        shown.push_str(&format!("  turns   {running} running, {queued} waiting\n"));
    }
    neutral(&shown)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(line: &[&str]) -> DaemonArgs {
        let command = Cli::try_parse_from([&["seekclaw", "daemon"], line].concat()).unwrap().command;
        let Command::Daemon(args) = command else { panic!("{command:?}") };
        args
    }

    #[test]
    fn plain_daemon_runs_it() {
        assert!(parse(&[]).is_run());
        assert!(parse(&["run"]).is_run() && !parse(&["run"]).is_detached());
        assert!(parse(&["run", "--detached"]).is_detached());
        assert!(!parse(&["start"]).is_run() && !parse(&["status"]).is_run());
    }

    #[test]
    fn the_status_is_readable() {
        let facts = json!({"pid": 7, "version": "0.1.0", "protocol": "2.1", "home": "/h", "socket": "/h/daemon.sock",
            "turns": {"running": 2, "queued": 1}});
        assert_eq!(
            describe(facts.as_object().unwrap()),
            "running: seekclaw 0.1.0 (protocol 2.1, pid 7)\n  home    /h\n  socket  /h/daemon.sock\n  \
             turns   2 running, 1 waiting\n"
        );
    }
}
