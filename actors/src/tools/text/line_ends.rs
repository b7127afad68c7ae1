//! Line ends: models speak `\n`; files keep the ends they have, line by line.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Aligning old and new lines of one edit may take this long; after it the alignment is coarser, never wrong.
const ALIGN_TIME: Duration = Duration::from_millis(200);

/// `text` with `\n` at every line end. A `\r` elsewhere is a character like others.
pub(in crate::tools) fn normalised(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The ends of the lines of a text; true is `\r\n`.
#[derive(Debug)]
pub(in crate::tools) struct Ends {
    crlf: Vec<bool>,
    /// There are only `\n`.
    plain: bool,
    mostly_crlf: bool,
    /// All alignments together end here.
    deadline: Instant,
}

impl Ends {
    /// The ends of `text`, in order.
    pub(in crate::tools) fn of(text: &str) -> Self {
        let ended = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let crlf: Vec<bool> = ended.map(|line| line.ends_with("\r\n")).collect();
        let count = crlf.iter().filter(|crlf| **crlf).count();
        let (plain, mostly_crlf) = (count == 0, count * 2 > crlf.len());
        Self { crlf, plain, mostly_crlf, deadline: Instant::now() + ALIGN_TIME }
    }

    /// `text`, which begins after `before` lines, with the ends that it has in the file.
    pub(in crate::tools) fn restored<'a>(&self, before: usize, text: &'a str) -> Cow<'a, str> {
        if self.plain {
            return Cow::Borrowed(text);
        }
        let mut written = String::with_capacity(text.len());
        for (nth, line) in text.split_inclusive('\n').enumerate() {
            push_line(&mut written, line, self.crlf.get(before + nth).copied().unwrap_or(false));
        }
        Cow::Owned(written)
    }

    /// The ends of the lines `from..from + count`.
    fn part(&self, from: usize, count: usize) -> &[bool] {
        self.crlf.get(from..from + count).unwrap_or(&[])
    }

    /// What a line added after the first `index` lines gets: the end of the one before it.
    fn near(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|index| self.crlf.get(index));
        before.copied().unwrap_or(self.mostly_crlf)
    }
}

/// Writes `new`, which takes the place of `old` after `before` lines of a file with the ends `ends`, with
/// the ends that its lines had; added lines get that of the line before. All texts are normalised.
pub(in crate::tools) fn rewritten(ends: &Ends, before: usize, old: &str, new: &str) -> String {
    if ends.plain {
        return new.to_owned();
    }
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let kept = ends.part(before, old_lines.iter().filter(|line| line.ends_with('\n')).count());
    let mut written = String::with_capacity(new.len() + new_lines.len());
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old_lines, &new_lines, Some(ends.deadline)) {
        let from = op.old_range();
        for (nth, line) in new_lines.get(op.new_range()).unwrap_or(&[]).iter().enumerate() {
            let same = if matches!(op, DiffOp::Insert { .. }) || nth >= from.len() {
                None
            } else {
                kept.get(from.start + nth)
            };
            let crlf = same.copied().unwrap_or_else(|| ends.near(before + from.end));
            push_line(&mut written, line, crlf);
        }
    }
    written
}

fn push_line(text: &mut String, line: &str, crlf: bool) {
    match line.strip_suffix('\n') {
        Some(body) if crlf => {
            text.push_str(body);
            text.push_str("\r\n");
        }
        Some(_) | None => text.push_str(line),
    }
}
