//! Searches one file after the other and keeps the lines that match, in bounded memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use tokio_util::sync::CancellationToken;

use crate::tools::paths::Dir;

/// Beginning of a file where a NUL makes it binary (contract 5.3).
const BINARY_BYTES: usize = 8 * 1024;
/// Characters of a line that are shown (contract 5.3).
const LINE_CHARS: usize = 400;
/// Memory of the searcher; a longer line ends the search of its file.
const HEAP_BYTES: usize = 8 * 1024 * 1024;

/// A running search.
pub(super) struct FileSearch<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    head: Vec<u8>,
    max: usize,
    stop: &'a CancellationToken,
    found: Found,
}

/// What a search has found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// `<path>:<line>: <text>`.
    pub(super) lines: Vec<String>,
    /// Files with at least one of them.
    pub(super) files: usize,
    /// Whether there are more matches than were asked for.
    pub(super) more: bool,
    /// Files that could not be searched to their end.
    pub(super) failures: usize,
    /// The first of them.
    pub(super) first_failure: Option<(String, io::Error)>,
}

impl<'a> FileSearch<'a> {
    /// Starts a search for at most `max` lines.
    pub(super) fn new(matcher: RegexMatcher, max: usize, stop: &'a CancellationToken) -> Self {
        let mut builder = SearcherBuilder::new();
        builder.line_number(true).binary_detection(BinaryDetection::none()).heap_limit(Some(HEAP_BYTES));
        let searcher = builder.build();
        Self { matcher, searcher, head: vec![0; BINARY_BYTES], max, stop, found: Found::default() }
    }

    /// Whether more files would not add anything.
    pub(super) fn is_full(&self) -> bool {
        self.found.more
    }

    /// Ends it.
    pub(super) fn finish(self) -> Found {
        self.found
    }

    /// Searches an opened file; `name` is asked for only if there is something to say about it.
    pub(super) fn search(&mut self, name: impl Fn() -> String, opened: io::Result<File>) {
        let before = self.found.lines.len();
        let searched = opened.and_then(|file| self.search_file(file, &name));
        self.found.files += usize::from(self.found.lines.len() > before);
        if let Err(error) = searched
            && !self.stop.is_cancelled()
        {
            self.found.failures += 1;
            self.found.first_failure.get_or_insert_with(|| (name(), error));
        }
    }

    fn search_file(&mut self, mut file: File, name: &impl Fn() -> String) -> io::Result<()> {
        let Self { matcher, searcher, head, max, stop, found } = self;
        let filled = fill(&mut file, head)?;
        let start = head.get(..filled).unwrap_or_default();
        if start.contains(&0) {
            return Ok(());
        }
        let sink = Lines { found, max: *max, name, shown: None };
        if filled < BINARY_BYTES {
            return searcher.search_slice(&*matcher, start, sink);
        }
        searcher.search_reader(&*matcher, start.chain(Watched { file, stop }), sink)
    }
}

/// Fills `buffer` from the beginning of the file; less only at its end.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A file that ends with an error once the search is cancelled, also where nothing matches.
struct Watched<'a> {
    file: File,
    stop: &'a CancellationToken,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

struct Lines<'a, N> {
    found: &'a mut Found,
    max: usize,
    name: &'a N,
    shown: Option<String>,
}

impl<N: Fn() -> String> Sink for Lines<'_, N> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        if self.found.lines.len() == self.max {
            self.found.more = true;
            return Ok(false);
        }
        let name = self.shown.get_or_insert_with(self.name);
        let (number, text) = (line.line_number().unwrap_or_default(), shorten(line.bytes()));
        self.found.lines.push(format!("{name}:{number}: {text}"));
        Ok(true)
    }
}

/// The text of a line without its end. Looks only at the bytes that can be shown.
fn shorten(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A character has at most four bytes; one more shows that there is more.
    let start = line.get(..(LINE_CHARS + 1) * 4).unwrap_or(line);
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

/// Opens files beneath a root. A walk meets the files of a directory one after the other, so the last
/// directory is held open; links are refused.
#[derive(Debug)]
pub(super) struct Parents {
    root: io::Result<Dir>,
    last: Option<(PathBuf, Dir)>,
}

impl Parents {
    /// Opens the root.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: Dir::open(root), last: None }
    }

    /// Opens the file at a path relative to the root.
    pub(super) fn open(&mut self, relative: &Path) -> io::Result<File> {
        let parent = relative.parent().unwrap_or(Path::new(""));
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let held = self.last.take().filter(|(path, _)| path == parent);
        let (path, dir) = match held {
            Some(held) => held,
            None => (parent.to_path_buf(), self.beneath(parent)?),
        };
        let file = dir.read(name);
        self.last = Some((path, dir));
        file
    }

    fn beneath(&self, parent: &Path) -> io::Result<Dir> {
        match &self.root {
            Ok(root) => root.beneath(parent),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(shorten(b"text\r\n"), "text");
        let exact = "€".repeat(LINE_CHARS);
        assert_eq!(shorten(exact.as_bytes()), exact);
        assert_eq!(shorten(format!("{exact}😀 and more").as_bytes()), format!("{exact}…"));
    }

    #[test]
    fn a_cancelled_search_ends_within_a_file_without_matches() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[b'x'; 100]).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let stop = CancellationToken::new();
        let mut watched = Watched { file, stop: &stop };
        assert_eq!(watched.read(&mut [0; 10]).unwrap(), 10);
        stop.cancel();
        assert!(watched.read(&mut [0; 10]).is_err());
    }
}
