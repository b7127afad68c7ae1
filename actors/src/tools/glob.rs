//! `glob`: files by a pattern of their paths, newest first.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::SystemTime;

use seekclaw_storage::record::log::Outcome;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::arguments::{ArgumentError, Arguments, required_text, text};
use super::listing::{Listing, counted, printable};
use super::paths::{Guard, display_path};
use super::walk::{MAX_FILES, Pattern, Start, Tree, start};
use super::{Reach, ToolContext, ToolReport, ToolSpec, blocking};

/// Name of the tool.
pub(crate) const NAME: &str = "glob";
/// Most files of a result (contract 5.3).
const MAX_RESULTS: usize = 200;

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: format!(
            "Finds files by path pattern, newest first, at most {MAX_RESULTS}. `*` and `?` stay within one \
             name, `**/` spans directories (`**/*.rs` finds all at any depth), `{{a,b}}` are alternatives. \
             Ignored files and directories with generated content are left out."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Pattern, relative to `path`."},
                "path": {
                    "type": "string",
                    "description": "Directory to search in; the workspace root if absent."
                }
            },
            "required": ["pattern"],
            "additionalProperties": false
        }),
        mutating: false,
    }
}

/// Runs the call.
pub(crate) async fn run(arguments: &Arguments, ctx: &ToolContext) -> ToolReport {
    let (pattern, path) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return error.report(NAME),
    };
    let (reach, budget) = (ctx.reach.clone(), ctx.limits.output_chars);
    let found = blocking::search(&ctx.cancel, move |stop| find(&reach, &pattern, &path, budget, stop));
    found.await.unwrap_or_else(|| ToolReport::new(Outcome::Cancelled, "Search cancelled"))
}

fn parse(arguments: &Arguments) -> Result<(String, String), ArgumentError> {
    let pattern = required_text(arguments, "pattern")?.to_owned();
    if pattern.is_empty() {
        return Err(ArgumentError::Missing("pattern"));
    }
    Ok((pattern, text(arguments, "path")?.filter(|path| !path.is_empty()).unwrap_or(".").to_owned()))
}

fn find(reach: &Reach, pattern: &str, path: &str, budget: usize, stop: &CancellationToken) -> ToolReport {
    let root = match start(reach, path) {
        Ok(Start::Directory(root)) => root,
        Ok(Start::File(file)) => return ToolReport::failed(format!("Not a directory: {}", file.display())),
        Err(error) => return error.into(),
    };
    let pattern = match Pattern::new(pattern, &root) {
        Ok(pattern) => pattern,
        Err(error) => return ToolReport::failed(format!("Invalid pattern: {error}")),
    };
    let mut found: Vec<(Reverse<SystemTime>, PathBuf)> = Vec::new();
    let tree = Tree { root, guard: Guard::new(reach), prefix: pattern.prefix(), max_files: MAX_FILES };
    let walked = tree.walk(stop, |entry, relative| {
        if pattern.fits(relative) {
            let modified = entry.metadata().ok().and_then(|meta| meta.modified().ok());
            found.push((Reverse(modified.unwrap_or(SystemTime::UNIX_EPOCH)), entry.path().to_path_buf()));
        }
        ControlFlow::Continue(())
    });
    found.sort();
    let count = found.len();
    let lines = found.iter().take(MAX_RESULTS).map(|(_, path)| printable(&display_path(reach, path)));
    let mut listing = Listing { lines: lines.collect(), notes: walked.notes() };
    if count > MAX_RESULTS {
        listing.notes.insert(0, format!("{} older files are not shown", count - MAX_RESULTS));
    }
    listing.report("No files matched.", counted(count, "file", "files"), budget)
}

#[cfg(test)]
mod tests;
