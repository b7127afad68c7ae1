//! Plain requests as wishes: what a sentence asks for, clause by clause. Quotes keep a text together.

use std::borrow::Cow;

use serde::Serialize;

use super::talk::is_small_talk;

/// One thing that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    List { path: String },
    Read { path: String },
    Find { text: String, path: Option<String> },
    Match { pattern: String },
    Replace { old: String, new: String, path: String },
    Write { path: String, content: String },
    Run { command: String },
}

impl Wish {
    /// The tool that grants it.
    pub(super) fn tool(&self) -> &'static str {
        match self {
            Self::List { .. } => "list_dir",
            Self::Read { .. } => "read_file",
            Self::Find { .. } => "grep",
            Self::Match { .. } => "glob",
            Self::Replace { .. } => "edit_file",
            Self::Write { .. } => "write_file",
            Self::Run { .. } => "bash",
        }
    }

    /// Whether it changes something.
    pub(super) fn is_mutating(&self) -> bool {
        matches!(self, Self::Replace { .. } | Self::Write { .. } | Self::Run { .. })
    }

    /// The arguments of that tool, as JSON.
    pub(super) fn arguments(&self) -> String {
        let mut arguments = Arguments::default();
        match self {
            Self::List { path } | Self::Read { path } => arguments.path = Some(path),
            Self::Find { text, path } => {
                arguments.path = path.as_deref();
                arguments.pattern = Some(literal(text).into());
            }
            Self::Match { pattern } => arguments.pattern = Some(pattern.into()),
            Self::Replace { old, new, path } => {
                arguments.path = Some(path);
                arguments.old_string = Some(old);
                arguments.new_string = Some(new);
                arguments.replace_all = Some(true);
            }
            Self::Write { path, content } => {
                arguments.path = Some(path);
                arguments.content = Some(content);
            }
            Self::Run { command } => arguments.command = Some(command),
        }
        // Only texts and a truth value: writing them into memory cannot fail.
        serde_json::to_string(&arguments).unwrap_or_default()
    }

    /// What is being done, for people.
    pub(super) fn label(&self) -> String {
        match self {
            Self::List { path } => format!("list `{path}`"),
            Self::Read { path } => format!("read `{path}`"),
            Self::Find { text, path: None } => format!("search for `{text}`"),
            Self::Find { text, path: Some(path) } => format!("search for `{text}` in `{path}`"),
            Self::Match { pattern } => format!("match `{pattern}`"),
            Self::Replace { old, new, path } => format!("replace `{old}` with `{new}` in `{path}`"),
            Self::Write { path, .. } => format!("write `{path}`"),
            Self::Run { command } => format!("run `{command}`"),
        }
    }
}

/// Arguments in the order in which people read them; a JSON map would sort them.
#[derive(Default, Serialize)]
struct Arguments<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_string: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_string: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace_all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
}

/// The tool searches for expressions, people mean text.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// What a request comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    /// What can be done, in order.
    pub(super) wishes: Vec<Wish>,
    /// Clauses that ask for something else.
    pub(super) unknown: Vec<&'a str>,
}

/// What a request asks for; no wishes if it asks for nothing that can be done without a model.
pub(super) fn asked(text: &str) -> Asked<'_> {
    let mut asked = Asked::default();
    for line in text.lines() {
        let mut rest = line.trim();
        while !rest.is_empty() {
            let (clause, after) = first_clause(rest);
            match wish(clause) {
                Some(wish) => asked.wishes.push(wish),
                None if is_small_talk(clause) => {}
                None => asked.unknown.push(clause),
            }
            rest = after;
        }
    }
    asked
}

/// Words between two requests, longest first.
const JOINTS: [&str; 9] =
    [", and then ", " and then ", ", then ", " then ", ", and ", " and ", "; ", ". ", ", "];

/// Splits at the first joint with a whole request before it and a verb behind it.
fn first_clause(text: &str) -> (&str, &str) {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        quote = match (quote, character) {
            (None, '"' | '`') => Some(character),
            (Some(open), character) if open == character => None,
            (quote, _) => quote,
        };
        if quote.is_some() {
            continue;
        }
        let (before, behind) = text.split_at(at);
        let behind = JOINTS.iter().find_map(|joint| strip(behind, joint));
        if let Some(behind) = behind
            && begins_with_a_verb(behind)
            && wish(before).is_some()
        {
            return (before, behind);
        }
    }
    (text, "")
}

