//! `run`: one turn. The answer alone goes to standard output, everything else to standard error.

mod images;
pub(crate) mod levels;
mod progress;
mod screen;
#[cfg(test)]
mod tests;
mod watch;

use std::io::{self, IsTerminal as _, Stderr, Stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use seekclaw_protocol::{Mode, ReasoningLevel};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::args::Scope;
use crate::client::line::Line;
use crate::client::{Client, Fields};
use crate::commands::run::levels::{parse_level, parse_mode, parse_time};
use crate::commands::run::progress::Progress;
use crate::commands::run::screen::Screen;
use crate::commands::run::watch::{Turn, View, follow};
use crate::commands::session::listed;
use crate::commands::{Context, document, mention_unread_stdin, prompt, read_stdin};
use crate::output::{note, print_bytes};
use crate::platform;
use crate::render::style::Style;
use crate::status::{self, Failure, Status};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do; `-` stands for standard input
    prompt: Vec<String>,
    #[command(flatten)]
    scope: Scope,
    /// Go on with a session instead of making one
    #[arg(long, value_name = "ID", conflicts_with = "continue_latest")]
    session: Option<String>,
    /// Go on with the latest session of the directory
    #[arg(long = "continue", short = 'c')]
    continue_latest: bool,
    /// Let a model answer this turn: `provider/model`, an alias or an id
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What this turn may do: plan, readonly, edit, auto
    #[arg(long, value_name = "MODE", value_parser = parse_mode)]
    mode: Option<Mode>,
    /// How much the model should think: none, low, medium, high, max, xhigh, ultra
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    reasoning: Option<ReasoningLevel>,
    /// Show the model an image; may be given more than once
    #[arg(long = "image", value_name = "FILE")]
    images: Vec<PathBuf>,
    /// Cancel the turn after this time: 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
}

/// Runs one turn.
pub(crate) async fn run(context: &Context, args: RunArgs) -> anyhow::Result<Status> {
    let mut params = request(&args)?;
    let deadline = args.timeout.map(|limit| Instant::now() + limit);
    let mut client = context.connect().await?;
    mention_unread_stdin(&args.prompt);
    let session = choose_session(&mut client, &args).await?;
    params.insert("sessionId".into(), json!(session));
    // From here on Ctrl-C is ours: before, it simply ends the process, as nothing has been asked for yet.
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot watch for Ctrl-C")?;
    let id = client.send("chat", params).await?;
    let turn = Turn { id, named: args.session.is_some(), session, deadline };
    let interrupted = async || {
        if interrupts.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    };
    let outcome = if context.output.json {
        follow(&mut client, &turn, &mut Raw, interrupted).await
    } else {
        follow(&mut client, &turn, &mut Human::new(&turn.session), interrupted).await
    };
    let made = args.session.is_none() && !args.continue_latest;
    if made && outcome.as_ref().is_err_and(|error| status::of(error) != Status::Unreachable) {
        remove_if_empty(&mut client, &args.scope, &turn.session).await;
    }
    outcome
}

/// Removes the session that was made for a message which was then refused. What was accepted stays.
async fn remove_if_empty(client: &mut Client, scope: &Scope, session: &str) {
    let removal = async {
        let mut params = scope.params()?;
        params.insert("id".into(), json!(session));
        let answer = client.call("look at the session", "session.get", params.clone()).await?;
        let kept: Value = document(&answer, "the session")?;
        if kept.get("messages").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            client.call("remove the empty session", "session.delete", params).await?;
        }
        Ok::<(), Failure>(())
    };
    if let Err(error) = removal.await {
        tracing::debug!(%error, session, "an empty session may be left");
    }
}

/// The `chat` parameters that do not depend on the daemon, so that mistakes show before it is started.
fn request(args: &RunArgs) -> anyhow::Result<Fields> {
    let images = images::load(&args.images)?;
    let message = prompt(&args.prompt, read_stdin)?;
    if message.trim().is_empty() && images.is_empty() {
        return Err(Failure::usage("cannot run a turn: there is no prompt")
            .next("give it as an argument, or pipe it in: seekclaw run \"list files\"")
            .into());
    }
    let mut params = args.scope.params()?;
    let given = [
        ("message", Some(json!(message))),
        ("images", (!images.is_empty()).then(|| json!(images))),
        ("model", args.model.as_ref().map(|model| json!(model))),
        ("mode", args.mode.map(|mode| json!(mode.as_str()))),
        ("reasoningLevel", args.reasoning.map(|level| json!(level.as_str()))),
    ];
    params.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Ok(params)
}

async fn choose_session(client: &mut Client, args: &RunArgs) -> anyhow::Result<String> {
    if let Some(id) = &args.session {
        return Ok(id.clone());
    }
    if args.continue_latest {
        let latest = listed(client, &args.scope, false).await?.into_iter().next();
        return latest.map(|session| session.id).ok_or_else(|| {
            Failure::usage(format!("cannot continue: there is no session in {}", args.scope.describe()))
                .next("without --continue a new one is made")
                .into()
        });
    }
    let mut params = args.scope.params()?;
    if let Some(level) = args.reasoning {
        params.insert("reasoningLevel".into(), json!(level.as_str()));
    }
    Ok(client.call("make a session", "session.new", params).await?.data)
}

/// Every event line as it comes.
struct Raw;

impl View for Raw {
    fn event(&mut self, line: &Line) -> io::Result<()> {
        print_bytes(&[&line.raw[..], b"\n"].concat())
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        note(text);
        Ok(())
    }

    fn tick(&mut self) {}

    fn is_animated(&self) -> bool {
        false
    }
}

/// Answer and progress for people.
struct Human {
    progress: Progress<Stdout, Stderr>,
    animated: bool,
}

impl Human {
    fn new(session: &str) -> Self {
        let style = Style::stderr();
        let screen = Screen::new(io::stdout(), io::stderr(), style).within(platform::terminal_columns);
        let progress = Progress::new(screen, io::stdout().is_terminal(), session);
        Self { progress, animated: style.is_rich() }
    }
}

impl View for Human {
    fn event(&mut self, line: &Line) -> io::Result<()> {
        self.progress.event(line)
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        self.progress.note(text)
    }

    fn tick(&mut self) {
        self.progress.tick();
    }

    fn is_animated(&self) -> bool {
        self.animated
    }
}
