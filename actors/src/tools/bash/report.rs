//! The result of a command, in the words of the contract (5.3).

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::Signal;
use seekclaw_storage::record::log::Outcome;

use super::capture::{Output, share};
use crate::tools::{Survivor, ToolReport};

/// Characters of the command that are repeated in a result.
const COMMAND_CHARS: usize = 200;
/// Processes that are listed by name, so that a result stays small.
const LISTED: usize = 10;
/// Characters of the command line of a listed process.
const LISTED_CHARS: usize = 80;
/// Characters for the lines about gaps, which are not output.
const GAP_CHARS: usize = 160;

const SIGNALS: [(Signal, &str); 14] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
];

/// How a command ended.
#[derive(Debug)]
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// Its time was up.
    TimedOut(Duration),
    /// The call was cancelled.
    Cancelled,
    /// It could not be waited for.
    Lost(io::Error),
}

/// Builds the result, `budget` characters at most.
pub(super) fn compose(
    end: &End,
    command: &str,
    (stdout, stderr): (Output, Output),
    left: Vec<Survivor>,
    budget: usize,
) -> ToolReport {
    let (outcome, first) = heading(end, command);
    let last = survivors(&left, matches!(end, End::Exited(_)));
    let around = [&first, &last].iter().filter_map(|line| line.as_ref()).map(|l| l.chars().count() + 1).sum();
    let budget = budget.saturating_sub(around).saturating_sub(GAP_CHARS);
    let (for_stdout, for_stderr) = share(stdout.chars(), stderr.chars(), budget);
    let (stdout, stderr) = (stdout.show(for_stdout, "stdout"), stderr.show(for_stderr, "stderr"));
    let body = join(&stdout.text, &stderr.text);
    let lines = [first, Some(body), last].into_iter().flatten().collect::<Vec<_>>();
    let mut report = ToolReport::new(outcome, lines.join("\n"));
    report.omitted = stdout.omitted + stderr.omitted;
    report.survivors = left;
    report
}

fn join(stdout: &str, stderr: &str) -> String {
    let streams = [stdout, stderr].map(|stream| stream.trim_end_matches(['\n', '\r']));
    let shown = streams.iter().filter(|s| !s.is_empty()).copied().collect::<Vec<_>>().join("\n");
    if shown.trim().is_empty() { "(no output)".to_owned() } else { shown }
}

fn heading(end: &End, command: &str) -> (Outcome, Option<String>) {
    let shown = one_line(command, COMMAND_CHARS);
    match end {
        End::Exited(status) if status.success() => (Outcome::Ok, None),
        End::Exited(status) => (Outcome::Failed, Some(exit_line(*status))),
        End::TimedOut(limit) => {
            (Outcome::Failed, Some(format!("Command timed out after {}s: {shown}", limit.as_secs())))
        }
        End::Cancelled => (Outcome::Cancelled, Some(format!("Command cancelled: {shown}"))),
        End::Lost(error) => {
            (Outcome::Uncertain, Some(format!("The end of the command is uncertain ({error}): {shown}")))
        }
    }
}

/// A signal is shown as shells show it, 128 above its number, and by name.
fn exit_line(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("Exit code {code}"),
        (None, Some(signal)) => {
            let name = SIGNALS.iter().find(|(known, _)| known.as_raw() == signal);
            let name = name.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned());
            format!("Exit code {} (killed by {name})", 128 + signal)
        }
        (None, None) => "Exit code unknown".to_owned(),
    }
}

fn survivors(left: &[Survivor], expected: bool) -> Option<String> {
    if left.is_empty() {
        return None;
    }
    let named =
        left.iter().take(LISTED).map(|s| format!("{} ({})", s.pid, one_line(&s.command, LISTED_CHARS)));
    let mut list = named.collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = left.len().checked_sub(LISTED) {
        list.push_str(&format!(" and {more} more"));
    }
    let what = if expected { "Still running in the background" } else { "Could not be ended" };
    Some(format!("[{what}: {list}]"))
}

fn one_line(text: &str, chars: usize) -> String {
    let mut line: String =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(chars).collect();
    if text.trim().chars().nth(chars).is_some() {
        line.push('…');
    }
    line
}
