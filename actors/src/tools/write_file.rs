//! `write_file`: creates or replaces a whole file. A file that changed since the session last saw it is not
//! replaced (ruling 19).

use std::sync::Arc;

use seekclaw_storage::record::log::Seen;
use serde_json::{Map, Value, json};

use super::arguments::required_text;
use super::replace::{Current, Decision, difference, failed, replace};
use super::text::{Encoding, Ends, budget, normalised, omitted_note, rewritten};
use super::{SeenFiles, ToolContext, ToolReport, ToolSpec};

/// Name of the tool.
pub(crate) const NAME: &str = "write_file";

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Create a file, or replace the whole content of one. Missing parent directories are created. \
                      Refused once, with the difference, if the file changed since you last saw it. \
                      Prefer edit_file for changes of a part."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Absolute, or relative to the workspace root"},
                "content": {"type": "string", "description": "The whole new content"}
            },
            "required": ["path", "content"]
        }),
        mutating: true,
    }
}

/// Runs a call.
pub(crate) async fn run(args: &Map<String, Value>, ctx: &ToolContext) -> ToolReport {
    let parsed = required_text(args, "path").and_then(|path| Ok((path, required_text(args, "content")?)));
    let (path, content) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return error.report(NAME),
    };
    let (content, seen, room) = (content.to_owned(), Arc::clone(&ctx.seen), ctx.limits.output_chars);
    replace(ctx, path, move |current| decide(current, &content, &seen, room)).await
}

fn decide(
    current: &Current,
    content: &str,
    seen: &SeenFiles,
    room: usize,
) -> Result<Decision, Box<ToolReport>> {
    let last_seen = seen.hash(&current.path);
    let Some(old) = current.bytes.as_deref() else { return create(current, content, last_seen, room) };
    let (encoding, text) = Encoding::decode(old);
    let new = in_the_style_of(encoding, &text, content);
    let bytes = encoding.for_whole(&new).encode(&new);
    let diff = difference(current, &text, &new);
    let done = format!("Overwrote {}", current.shown);
    match last_seen {
        Some(hash) if hash != current.hash() && bytes != old => {
            let what = if hash.is_empty() { "was created" } else { "was changed" };
            Err(stale(current, what, &diff, room))
        }
        // What was replaced was never looked at: the difference says what is gone.
        None if !diff.is_empty() => {
            let (text, omitted) = within(&format!("{done}\n{diff}"), room);
            Ok(Decision { bytes, text, omitted, diff })
        }
        Some(_) | None => Ok(Decision { bytes, text: done, omitted: 0, diff }),
    }
}

fn create(
    current: &Current,
    content: &str,
    last_seen: Option<String>,
    room: usize,
) -> Result<Decision, Box<ToolReport>> {
    if last_seen.is_some_and(|hash| !hash.is_empty()) {
        return Err(stale(current, "was deleted", "", room));
    }
    let (text, diff) = (format!("Created {}", current.shown), difference(current, "", content));
    Ok(Decision { bytes: content.into(), text, omitted: 0, diff })
}

/// `content` with the line ends of the file, unless it brings its own.
fn in_the_style_of(encoding: Encoding, old: &str, content: &str) -> String {
    let content = encoding.without_second_mark(content);
    if content.contains('\r') {
        return content.to_owned();
    }
    rewritten(&Ends::of(old), 0, &normalised(old), content)
}

/// Refuses once: what the report shows counts as seen, so that the next attempt passes.
fn stale(current: &Current, what: &str, diff: &str, room: usize) -> Box<ToolReport> {
    let shown = &current.shown;
    let head = format!(
        "Stale write: {shown} {what} by somebody else since you last saw it; nothing was written. \
         You have seen it as it is now: retry to write your content, or merge the two first."
    );
    let shown_diff = if diff.is_empty() { "" } else { " From its current content to yours:\n" };
    let (text, omitted) = within(&format!("{head}{shown_diff}{diff}"), room);
    let mut report = failed(text);
    report.omitted = omitted;
    report.summary = format!("{shown} {what} meanwhile");
    report.seen.push(Seen { path: current.path.to_string_lossy().into_owned(), hash: current.hash() });
    report
}

fn within(text: &str, room: usize) -> (String, u64) {
    match budget(text, room) {
        (text, 0) => (text, 0),
        (text, omitted) => (text + &omitted_note(NAME, omitted), omitted),
    }
}

#[cfg(test)]
mod tests;
