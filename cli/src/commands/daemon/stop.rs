//! `daemon stop`: asks it to end, and waits until its process has gone.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::client::{Client, ConnectError};
use crate::commands::Context;
use crate::place::Place;
use crate::platform;
use crate::status::{Failure, Status};

/// A daemon stops within about 2 s; this leaves room for a slow disk.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks at the process.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Stops the daemon and says whether there was one.
pub(super) async fn run(context: &Context) -> anyhow::Result<Status> {
    let was_running = stop(&context.place).await?;
    context.output.result(&json!({"running": false, "stopped": was_running}), |_| {
        if was_running { "stopped\n".to_owned() } else { "it was not running\n".to_owned() }
    })?;
    Ok(Status::Done)
}

/// Stops the daemon; `false` if none was running.
pub(super) async fn stop(place: &Place) -> Result<bool, Failure> {
    let deadline = Instant::now() + STOP_LIMIT;
    let mut client = loop {
        match Client::connect(place).await {
            Ok(client) => break client,
            Err(ConnectError::Absent) => return Ok(false),
            Err(ConnectError::Leaving) if Instant::now() < deadline => tokio::time::sleep(LOOK_EVERY).await,
            Err(error) => return Err(error.into_failure(place)),
        }
    };
    let pid = client.peer_pid();
    let answer = client.ask("shutdown", json!({})).await;
    match answer {
        Ok(line) => drop(crate::client::refusal::accepted(line, "stop the daemon", false)?),
        // It may go before its answer is read: then it has done what was asked.
        Err(failure) if failure.status == Status::Unreachable => {
            tracing::debug!(%failure, "no answer to shutdown");
        }
        Err(failure) => return Err(failure),
    }
    drop(client);
    while !has_gone(place, pid).await {
        if Instant::now() >= deadline {
            return Err(still_there(pid));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(true)
}

/// Whether the process has ended, and with it its lock and its socket.
async fn has_gone(place: &Place, pid: Option<i32>) -> bool {
    match pid.and_then(platform::has_ended) {
        Some(ended) => ended,
        None => matches!(Client::connect(place).await, Err(ConnectError::Absent)),
    }
}

fn still_there(pid: Option<i32>) -> Failure {
    let who = pid.map_or_else(|| "its process".to_owned(), |pid| format!("process {pid}"));
    let text = format!("cannot stop the daemon: {who} is still there after {} s", STOP_LIMIT.as_secs());
    Failure::new(Status::Unreachable, text).next("`seekclaw daemon logs` shows what it waits for")
}
