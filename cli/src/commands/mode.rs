//! `mode`: what turns may do unless they are told otherwise.

use clap::{Args, Subcommand};
use seekclaw_protocol::Mode;
use serde_json::json;

use crate::commands::Context;
use crate::commands::run::levels::parse_mode;
use crate::render::escape::neutral;
use crate::status::Status;

/// Arguments of `mode`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModeArgs {
    /// Set the mode of all turns to come, as `mode set` does: plan, readonly, edit or auto
    #[arg(value_parser = parse_mode)]
    mode: Option<Mode>,
    #[command(subcommand)]
    command: Option<ModeCommand>,
}

/// What to do with the mode.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum ModeCommand {
    /// Show the mode; also what plain `mode` does
    Get,
    /// Set the mode of all turns to come
    Set {
        /// plan, readonly, edit or auto
        #[arg(value_parser = parse_mode)]
        mode: Mode,
    },
}

impl ModeArgs {
    /// The mode to set, if any.
    fn wanted(&self) -> Option<Mode> {
        match self.command {
            None => self.mode,
            Some(ModeCommand::Get) => None,
            Some(ModeCommand::Set { mode }) => Some(mode),
        }
    }
}

/// Shows or sets the mode.
pub(crate) async fn run(context: &Context, args: ModeArgs) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = match args.wanted() {
        None => client.call("show the mode", "agent.mode.get", json!({})).await?,
        Some(mode) => {
            client.call("set the mode", "agent.mode.switch", json!({"mode": mode.as_str()})).await?
        }
    };
    context.output.result(&json!({"mode": answer.data}), |_| format!("{}\n", neutral(&answer.data)))?;
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use seekclaw_protocol::Mode;

    use crate::args::{Cli, Command};

    fn wanted(line: &[&str]) -> Option<Mode> {
        let command = Cli::try_parse_from([&["seekclaw", "mode"], line].concat()).unwrap().command;
        let Command::Mode(args) = command else { panic!("{command:?}") };
        args.wanted()
    }

    #[test]
    fn a_mode_is_set_with_or_without_the_word() {
        assert_eq!(wanted(&["plan"]), Some(Mode::Plan));
        assert_eq!(wanted(&["set", "plan"]), Some(Mode::Plan));
        assert_eq!(wanted(&["get"]), None);
        assert_eq!(wanted(&[]), None);
        assert!(Cli::try_parse_from(["seekclaw", "mode", "yolo"]).is_err());
    }

    #[test]
    fn modes_are_checked_before_anything_is_sent() {
        assert!(Cli::try_parse_from(["seekclaw", "mode"]).is_ok());
        assert!(Cli::try_parse_from(["seekclaw", "mode", "set", "Plan"]).is_ok());
        let wrong = Cli::try_parse_from(["seekclaw", "mode", "set", "yolo"]).unwrap_err();
        assert!(wrong.to_string().contains("plan, readonly, edit, auto"), "{wrong}");
    }
}
