//! Following a turn to its end: its events, Ctrl-C, the time limit, and a daemon that goes away.

use std::io;
use std::time::Duration;

use seekclaw_protocol::RequestId;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

use crate::client::line::Line;
use crate::client::{Client, belongs, refusal};
use crate::status::{Failure, Status};

/// A cancelled turn ends within 2 s; after this nobody waits for it any longer.
const CANCEL_LIMIT: Duration = Duration::from_secs(10);
/// Between two frames of the spinner.
const FRAME: Duration = Duration::from_millis(120);

/// Shows a turn.
pub(super) trait View {
    /// One event of the turn.
    fn event(&mut self, line: &Line) -> io::Result<()>;
    /// A note of our own.
    fn note(&mut self, text: &str) -> io::Result<()>;
    /// Time has passed.
    fn tick(&mut self);
    /// Whether it wants to know that time passes.
    fn is_animated(&self) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Interrupt,
    Timeout,
}

/// One turn that is followed.
#[derive(Debug)]
pub(super) struct Turn {
    /// Id of its request.
    pub(super) id: RequestId,
    /// Its session.
    pub(super) session: String,
    /// Whether the user named the session.
    pub(super) named: bool,
    /// When to give up.
    pub(super) deadline: Option<Instant>,
}

/// Follows `turn` to its terminal event, or until the user interrupts twice.
pub(super) async fn follow(
    client: &mut Client,
    turn: &Turn,
    view: &mut impl View,
    mut interrupted: impl AsyncFnMut(),
) -> anyhow::Result<Status> {
    let mut cause = None;
    let mut model = String::new();
    let mut limit = turn.deadline;
    let mut frames = tokio::time::interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            biased;
            () = interrupted() => {
                if cause.is_some() {
                    view.note(&left_alone(turn))?;
                    return Ok(Status::Interrupted);
                }
                view.note("cancelling; Ctrl-C again stops waiting for it")?;
                (cause, limit) = (Some(Cause::Interrupt), cancel(client, turn).await?);
            }
            () = reached(limit) => {
                if let Some(cause) = cause {
                    view.note(&left_alone(turn))?;
                    return Ok(cause.status());
                }
                view.note("the time is up: cancelling")?;
                (cause, limit) = (Some(Cause::Timeout), cancel(client, turn).await?);
            }
            _ = frames.tick(), if view.is_animated() => view.tick(),
            line = client.next() => {
                let line = line.map_err(|failure| lost(failure, turn))?;
                if belongs(&line, turn.id) {
                    view.event(&line)?;
                    if line.event == "model_start" {
                        model.clone_from(&line.data);
                    }
                    if line.is_terminal() {
                        return ended(&line, cause, turn, &model);
                    }
                }
            }
        }
    }
}

impl Cause {
    fn status(self) -> Status {
        match self {
            Self::Interrupt => Status::Interrupted,
            Self::Timeout => Status::Stopped,
        }
    }
}

async fn reached(limit: Option<Instant>) {
    match limit {
        Some(limit) => sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

/// Asks for the end of the turn; returns when to stop waiting for it.
async fn cancel(client: &mut Client, turn: &Turn) -> Result<Option<Instant>, Failure> {
    client.send("agent.cancel", json!({"requestId": turn.id})).await?;
    Ok(Some(Instant::now() + CANCEL_LIMIT))
}

/// What the terminal event means for the exit status.
fn ended(line: &Line, cause: Option<Cause>, turn: &Turn, model: &str) -> anyhow::Result<Status> {
    match (line.event.as_str(), cause) {
        (_, Some(Cause::Interrupt)) => Ok(Status::Interrupted),
        ("done", _) => Ok(Status::Done),
        (_, Some(Cause::Timeout)) => Ok(Status::Stopped),
        ("cancelled", None) => Err(Failure::new(
            Status::Stopped,
            "the turn was cancelled by someone else, or the daemon was stopped",
        )
        .next(go_on(turn))
        .into()),
        ("error", None) => Err(refusal::failed_turn(line, turn.named, &turn.session, model).into()),
        (other, None) => {
            Err(Failure::new(Status::Mismatch, format!("the turn ended in an unknown way: {other}")).into())
        }
    }
}

fn lost(failure: Failure, turn: &Turn) -> Failure {
    if failure.status != Status::Unreachable {
        return failure;
    }
    let text = format!("lost the daemon during the turn of session {}", turn.session);
    Failure::new(Status::Unreachable, text).next(format!(
        "`seekclaw daemon logs` shows what happened; `seekclaw session show {}` what is kept",
        turn.session
    ))
}

/// Both ways to get here asked for the end of the turn before.
fn left_alone(turn: &Turn) -> String {
    let id = &turn.session;
    format!(
        "no longer waiting; the turn in session {id} is being cancelled: `seekclaw session show {id}` shows \
         what came of it"
    )
}

fn go_on(turn: &Turn) -> String {
    // Whoever deletes a session cancels its turn first.
    let id = &turn.session;
    format!("unless the session was deleted, `seekclaw run --session {id} …` goes on from here")
}
