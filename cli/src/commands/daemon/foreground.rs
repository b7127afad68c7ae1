//! `daemon run`: this process becomes the daemon, until a signal or a client stops it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::client::PROTOCOL;
use crate::commands::daemon::DaemonArgs;
use crate::daemon_run::{self, DaemonError, Ready};
use crate::output::print;
use crate::place::Place;
use crate::status::{Failure, Status};
use crate::{logging, platform};

/// A blocking task that does not end must not keep a stopped daemon alive.
const RUNTIME_STOP_LIMIT: Duration = Duration::from_secs(1);

/// Runs the daemon in this process.
pub(crate) fn foreground(args: &DaemonArgs) -> anyhow::Result<Status> {
    if args.is_detached() {
        platform::leave_terminal();
    }
    logging::install();
    let place = Place::from_env()?;
    let workspace = std::env::current_dir().context("cannot find the current directory")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot set up the runtime")?;
    let outcome = runtime.block_on(async {
        let reload = Arc::new(Notify::new());
        let stop = until_stopped(Arc::clone(&reload)).map_err(|error| DaemonError::Failed(error.into()))?;
        daemon_run::serve(&place, workspace, announce, stop, reload).await
    });
    runtime.shutdown_timeout(RUNTIME_STOP_LIMIT);
    match outcome {
        Ok(()) => Ok(Status::Done),
        Err(error) => Err(failure(error, &place).into()),
    }
}

/// Tells whoever waits on standard output that the daemon listens. A closed standard output is none's loss.
fn announce(ready: Ready) {
    let line = ready_line(&ready, std::process::id());
    if let Err(error) = print(&line) {
        tracing::debug!(%error, "the ready line cannot be written");
    }
}

fn ready_line(ready: &Ready, pid: u32) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let line = json!({"event": "ready", "socket": ready.socket, "pid": pid, "version": version, "protocol": PROTOCOL});
    format!("{line}\n")
}

fn failure(error: DaemonError, place: &Place) -> Failure {
    match error {
        DaemonError::AlreadyRunning(owner) => {
            Failure::new(Status::Owned, format!("cannot run in {}: {owner}", place.home().display()))
                .next("stop it with `seekclaw daemon stop`, or use another home with SEEKCLAW_HOME")
        }
        DaemonError::Failed(error) => {
            Failure::new(Status::Unreachable, format!("cannot run the daemon: {error:#}"))
        }
    }
}

/// Ends with the first signal to stop; a hang-up is a wish to read the configuration again.
fn until_stopped(reload: Arc<Notify>) -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                _ = hang_up.recv() => {
                    tracing::info!("SIGHUP: reading the configuration again");
                    reload.notify_one();
                    continue;
                }
            };
            tracing::info!("{name}: stopping");
            return;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_one_object() {
        let line = ready_line(&Ready { socket: "/h/daemon.sock".into() }, 1234);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            value,
            json!({"event": "ready", "socket": "/h/daemon.sock", "pid": 1234, "version": version, "protocol": "2.1"})
        );
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn the_loser_names_the_owner_and_exits_73() {
        let place = Place::at(std::path::Path::new("/h"));
        let owned =
            failure(DaemonError::AlreadyRunning("another daemon owns this home: pid 7".into()), &place);
        assert_eq!(owned.status.code(), 73);
        assert!(owned.to_string().contains("pid 7"));
        assert_eq!(failure(DaemonError::Failed(anyhow::anyhow!("x")), &place).status.code(), 3);
    }
}
