//! What comes next: the first wish that no call has granted yet, or the sum of the results. Everything
//! follows from the conversation, so a restarted turn goes on where it was.

use std::collections::HashMap;

use super::plan::{Wish, asked};
use super::sum::{self, Look, Outcome, Step};
use super::talk::{is_about_the_project, is_small_talk};
use crate::history::check::FailedCheck;
use crate::history::{Call, Message, Origin, Role};
use crate::provider::Request;

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Call { thinking: String, say: String, call: Call },
    Finish { text: String, first: bool },
}

/// The part of the conversation that the present answer is about: from the last prompt on. What an
/// earlier turn left undone was cancelled, or failed, and stays undone.
struct Turn<'a> {
    requests: Vec<&'a str>,
    calls: Vec<&'a Call>,
    results: HashMap<&'a str, &'a Message>,
    /// The check that failed since the last answer.
    check: Option<FailedCheck<'a>>,
    /// The prompt was trimmed away: what is left to do is not known.
    lost: bool,
    first: bool,
}

impl<'a> Turn<'a> {
    fn of(messages: &'a [Message]) -> Self {
        let from_user = |message: &&Message| message.role == Role::User;
        let begins = |message: &Message| message.role == Role::User && message.origin == Origin::Prompt;
        let ends = |message: &Message| message.role == Role::Assistant && message.calls.is_empty();
        let start = messages.iter().rposition(begins);
        let (before, turn) = messages.split_at(start.unwrap_or_default());
        let asked = turn.iter().filter(from_user).filter(|message| message.origin != Origin::Note);
        let results = turn.iter().filter(|message| message.role == Role::Tool);
        let notes = turn.iter().rev().take_while(from_user).filter(|message| message.origin == Origin::Note);
        Self {
            requests: asked
                .filter(|_| start.is_some())
                .map(|message| message.text.trim())
                .filter(|text| !text.is_empty())
                .collect(),
            calls: turn.iter().flat_map(|message| &message.calls).collect(),
            results: results.map(|message| (message.call_id.as_str(), message)).collect(),
            check: notes.filter_map(|note| FailedCheck::in_note(&note.text)).last(),
            lost: start.is_none(),
            first: start.is_some()
                && before.iter().all(|message| message.role != Role::Assistant)
                && !turn.iter().any(ends),
        }
    }

    fn result(&self, position: usize) -> Option<&'a Message> {
        self.results.get(self.calls.get(position)?.id.as_str()).copied()
    }
}

/// Decides from the conversation and the tools that are offered.
pub(super) fn decide(request: &Request) -> Decision {
    let turn = Turn::of(&request.messages);
    let offered = |wish: &Wish| request.tools.iter().any(|tool| tool.name == wish.tool());
    let Plan { wishes, unknown, noted, look } = Plan::of(&turn);
    let (granted, refused): (Vec<Wish>, Vec<Wish>) = wishes.into_iter().partition(offered);
    if let Some(next) = granted.get(turn.calls.len()) {
        return Decision::Call {
            thinking: if turn.calls.is_empty() { outline(&granted, look) } else { String::new() },
            say: format!("Next: {}.\n", next.label()),
            call: Call {
                id: next_id(&request.messages),
                name: next.tool().to_owned(),
                arguments: next.arguments(),
            },
        };
    }
    let steps = granted.iter().enumerate().map(|(at, wish)| Step { wish, result: turn.result(at) });
    let text = sum::up(&Outcome {
        steps: steps.collect(),
        refused,
        only_reading: request.tools.iter().all(|tool| !tool.mutating),
        unknown,
        noted,
        look,
        check: turn.check,
        lost: turn.lost,
        first: turn.first,
    });
    Decision::Finish { text, first: turn.first }
}

/// What the requests of a turn come to.
#[derive(Default)]
struct Plan<'a> {
    wishes: Vec<Wish>,
    /// What is asked for beside them and not understood.
    unknown: Vec<&'a str>,
    /// Guidance that asks for nothing that can be done.
    noted: Vec<&'a str>,
    /// Why the wishes begin with a look around.
    look: Option<Look>,
}

impl<'a> Plan<'a> {
    fn of(turn: &Turn<'a>) -> Self {
        let mut plan = Self::default();
        for (position, text) in turn.requests.iter().enumerate() {
            let asked = asked(text);
            if !asked.wishes.is_empty() {
                plan.wishes.extend(asked.wishes);
                plan.unknown.extend(asked.unknown);
            } else if position > 0 {
                plan.noted.push(text);
            } else if !is_small_talk(text) {
                let about = is_about_the_project(text);
                plan.look = Some(if about { Look::Asked } else { Look::Instead });
                plan.wishes.extend(look_around(turn));
            }
        }
        plan
    }
}

/// A general question: the folder first, then what seems to explain it.
fn look_around(turn: &Turn<'_>) -> [Wish; 2] {
    let listing = turn.result(0).filter(|result| result.success);
    let entries = listing.map(|result| top_level_files(&result.text)).unwrap_or_default();
    let readme = entries.iter().find(|name| name.to_ascii_lowercase().starts_with("readme"));
    let second = match readme.or_else(|| entries.iter().find(|name| is_readable(name))) {
        Some(name) => Wish::Read { path: (*name).to_owned() },
        None => Wish::Match { pattern: "**/*".to_owned() },
    };
    [Wish::List { path: ".".to_owned() }, second]
}

/// Files of the first level of an indented tree, in which directories end with a slash.
fn top_level_files(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter(|line| !line.starts_with([' ', '\t', '(', '[']));
    names.map(str::trim_end).filter(|name| !name.is_empty() && !name.ends_with('/')).collect()
}

/// A general look reads text, and no secrets.
fn is_readable(name: &str) -> bool {
    const KINDS: [&str; 18] = [
        "md", "txt", "rst", "toml", "json", "yaml", "yml", "rs", "py", "js", "ts", "go", "c", "h", "java",
        "sh", "html", "css",
    ];
    name.rsplit_once('.').is_some_and(|(stem, kind)| !stem.is_empty() && KINDS.contains(&kind))
}

fn outline(wishes: &[Wish], look: Option<Look>) -> String {
    let around = "I look around: the folder first, then what seems to explain it.\n";
    match look {
        Some(Look::Asked) => return format!("The request is about the project as a whole. {around}"),
        Some(Look::Instead) => return format!("I do not understand the request. {around}"),
        None => {}
    }
    let steps: Vec<String> = wishes.iter().map(Wish::label).collect();
    let calls = if steps.len() == 1 { "tool call" } else { "tool calls" };
    format!("The request comes to {} {calls}: {}.\n", steps.len(), steps.join(", then "))
}

/// One more than the highest number given so far: the head of a long conversation may have been trimmed.
fn next_id(messages: &[Message]) -> String {
    let given = messages.iter().flat_map(|message| &message.calls);
    let numbers = given.filter_map(|call| call.id.strip_prefix("offline_")?.parse::<u64>().ok());
    format!("offline_{}", numbers.max().unwrap_or_default().saturating_add(1))
}
