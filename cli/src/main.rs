//! The command line of seekclaw: an ordinary client of the daemon's socket, and the way to run the daemon.

mod args;
mod client;
mod commands;
mod daemon_run;
mod logging;
mod output;
mod place;
mod platform;
mod render;
mod start;
mod status;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::Cli;
use crate::output::note;
use crate::status::Status;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return show_usage(&error),
    };
    match commands::run(cli) {
        Ok(status) => status.into(),
        Err(error) => {
            if !status::is_broken_pipe(&error) {
                note(&format!("seekclaw: {error:#}"));
            }
            status::of(&error).into()
        }
    }
}

fn show_usage(error: &clap::Error) -> ExitCode {
    let status = if error.use_stderr() { Status::Usage } else { Status::Done };
    match error.print() {
        Ok(()) => {}
        Err(error) => tracing::debug!(%error, "the usage cannot be shown"),
    }
    status.into()
}
