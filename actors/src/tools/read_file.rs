//! `read_file`: numbered lines of a text file. The file is read as a stream, so that its size does not
//! matter, and wholly, since what the session has seen is its hash (ruling 39).

mod page;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use encoding_rs::{CoderResult, UTF_8};
use seekclaw_storage::record::log::{Outcome, Seen};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use self::page::Page;
use super::arguments::{ArgumentError, integer, required_text};
use super::paths::{display_path, open_read, resolve_read};
use super::replace::require_regular;
use super::text::{hex, omitted_note};
use super::{ToolContext, ToolReport, ToolSpec, blocking};

/// Name of the tool.
pub(crate) const NAME: &str = "read_file";
/// Lines unless told otherwise (contract 5.3).
const DEFAULT_LIMIT: u64 = 2000;
/// Bytes read at a time; cancel is looked at in between.
const CHUNK: usize = 64 * 1024;
/// A NUL this near to the beginning makes a file binary, as it does for grep.
const BINARY_PROBE: usize = 8 * 1024;

/// What the model is told.
pub(crate) fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Read a text file. Each line is given as its number, a tab and its text; long lines are cut. \
                      Use offset and limit for parts of long files."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Absolute, or relative to the workspace root"},
                "offset": {"type": "integer", "minimum": 1, "description": "First line, from 1 (default 1)"},
                "limit": {"type": "integer", "minimum": 1, "description": "Number of lines (default 2000)"}
            },
            "required": ["path"]
        }),
        mutating: false,
    }
}

/// A read as it was asked for.
struct Request {
    path: String,
    offset: u64,
    limit: u64,
}

/// Runs a call.
pub(crate) async fn run(args: &Map<String, Value>, ctx: &ToolContext) -> ToolReport {
    let request = match parse(args) {
        Ok(request) => request,
        Err(error) => return error.report(NAME),
    };
    let reading = ctx.clone();
    let report = blocking::stoppable(&ctx.cancel, move |stop| read(&reading, &request, stop)).await;
    report.unwrap_or_else(cancelled)
}

fn parse(args: &Map<String, Value>) -> Result<Request, ArgumentError> {
    Ok(Request {
        path: required_text(args, "path")?.to_owned(),
        offset: integer(args, "offset", 1..=u64::MAX)?.unwrap_or(1),
        limit: integer(args, "limit", 1..=u64::MAX)?.unwrap_or(DEFAULT_LIMIT),
    })
}

fn cancelled() -> ToolReport {
    ToolReport::new(Outcome::Cancelled, "The call was cancelled while the file was read.")
}

fn read(ctx: &ToolContext, request: &Request, stop: &CancellationToken) -> ToolReport {
    let path = match resolve_read(&ctx.reach, &request.path) {
        Ok(path) => path,
        Err(refusal) => return refusal.into(),
    };
    let shown = display_path(&ctx.reach, &path);
    let mut page = Page::new(request.offset, request.limit, ctx.limits.output_chars);
    match open(&path).and_then(|file| fill(&mut page, file, stop)) {
        Ok(Some(hash)) => report(page, request.offset, &path, &shown, hash),
        Ok(None) => cancelled(),
        // A link to nothing is refused by the open, but is not found all the same.
        Err(_) if path.try_exists().is_ok_and(|exists| !exists) => {
            ToolReport::failed(format!("File not found: {}", path.display()))
        }
        Err(error) => ToolReport::failed(format!("Cannot read {shown}: {error}")),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let file = open_read(path)?;
    require_regular(&file)?;
    Ok(file)
}

/// Reads to the end and returns the hash of all bytes; `None` if it was cancelled.
fn fill(page: &mut Page, mut file: File, cancel: &CancellationToken) -> io::Result<Option<String>> {
    // Recognises the byte-order marks of UTF-8 and UTF-16; other bytes become replacement characters.
    let mut decoder = UTF_8.new_decoder();
    let mut hasher = Sha256::new();
    let mut bytes = vec![0; CHUNK];
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length(CHUNK).unwrap_or(CHUNK * 4));
    let mut first = true;
    loop {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let count = match file.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let mut chunk = bytes.get(..count).unwrap_or_default();
        hasher.update(chunk);
        loop {
            let (result, taken, _) = decoder.decode_to_string(chunk, &mut text, count == 0);
            if std::mem::take(&mut first) && text.bytes().take(BINARY_PROBE).any(|byte| byte == 0) {
                return Err(io::Error::other("it is a binary file"));
            }
            page.push(&text);
            text.clear();
            chunk = chunk.get(taken..).unwrap_or_default();
            if result == CoderResult::InputEmpty {
                break;
            }
        }
        if count == 0 {
            return Ok(Some(hex(&hasher.finalize())));
        }
    }
}

fn report(page: Page, offset: u64, path: &Path, shown: &str, hash: String) -> ToolReport {
    let page = page.finish();
    let text = match (page.total, page.shown) {
        (0, _) => "(empty file)".to_owned(),
        (total, 0) => format!("(no line {offset}: the file has {total} lines)"),
        _ if page.omitted > 0 => page.text + &omitted_note(NAME, page.omitted),
        _ => page.text,
    };
    let mut report = ToolReport::ok(text);
    report.summary = format!("Read {shown} ({} of {} lines)", page.shown, page.total);
    report.omitted = page.omitted;
    report.seen.push(Seen { path: path.to_string_lossy().into_owned(), hash });
    report
}

#[cfg(test)]
mod tests;