const LIST: [&str; 4] = ["list", "ls", "show me the files", "show files"];
const READ: [&str; 8] = ["read", "open", "cat", "print", "view", "display", "show me", "show"];
const FIND: [&str; 8] =
    ["search for", "look for", "grep for", "search", "find", "grep", "where is", "where are"];
const REPLACE: [&str; 3] = ["replace", "change", "rename"];
const WRITE: [&str; 3] = ["write", "put", "save"];
const CREATE: [&str; 3] = ["create a file", "create file", "create"];
const RUN: [&str; 3] = ["run", "execute", "exec"];
/// Verbs of requests that take a model; they end the request before them.
const OTHER: [&str; 15] = [
    "delete",
    "remove",
    "fix",
    "repair",
    "refactor",
    "move",
    "copy",
    "explain",
    "summarize",
    "summarise",
    "describe",
    "implement",
    "tell",
    "update",
    "append",
];
const POLITE: [&str; 12] = [
    "please",
    "can you",
    "could you",
    "would you",
    "now",
    "then",
    "first",
    "also",
    "and",
    "kindly",
    "just",
    "instead",
];

fn begins_with_a_verb(text: &str) -> bool {
    let text = without_politeness(text);
    let verbs = [&LIST[..], &READ, &FIND, &REPLACE, &WRITE, &CREATE, &RUN, &OTHER];
    verbs.concat().iter().any(|verb| word(text, verb).is_some()) || asks_what(text).is_some()
}

/// What may end a sentence.
const ENDS: [char; 5] = ['?', '!', '.', ',', ' '];

/// What one clause asks for.
fn wish(clause: &str) -> Option<Wish> {
    let text = without_politeness(clause);
    if let Some(command) = any_word(text, &RUN) {
        return Some(Wish::Run { command: some(unquoted(command.trim()))? });
    }
    let text = without_thanks(text.trim_end_matches(ENDS));
    let replaced = any_word(text, &REPLACE).and_then(replacement);
    let written = || any_word(text, &WRITE).and_then(writing);
    let created = || any_word(text, &CREATE).and_then(creation);
    replaced
        .or_else(written)
        .or_else(created)
        .or_else(|| any_word(text, &LIST).and_then(listing))
        .or_else(|| any_word(text, &FIND).and_then(finding))
        .or_else(|| any_word(text, &READ).and_then(reading))
        .or_else(|| asks_what(text).and_then(reading))
}

/// `what is in PATH`, but not in a place that is shown by looking around.
fn asks_what(text: &str) -> Option<&str> {
    let asked = ["what is in", "what's in", "what does"].iter().find_map(|start| word(text, start))?;
    let path = asked.trim_end_matches(['?', ' ']).trim_end_matches(" contain").trim_end_matches(" say");
    looks_like_a_file(path).then_some(path)
}

fn listing(rest: &str) -> Option<Wish> {
    let mut rest = rest.trim();
    for filler in
        ["all", "the", "me", "files", "file", "folder", "directory", "contents", "of", "in", "under"]
    {
        rest = word(rest, filler).unwrap_or(rest).trim();
    }
    let here = ["", ".", "here", "this", "current"];
    let places = ["folder", "directory", "project", "workspace", "repository", "repo"];
    let kind = word(rest, "this").or_else(|| word(rest, "the")).or_else(|| word(rest, "current"));
    let is = |list: &[&str], text: &str| list.iter().any(|entry| text.eq_ignore_ascii_case(entry));
    if is(&here, rest) || kind.is_some_and(|kind| is(&places, kind)) {
        return Some(Wish::List { path: ".".to_owned() });
    }
    Some(Wish::List { path: one_path(rest)? })
}

fn reading(rest: &str) -> Option<Wish> {
    let mut rest = rest.trim();
    for filler in ["me", "the", "contents of", "content of", "file", "files"] {
        rest = word(rest, filler).unwrap_or(rest).trim();
    }
    Some(Wish::Read { path: one_path(rest)? })
}

