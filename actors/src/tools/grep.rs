//! `grep`: lines by a regular expression, in the order of their paths.

mod file;

use std::ops::ControlFlow;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use seekclaw_storage::record::log::Outcome;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::file::{FileSearch, Found, Parents};
use super::arguments::{ArgumentError, Arguments, integer, required_text, text};
use super::listing::{Listing, counted, printable};
use super::paths::{Guard, display_path, open_read};
use super::walk::{MAX_FILES, Pattern, Start, Tree, Walked, start};
use super::{Reach, ToolContext, ToolReport, ToolSpec, blocking};

/// Name of the tool.
pub(crate) const NAME: &str = "grep";
/// Matches of a result if the call does not say (contract 5.3).
const DEFAULT_RESULTS: u64 = 100;
/// Most matches of a result (contract 5.3).
const MAX_RESULTS: u64 = 1000;
/// Memory of one compiled expression: a hostile one must not take the daemon's.
const REGEX_BYTES: usize = 16 * 1024 * 1024;

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Searches the content of files for a regular expression and returns \
            `path:line: text`. Matching is by line and minds the case (`(?i)` turns that off); look-around \
            and back-references are not supported. Binary and ignored files and directories with generated \
            content are left out."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "Regular expression."},
                "path": {
                    "type": "string",
                    "description": "File or directory to search; the workspace root if absent."
                },
                "glob": {
                    "type": "string",
                    "description": "Only files whose path fits; without a slash at any depth, as `*.rs`."
                },
                "max_results": {
                    "type": "integer", "minimum": 1, "maximum": MAX_RESULTS,
                    "description": format!("Most lines to return; {DEFAULT_RESULTS} if absent.")
                }
            },
            "required": ["pattern"],
            "additionalProperties": false
        }),
        mutating: false,
    }
}

/// Arguments that were understood.
#[derive(Debug)]
struct Query {
    pattern: String,
    path: String,
    glob: Option<String>,
    max: usize,
}

/// Runs the call.
pub(crate) async fn run(arguments: &Arguments, ctx: &ToolContext) -> ToolReport {
    let query = match parse(arguments) {
        Ok(query) => query,
        Err(error) => return error.report(NAME),
    };
    let (reach, budget) = (ctx.reach.clone(), ctx.limits.output_chars);
    let found = blocking::search(&ctx.cancel, move |stop| search(&reach, &query, budget, stop));
    found.await.unwrap_or_else(|| ToolReport::new(Outcome::Cancelled, "Search cancelled"))
}

fn parse(arguments: &Arguments) -> Result<Query, ArgumentError> {
    let pattern = required_text(arguments, "pattern")?.to_owned();
    let path = text(arguments, "path")?.filter(|path| !path.is_empty()).unwrap_or(".").to_owned();
    let glob = text(arguments, "glob")?.filter(|glob| !glob.is_empty()).map(str::to_owned);
    let max = integer(arguments, "max_results", 1..=MAX_RESULTS)?.unwrap_or(DEFAULT_RESULTS);
    Ok(Query { pattern, path, glob, max: usize::try_from(max).unwrap_or(usize::MAX) })
}

fn search(reach: &Reach, query: &Query, budget: usize, stop: &CancellationToken) -> ToolReport {
    let matcher = match matcher(&query.pattern) {
        Ok(matcher) => matcher,
        Err(error) => return ToolReport::failed(format!("Invalid regex: {error}")),
    };
    let mut files = FileSearch::new(matcher, query.max, stop);
    let searched = match start(reach, &query.path) {
        Ok(Start::Directory(root)) => search_tree(reach, &root, query.glob.as_deref(), &mut files, stop),
        Ok(Start::File(file)) => {
            search_one(reach, &file, &mut files);
            Ok(Walked::default())
        }
        Err(error) => return error.into(),
    };
    match searched {
        Ok(walked) => compose(files.finish(), walked, budget),
        Err(error) => ToolReport::failed(format!("Invalid glob: {error}")),
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    // `$` also fits before a CR, and no match spans lines.
    builder.multi_line(true).crlf(true).line_terminator(Some(b'\n'));
    builder.size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES);
    builder.build(pattern)
}

fn search_one(reach: &Reach, file: &Path, files: &mut FileSearch<'_>) {
    files.search(|| printable(&display_path(reach, file)), open_read(file));
}

fn search_tree(
    reach: &Reach,
    root: &Path,
    glob: Option<&str>,
    files: &mut FileSearch<'_>,
    stop: &CancellationToken,
) -> Result<Walked, globset::Error> {
    let filter = glob.map(|glob| Pattern::at_any_depth(glob, root)).transpose()?;
    let prefix = filter.as_ref().map(Pattern::prefix).unwrap_or_default();
    let tree = Tree { root: root.to_path_buf(), guard: Guard::new(reach), prefix, max_files: MAX_FILES };
    let mut parents = Parents::new(root);
    Ok(tree.walk(stop, |_, relative| {
        if filter.as_ref().is_some_and(|filter| !filter.fits(relative)) {
            return ControlFlow::Continue(());
        }
        files.search(|| printable(&display_path(reach, &root.join(relative))), parents.open(relative));
        if files.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }))
}

fn compose(found: Found, walked: Walked, budget: usize) -> ToolReport {
    let lines = found.lines;
    let summary =
        format!("{} in {}", counted(lines.len(), "match", "matches"), counted(found.files, "file", "files"));
    let mut notes = Vec::new();
    if found.more {
        notes.push(format!("only the first {} are shown; narrow the search", lines.len()));
    }
    if let Some((path, error)) = found.first_failure {
        let others = counted(found.failures, "file was", "files were");
        notes.push(format!("{others} not searched to the end, first {path}: {error}"));
    }
    notes.extend(walked.notes());
    Listing { lines, notes }.report("No matches found.", summary, budget)
}

#[cfg(test)]
mod tests;
