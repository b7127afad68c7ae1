//! `steer` and `cancel`: words to turns that already run, from any connection.

use clap::Args;
use seekclaw_protocol::ErrorCode;
use serde_json::{Value, json};

use crate::args::Scope;
use crate::client::line::Line;
use crate::client::{Client, Fields, refusal};
use crate::commands::session::listed;
use crate::commands::{Context, prompt, read_stdin};
use crate::render::escape::neutral;
use crate::status::{Failure, Status};

/// Arguments of `steer`.
#[derive(Debug, Args)]
pub(crate) struct SteerArgs {
    /// The session whose turn to guide
    session: String,
    /// The guidance; `-` reads standard input
    #[arg(required = true)]
    message: Vec<String>,
    #[command(flatten)]
    scope: Scope,
}

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The session whose turn and waiting messages to cancel
    #[arg(required_unless_present = "turn", conflicts_with = "turn")]
    session: Option<String>,
    /// One turn by its id
    #[arg(long, value_name = "ID")]
    turn: Option<String>,
    #[command(flatten)]
    scope: Scope,
}

/// Guides the running turn of a session.
pub(crate) async fn steer(context: &Context, args: SteerArgs) -> anyhow::Result<Status> {
    let message = prompt(&args.message, read_stdin)?;
    if message.trim().is_empty() {
        return Err(Failure::usage("cannot steer: the guidance is empty").into());
    }
    let mut client = context.connect().await?;
    let params = json!({"sessionId": args.session, "message": message});
    let answer = client.ask("agent.steer", params).await?;
    if answer.event == "error" && answer.code() == Some(ErrorCode::NotFound) {
        must_exist(&mut client, &args.scope, &args.session, "steer").await?;
        return Err(refusal::refused(&answer, "steer", false)
            .next(format!("`seekclaw run --session {}` sends a message instead", args.session))
            .into());
    }
    let answer = refusal::accepted(answer, "steer", true)?;
    show(context, &answer)
}

/// Cancels the turn and the waiting messages of a session, or one turn.
pub(crate) async fn cancel(context: &Context, args: CancelArgs) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call_on_session("cancel", "agent.cancel", target(&args)).await?;
    if answer.data == "no active turn"
        && let Some(session) = &args.session
    {
        must_exist(&mut client, &args.scope, session, "cancel").await?;
    }
    show(context, &answer)
}

fn target(args: &CancelArgs) -> Fields {
    let named = [("sessionId", &args.session), ("turnId", &args.turn)];
    let given =
        named.into_iter().filter_map(|(name, id)| Some((name.to_owned(), Value::String(id.clone()?))));
    given.collect()
}

/// Tells an idle session from one that does not exist: the answers of both methods are the same for the two.
async fn must_exist(client: &mut Client, scope: &Scope, id: &str, attempt: &str) -> anyhow::Result<()> {
    let sessions = listed(client, scope, true).await?;
    if sessions.iter().any(|session| session.id.eq_ignore_ascii_case(id)) {
        return Ok(());
    }
    let text = format!("cannot {attempt}: session {id} not found in {}", scope.describe());
    let failure = Failure::usage(text);
    Err(match refusal::advice(Some(ErrorCode::NotFound), true, &refusal::Names::default()) {
        Some(next) => failure.next(next).into(),
        None => failure.into(),
    })
}

fn show(context: &Context, answer: &Line) -> anyhow::Result<Status> {
    context.output.result(&json!({"result": answer.data}), |_| format!("{}\n", neutral(&answer.data)))?;
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn cancel_args(line: &[&str]) -> Option<CancelArgs> {
        let command = Cli::try_parse_from(line).ok()?.command;
        let Command::Cancel(args) = command else { panic!("{command:?}") };
        Some(args)
    }

    #[test]
    fn a_turn_is_named_by_its_session_or_its_id() {
        let by_session = target(&cancel_args(&["seekclaw", "cancel", "s1"]).unwrap());
        assert_eq!(Value::Object(by_session), json!({"sessionId": "s1"}));
        let by_turn = target(&cancel_args(&["seekclaw", "cancel", "--turn", "t1"]).unwrap());
        assert_eq!(Value::Object(by_turn), json!({"turnId": "t1"}));
        assert!(cancel_args(&["seekclaw", "cancel"]).is_none());
        assert!(cancel_args(&["seekclaw", "cancel", "s1", "--turn", "t1"]).is_none());
    }

    #[test]
    fn guidance_needs_a_session_and_words() {
        assert!(Cli::try_parse_from(["seekclaw", "steer", "s1"]).is_err());
        assert!(Cli::try_parse_from(["seekclaw", "steer", "s1", "look", "there"]).is_ok());
    }
}
