//! The texts of the built-in model: what the tools brought, what could not be done, and the way to a
//! real model.

use super::plan::Wish;
use crate::history::Message;
use crate::history::check::FailedCheck;
use crate::provider::failure::cut;
use crate::provider::probe::LocalServer;

/// Lines of a result that an answer repeats.
const SHOWN_LINES: usize = 24;
/// Characters of a result that an answer repeats.
const SHOWN_CHARS: usize = 1600;

/// Lines of a failed check that an answer repeats.
const CHECK_LINES: usize = 8;
/// Clauses that were not understood and are repeated.
const SHOWN_CLAUSES: usize = 3;

const INTRODUCTION: &str = "I am seekclaw's built-in offline model: no language model, only a way to try \
    everything. I turn plain requests into real tool calls.\n";
const ABILITIES: &str = "I understand `list files`, `read PATH`, `find TEXT`, `replace A with B in PATH`, \
    `write \"TEXT\" to PATH` and `run COMMAND`, also joined with \"and\" or \"then\".\n";

/// A wish with what its call brought.
pub(super) struct Step<'a> {
    pub(super) wish: &'a Wish,
    pub(super) result: Option<&'a Message>,
}

/// Why a turn looks around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// The request is about the project as a whole.
    Asked,
    /// The request was not understood.
    Instead,
}

/// What became of a turn.
pub(super) struct Outcome<'a> {
    pub(super) steps: Vec<Step<'a>>,
    /// Wishes whose tool is not offered.
    pub(super) refused: Vec<Wish>,
    /// No tool that is offered changes anything.
    pub(super) only_reading: bool,
    /// What was asked for beside the wishes.
    pub(super) unknown: Vec<&'a str>,
    /// Guidance that could only be noted.
    pub(super) noted: Vec<&'a str>,
    pub(super) look: Option<Look>,
    pub(super) check: Option<FailedCheck<'a>>,
    pub(super) lost: bool,
    pub(super) first: bool,
}

/// The answer of a turn.
pub(super) fn up(outcome: &Outcome<'_>) -> String {
    let mut text = if outcome.first { INTRODUCTION.to_owned() } else { "(builtin/offline) ".to_owned() };
    if let Some(check) = &outcome.check {
        text.push_str(&failed(check));
    }
    text.push_str(&opening(outcome));
    for step in &outcome.steps {
        text.push_str(&paragraph(step));
    }
    for wish in &outcome.refused {
        text.push_str(&refusal(wish, outcome.only_reading));
    }
    text.push_str(&not_understood(&outcome.unknown));
    for guidance in &outcome.noted {
        let line =
            format!("\nYour guidance \"{}\" takes a language model; I only note it.\n", cut(guidance, 200));
        text.push_str(&line);
    }
    text
}

fn failed(check: &FailedCheck<'_>) -> String {
    let said = fenced(excerpt(check.tail.trim(), CHECK_LINES));
    format!(
        "The check `{}` failed. I cannot repair what it found: that takes a language model.\n{said}",
        check.command
    )
}

/// How it went on the whole.
fn opening(outcome: &Outcome<'_>) -> String {
    let looked = !outcome.steps.is_empty();
    match outcome.look {
        _ if outcome.lost => "Your request no longer fits into what I can read, so I stop here.\n".to_owned(),
        Some(Look::Asked) if looked => "I cannot explain it, but I looked around for you.\n".to_owned(),
        Some(Look::Instead) if looked => {
            format!(
                "I did not understand the request and did nothing about it. I looked around instead.\n{ABILITIES}"
            )
        }
        Some(_) => format!("I did not understand the request and did nothing.\n{ABILITIES}"),
        None if looked => headline(&outcome.steps),
        None if outcome.refused.is_empty() => ABILITIES.to_owned(),
        None => "I did nothing of what was asked.\n".to_owned(),
    }
}

fn headline(steps: &[Step<'_>]) -> String {
    let ok = steps.iter().filter(|step| step.result.is_some_and(|result| result.success)).count();
    match steps.len() {
        1 if ok == 1 => "The call succeeded.\n".to_owned(),
        1 => "The call failed.\n".to_owned(),
        all if all == ok => format!("All {all} calls succeeded.\n"),
        all => format!("{ok} of {all} calls succeeded.\n"),
    }
}

fn refusal(wish: &Wish, only_reading: bool) -> String {
    let (label, tool) = (wish.label(), wish.tool());
    if only_reading && wish.is_mutating() {
        return format!(
            "\nI did not {label}: `{tool}` is not offered in this mode. Plan mode and readonly mode only read.\n"
        );
    }
    format!("\nI did not {label}: `{tool}` is not offered here.\n")
}

fn not_understood(clauses: &[&str]) -> String {
    if clauses.is_empty() {
        return String::new();
    }
    let shown = clauses.iter().take(SHOWN_CLAUSES).map(|clause| format!("\"{}\"", cut(clause, 80)));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let more = if clauses.len() > SHOWN_CLAUSES { " and more" } else { "" };
    format!("\nI did not understand {shown}{more}, and did nothing about it. {ABILITIES}")
}

fn paragraph(step: &Step<'_>) -> String {
    let label = capitalised(&step.wish.label());
    let Some(result) = step.result else { return format!("\n{label}: there is no result.\n") };
    let said = result.text.trim_end();
    let state = if result.success { "" } else { " failed" };
    if said.is_empty() {
        return format!("\n{label}{state}.\n");
    }
    let shown = excerpt(said, SHOWN_LINES);
    let mut text = format!("\n{label}{state}:\n{}", fenced(shown));
    let left = said.lines().count().saturating_sub(shown.lines().count());
    if left > 0 {
        text.push_str(&format!("… and {left} more {}.\n", if left == 1 { "line" } else { "lines" }));
    }
    text
}

/// In a fence longer than any within, so that the text cannot end it.
fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    format!("{fence}\n{text}\n{fence}\n")
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |head| head.to_uppercase().chain(characters).collect())
}

fn excerpt(text: &str, lines: usize) -> &str {
    let ends = text.match_indices('\n').nth(lines.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    cut(text.get(..ends).unwrap_or(text), SHOWN_CHARS)
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|character| character != of).map(str::len).max().unwrap_or_default()
}

/// The way to a real model, with the servers that answer on this machine.
pub(super) fn how_to_add_a_provider(servers: &[LocalServer]) -> String {
    let mut text = "\nTo use a real model, add its provider: `seekclaw provider add` \
        (`seekclaw provider add --help` shows how).\n"
        .to_owned();
    for server in servers {
        let line = format!("{} answers on this machine: its base URL is {}.\n", server.name, server.base_url);
        text.push_str(&line);
    }
    text
}
