//! `list_dir`: the tree of a directory, a few levels deep.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use seekclaw_storage::record::log::Outcome;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::arguments::{ArgumentError, Arguments, integer, text};
use super::listing::{Listing, counted, printable};
use super::paths::Guard;
use super::walk::{MAX_FILES, Start, is_ignored_directory, start, unreadable_note};
use super::{Reach, ToolContext, ToolReport, ToolSpec, blocking};

/// Name of the tool.
pub(crate) const NAME: &str = "list_dir";
/// Levels that are listed if the call does not say (contract 5.3).
const DEFAULT_DEPTH: u64 = 2;
/// Most levels that are listed (contract 5.3).
const MAX_DEPTH: u64 = 6;
/// Most entries of a listing (contract 5.3).
const MAX_ENTRIES: usize = 500;

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: format!(
            "Lists a directory as an indented tree, directories first and marked with `/`, at most \
             {MAX_ENTRIES} entries. Directories with generated or fetched content are left out."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Directory; the workspace root if absent."},
                "depth": {
                    "type": "integer", "minimum": 1, "maximum": MAX_DEPTH,
                    "description": format!("Levels to list; {DEFAULT_DEPTH} if absent.")
                }
            },
            "additionalProperties": false
        }),
        mutating: false,
    }
}

/// Runs the call.
pub(crate) async fn run(arguments: &Arguments, ctx: &ToolContext) -> ToolReport {
    let (path, depth) = match parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return error.report(NAME),
    };
    let (reach, budget) = (ctx.reach.clone(), ctx.limits.output_chars);
    let listed = blocking::stoppable(&ctx.cancel, move |stop| list(&reach, &path, depth, budget, stop));
    listed.await.unwrap_or_else(|| ToolReport::new(Outcome::Cancelled, "Listing cancelled"))
}

fn parse(arguments: &Arguments) -> Result<(String, u64), ArgumentError> {
    let path = text(arguments, "path")?.filter(|path| !path.is_empty()).unwrap_or(".").to_owned();
    Ok((path, integer(arguments, "depth", 1..=MAX_DEPTH)?.unwrap_or(DEFAULT_DEPTH)))
}

fn list(reach: &Reach, path: &str, depth: u64, budget: usize, stop: &CancellationToken) -> ToolReport {
    let root = match start(reach, path) {
        Ok(Start::Directory(root)) => root,
        Ok(Start::File(file)) => return ToolReport::failed(format!("Not a directory: {}", file.display())),
        Err(error) => return error.into(),
    };
    let guard = Guard::new(reach);
    let guard = guard.reaches_beneath(&root).then_some(guard);
    let mut tree = TreeLister { guard, stop, lines: Vec::new(), more: false, unreadable: 0 };
    if let Err(error) = tree.level(&root, 0, depth) {
        return ToolReport::failed(format!("Cannot list {}: {error}", root.display()));
    }
    let count = tree.lines.len();
    let more = tree.more.then(|| format!("only the first {count} entries are shown"));
    let unreadable = unreadable_note(tree.unreadable);
    let listing = Listing { lines: tree.lines, notes: [more, unreadable].into_iter().flatten().collect() };
    listing.report("(empty directory)", counted(count, "entry", "entries"), budget)
}

struct TreeLister<'a> {
    guard: Option<Guard>,
    stop: &'a CancellationToken,
    lines: Vec<String>,
    more: bool,
    unreadable: usize,
}

/// An entry in the order of the listing: directories first, then by name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    is_other: bool,
    name: std::ffi::OsString,
    path: PathBuf,
    is_link: bool,
}

impl TreeLister<'_> {
    fn level(&mut self, directory: &Path, level: usize, depth: u64) -> io::Result<()> {
        for entry in self.entries(directory)? {
            if self.lines.len() == MAX_ENTRIES {
                self.more = true;
            }
            if self.more || self.stop.is_cancelled() {
                break;
            }
            self.lines.push(format!("{}{}", "  ".repeat(level), shown(&entry)));
            let deeper = !entry.is_other && depth > 1;
            if deeper && self.level(&entry.path, level + 1, depth - 1).is_err() {
                self.unreadable += 1;
            }
        }
        Ok(())
    }

    fn entries(&mut self, directory: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for found in fs::read_dir(directory)? {
            if self.stop.is_cancelled() {
                break;
            }
            if entries.len() == MAX_FILES {
                self.more = true;
                break;
            }
            let Ok(found) = found else { continue };
            let Ok(kind) = found.file_type() else { continue };
            let (name, path) = (found.file_name(), found.path());
            let ignored = kind.is_dir() && is_ignored_directory(&name);
            if !ignored && self.guard.as_ref().is_none_or(|guard| guard.check(&path).is_ok()) {
                entries.push(Entry { is_other: !kind.is_dir(), name, path, is_link: kind.is_symlink() });
            }
        }
        entries.sort();
        Ok(entries)
    }
}

fn shown(entry: &Entry) -> String {
    let name = printable(&entry.name.to_string_lossy());
    if !entry.is_other {
        return format!("{name}/");
    }
    match entry.is_link.then(|| fs::read_link(&entry.path)) {
        Some(Ok(target)) => format!("{name} -> {}", printable(&target.to_string_lossy())),
        Some(Err(_)) | None => name,
    }
}

#[cfg(test)]
mod tests;
