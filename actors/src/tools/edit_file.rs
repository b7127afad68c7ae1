//! `edit_file`: replaces a part of a file. The part is looked for in the content under the lock, line ends
//! aside; everything else in the file stays as it is, byte for byte.

use serde_json::{Map, Value, json};

use super::arguments::{ArgumentError, required_text};
use super::replace::{Current, Decision, difference, failed, replace};
use super::text::{Encoding, Ends, normalised, rewritten};
use super::{ToolContext, ToolReport, ToolSpec};

/// Name of the tool.
pub(crate) const NAME: &str = "edit_file";

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Replace text in a file. old_string must be in the file exactly once, blanks included, unless \
                      replace_all is set; take it from read_file without the line numbers. Line ends need not match."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Absolute, or relative to the workspace root"},
                "old_string": {"type": "string", "description": "Text to be replaced"},
                "new_string": {"type": "string", "description": "Text to put in its place"},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence (default false)"}
            },
            "required": ["path", "old_string", "new_string"]
        }),
        mutating: true,
    }
}

/// An edit as it was asked for, line ends normalised.
struct Edit {
    old: String,
    new: String,
    all: bool,
}

/// Runs a call.
pub(crate) async fn run(args: &Map<String, Value>, ctx: &ToolContext) -> ToolReport {
    let (path, edit) = match parse(args) {
        Ok(parsed) => parsed,
        Err(error) => return error.report(NAME),
    };
    if edit.old.is_empty() {
        return ToolReport::failed(
            "old_string must not be empty. Use write_file to create or replace a whole file.",
        );
    }
    if edit.old == edit.new {
        return ToolReport::failed("old_string and new_string are the same: there is nothing to change.");
    }
    replace(ctx, path, move |current| match &current.bytes {
        Some(bytes) => decide(current, bytes, &edit),
        None => Err(failed(format!("File not found: {}", current.path.display()))),
    })
    .await
}

fn parse(args: &Map<String, Value>) -> Result<(&str, Edit), ArgumentError> {
    let text = |name| required_text(args, name).map(|text| normalised(text).into_owned());
    let all = match args.get("replace_all") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(all)) => *all,
        Some(_) => return Err(ArgumentError::WrongType { name: "replace_all", expected: "true or false" }),
    };
    let path = required_text(args, "path")?;
    Ok((path, Edit { old: text("old_string")?, new: text("new_string")?, all }))
}

fn decide(current: &Current, bytes: &[u8], edit: &Edit) -> Result<Decision, Box<ToolReport>> {
    let shown = &current.shown;
    let (encoding, original) = Encoding::decode(bytes);
    for text in [&edit.old, &edit.new] {
        encoding.check(text).map_err(|error| failed(format!("Cannot edit {shown}: {error}.")))?;
    }
    let count = normalised(&original).matches(&edit.old).count();
    match (count, edit.all) {
        (0, _) => Err(failed(format!(
            "old_string was not found in {shown}. Re-read the file with read_file and copy the text exactly, \
             blanks included, without line numbers."
        ))),
        (2.., false) => Err(failed(format!(
            "old_string occurs {count} times in {shown}. Add lines around it until it is unique, or set replace_all."
        ))),
        (_, all) => {
            let edited = apply(&original, edit);
            let done = if all {
                format!("Replaced {count} occurrences in {shown}")
            } else {
                format!("Edited {shown}")
            };
            let diff = difference(current, &original, &edited);
            Ok(Decision { bytes: encoding.encode(&edited), text: done, omitted: 0, diff })
        }
    }
}

/// Replaces each occurrence; what is between them is copied with the line ends that it has.
fn apply(original: &str, edit: &Edit) -> String {
    let ends = Ends::of(original);
    let whole = normalised(original);
    let mut edited = String::with_capacity(original.len() + edit.new.len());
    let (mut copied, mut line) = (0, 0);
    for (at, old) in whole.match_indices(edit.old.as_str()) {
        let between = whole.get(copied..at).unwrap_or_default();
        edited.push_str(&ends.restored(line, between));
        line += lines(between);
        edited.push_str(&rewritten(&ends, line, old, &edit.new));
        line += lines(old);
        copied = at + old.len();
    }
    edited.push_str(&ends.restored(line, whole.get(copied..).unwrap_or_default()));
    edited
}

fn lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests;
