//! One file per command area: its arguments, the requests they become, how the answers are shown.

pub(crate) mod completions;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod lock;
pub(crate) mod mode;
pub(crate) mod model;
pub(crate) mod provider;
pub(crate) mod raw;
pub(crate) mod run;
pub(crate) mod session;
pub(crate) mod turn;
mod version;
pub(crate) mod workspace;

use std::io::{IsTerminal as _, Read as _};

use anyhow::Context as _;
use serde::de::DeserializeOwned;

use crate::args::{Cli, Command, Common};
use crate::client::Client;
use crate::client::line::Line;
use crate::output::{Output, note};
use crate::place::Place;
use crate::platform;
use crate::start;
use crate::status::{Failure, Status};

/// What a client command works with.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where the daemon lives.
    pub(crate) place: Place,
    /// How results are wanted.
    pub(crate) output: Output,
    /// Whether a daemon may be started.
    may_start: bool,
}

impl Context {
    fn new(common: Common) -> Result<Self, Failure> {
        let output = Output { json: common.json };
        Ok(Self { place: Place::from_env()?, output, may_start: !common.no_start })
    }

    /// A connection; starts a daemon if none answers, unless that is forbidden.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        start::connect(&self.place, self.may_start).await
    }
}

/// Runs one command to its end.
pub(crate) fn run(cli: Cli) -> anyhow::Result<Status> {
    if let Command::Daemon(args) = &cli.command
        && args.is_run()
    {
        return daemon::foreground(args);
    }
    if let Command::Completions(args) = &cli.command {
        return completions::run(args);
    }
    let context = Context::new(cli.common)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot set up the runtime")?.block_on(dispatch(&context, cli.command))
}

async fn dispatch(context: &Context, command: Command) -> anyhow::Result<Status> {
    match command {
        Command::Daemon(args) => daemon::run(context, args).await,
        Command::Run(args) => Box::pin(run::run(context, args)).await,
        Command::Call(args) => raw::run(context, args).await,
        Command::Steer(args) => turn::steer(context, args).await,
        Command::Cancel(args) => turn::cancel(context, args).await,
        Command::Session(command) => session::run(context, command).await,
        Command::Provider(command) => provider::run(context, command).await,
        Command::Model(command) => model::run(context, command).await,
        Command::Mode(args) => mode::run(context, args).await,
        Command::Workspace(command) => workspace::run(context, command).await,
        Command::Lock(lock::LockCommand::List) => lock::list(context).await,
        Command::Doctor(args) => doctor::run(context, args).await,
        Command::Version => version::run(context).await,
        Command::Completions(args) => completions::run(&args),
    }
}

/// The JSON document in the answer `line`.
pub(crate) fn document<T: DeserializeOwned>(line: &Line, what: &str) -> Result<T, Failure> {
    serde_json::from_str(&line.data).map_err(|error| {
        Failure::new(Status::Mismatch, format!("cannot read {what} that the daemon sent: {error}"))
            .next("client and daemon may differ in version: `seekclaw daemon restart`")
    })
}

/// Everything on standard input, as text.
pub(crate) fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("cannot read standard input")?;
    String::from_utf8(bytes).map_err(|_| Failure::usage("standard input is not valid UTF-8").into())
}

/// Says so if something was piped in that the words of a prompt do not ask for.
pub(crate) fn mention_unread_stdin(words: &[String]) {
    if !words.is_empty() && !words.iter().any(|word| word == "-") && platform::stdin_holds_data() {
        note("note: standard input was not read; add - to include it");
    }
}

/// The words of a prompt as one text: `-` stands for `stdin`, and so does having no words at all when
/// something is piped in.
pub(crate) fn prompt(
    words: &[String],
    stdin: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<String> {
    let piped = words.is_empty() && !std::io::stdin().is_terminal();
    let mut typed: Vec<&str> = words.iter().map(String::as_str).collect();
    let dash = typed.iter().position(|word| *word == "-");
    if let Some(at) = dash {
        typed.remove(at);
    }
    let argument = typed.join(" ");
    if dash.is_none() && !piped {
        return Ok(argument);
    }
    let input = stdin()?;
    let parts = [argument.as_str(), input.trim_end()];
    Ok(parts.into_iter().filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_prompt_is_the_argument_stdin_or_both() {
        let stdin = || Ok("piped\ntext\n".to_owned());
        assert_eq!(prompt(&words(&["fix", "it"]), stdin).unwrap(), "fix it");
        assert_eq!(prompt(&words(&["-"]), stdin).unwrap(), "piped\ntext");
        assert_eq!(prompt(&words(&["explain", "-"]), stdin).unwrap(), "explain\n\npiped\ntext");
        assert_eq!(prompt(&words(&["-"]), || Ok(String::new())).unwrap(), "");
    }

    #[test]
    fn an_argument_does_not_touch_stdin() {
        assert!(prompt(&words(&["hello"]), || anyhow::bail!("read")).is_ok());
        assert!(prompt(&words(&["-"]), || anyhow::bail!("read")).is_err());
    }
}