fn finding(rest: &str) -> Option<Wish> {
    let rest = word(rest, "for").unwrap_or(rest).trim();
    let (text, path) = match rest.rsplit_once(" in ") {
        Some((text, path)) if looks_like_a_path(path) => (text, Some(unquoted(path.trim()))),
        Some((text, place)) if place.contains("folder") || place.contains("project") => (text, None),
        _ => (rest, None),
    };
    let bare = ["files named", "files called", "files matching", "all", "the word", "the text", "files"];
    let named = bare.iter().find_map(|filler| word(text, filler)).unwrap_or(text);
    let text = some(unquoted(named.trim()))?;
    if text.contains('*') && !text.contains(' ') {
        return Some(Wish::Match { pattern: text });
    }
    Some(Wish::Find { text, path })
}

fn replacement(rest: &str) -> Option<Wish> {
    let (change, path) = split_last(rest, " in ")?;
    let (old, new) = [" with ", " by ", " to "].iter().find_map(|between| split_first(change, between))?;
    Some(Wish::Replace { old: some(unquoted(old))?, new: unquoted(new), path: some(target(path)?)? })
}

fn writing(rest: &str) -> Option<Wish> {
    let (content, path) = [" into ", " to ", " in "].iter().find_map(|between| split_last(rest, between))?;
    Some(Wish::Write { path: target(path)?, content: unquoted(content) })
}

fn creation(rest: &str) -> Option<Wish> {
    let (path, content) = [" containing ", " with "].iter().find_map(|between| split_first(rest, between))?;
    let content = word(content, "the text").or_else(|| word(content, "content")).unwrap_or(content);
    Some(Wish::Write { path: target(path)?, content: unquoted(content) })
}

/// A path as people write it.
fn target(text: &str) -> Option<String> {
    some(unquoted(without_article(text)))
}

/// A path that is the whole rest of a request: with blanks only in quotes, or it is no path.
fn one_path(text: &str) -> Option<String> {
    let text = without_article(text);
    let path = some(unquoted(text))?;
    (path != text || !path.contains(' ')).then_some(path)
}

fn without_article(text: &str) -> &str {
    let text = word(text, "the").unwrap_or(text).trim();
    word(text, "file").unwrap_or(text).trim()
}

fn some(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

fn looks_like_a_path(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && (unquoted(text) != text || !text.contains(' '))
}

fn looks_like_a_file(text: &str) -> bool {
    looks_like_a_path(text) && (text.contains('.') || text.contains('/'))
}

/// The text without the quotes around all of it.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    for quote in ['"', '`', '\''] {
        let inner = text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
        if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

/// Splits at the first `between` outside of quotes.
fn split_first<'a>(text: &'a str, between: &str) -> Option<(&'a str, &'a str)> {
    outside_quotes(text, between).next()
}

/// Splits at the last `between` outside of quotes.
fn split_last<'a>(text: &'a str, between: &str) -> Option<(&'a str, &'a str)> {
    outside_quotes(text, between).last()
}

fn outside_quotes<'a>(text: &'a str, between: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let quotes = |text: &str| text.chars().filter(|character| matches!(character, '"' | '`')).count();
    let splits = text.match_indices(between).map(move |(at, found)| {
        let (before, behind) = text.split_at(at);
        (before, behind.get(found.len()..).unwrap_or_default())
    });
    splits.filter(move |(before, _)| quotes(before) % 2 == 0)
}

fn without_politeness(text: &str) -> &str {
    let mut text = text.trim();
    while let Some(rest) = any_word(text, &POLITE) {
        text = rest.trim_start_matches([',', ' ']);
    }
    text
}

fn without_thanks(text: &str) -> &str {
    let polite = ["please", "thanks", "thank you", "for me"];
    let rest = polite.iter().find_map(|words| {
        let (before, end) = text.split_at_checked(text.len().checked_sub(words.len())?)?;
        (end.eq_ignore_ascii_case(words) && before.ends_with([' ', ','])).then_some(before)
    });
    rest.map_or(text, |rest| rest.trim_end_matches(ENDS))
}

fn any_word<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|candidate| word(text, candidate))
}

/// What follows `start`, if the text starts with these words in any case.
fn word<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let rest = strip(text, start)?;
    let ends = rest.chars().next().is_none_or(|next| next.is_whitespace() || next == ',');
    ends.then(|| rest.trim_start())
}

fn strip<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let head = text.get(..start.len())?;
    head.eq_ignore_ascii_case(start).then(|| text.get(start.len()..)).flatten()
}

#[cfg(test)]
mod tests;
