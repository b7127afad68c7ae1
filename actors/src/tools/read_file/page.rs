//! A range of numbered lines, collected from a text that arrives in pieces.

use super::super::text::Bounded;

/// Longest line that is shown whole, in characters (contract 5.3).
const LINE_CHARS: usize = 2000;

/// Lines `first..=last` of what is pushed.
pub(super) struct Page {
    first: u64,
    last: u64,
    out: Bounded,
    shown: u64,
    /// Lines that have ended.
    ended: u64,
    /// The line that has not.
    line: String,
    /// Its characters; more than `line` has once that is full.
    chars: usize,
    /// Its last character, which is no part of it if it is the first half of the line's end.
    last_char: Option<char>,
}

/// A page when its text has ended.
pub(super) struct Finished {
    pub(super) text: String,
    pub(super) omitted: u64,
    pub(super) shown: u64,
    pub(super) total: u64,
}

impl Page {
    pub(super) fn new(offset: u64, limit: u64, max_chars: usize) -> Self {
        Self {
            first: offset,
            last: offset.saturating_add(limit - limit.min(1)),
            out: Bounded::new(max_chars),
            shown: 0,
            ended: 0,
            line: String::new(),
            chars: 0,
            last_char: None,
        }
    }

    pub(super) fn push(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            let body = part.strip_suffix('\n').unwrap_or(part);
            self.extend(body);
            if body.len() < part.len() {
                self.end_line();
            }
        }
    }

    pub(super) fn finish(mut self) -> Finished {
        if self.last_char.is_some() {
            self.end_line();
        }
        let (text, omitted) = self.out.finish();
        Finished { text, omitted, shown: self.shown, total: self.ended }
    }

    fn wanted(&self) -> bool {
        (self.first..=self.last).contains(&(self.ended + 1))
    }

    fn extend(&mut self, body: &str) {
        self.last_char = body.chars().next_back().or(self.last_char);
        if !self.wanted() {
            return;
        }
        // One character more is kept: it may turn out to be the first half of the line's end.
        let room = (LINE_CHARS + 1).saturating_sub(self.chars);
        self.line.extend(body.chars().take(room));
        self.chars += body.chars().count();
    }

    fn end_line(&mut self) {
        if self.wanted() {
            self.show();
        }
        self.ended += 1;
        self.line.clear();
        self.chars = 0;
        self.last_char = None;
    }

    fn show(&mut self) {
        let chars = self.chars - usize::from(self.last_char == Some('\r'));
        let separator = if self.shown == 0 { "" } else { "\n" };
        self.out.push(&format!("{separator}{}\t", self.ended + 1));
        let end = self.line.char_indices().nth(chars.min(LINE_CHARS)).map_or(self.line.len(), |(end, _)| end);
        self.out.push(self.line.get(..end).unwrap_or_default());
        if chars > LINE_CHARS {
            self.out.push("…");
        }
        self.shown += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(offset: u64, limit: u64, pieces: &[&str]) -> String {
        let mut page = Page::new(offset, limit, 10_000);
        pieces.iter().for_each(|piece| page.push(piece));
        page.finish().text
    }

    #[test]
    fn lines_are_numbered_however_the_text_arrives() {
        assert_eq!(page(1, 9, &["a\nb\n"]), "1\ta\n2\tb");
        assert_eq!(page(1, 9, &["a", "\n", "b", "c"]), "1\ta\n2\tbc");
        assert_eq!(page(1, 9, &["a\r", "\nb\r\n", "\n"]), "1\ta\n2\tb\n3\t");
        assert_eq!(page(2, 2, &["a\nb\nc\nd\n"]), "2\tb\n3\tc");
        assert_eq!(page(3, 1, &["a\nb\n"]), "");
        assert_eq!(page(1, u64::MAX, &["a"]), "1\ta");
    }

    #[test]
    fn long_lines_are_cut_after_two_thousand_characters() {
        let exact = "é".repeat(2000);
        assert_eq!(page(1, 9, &[&exact, "\r\n"]), format!("1\t{exact}"));
        assert_eq!(page(1, 9, &[&exact]), format!("1\t{exact}"));
        assert_eq!(page(1, 9, &[&exact, "é", "x\r\nnext"]), format!("1\t{exact}…\n2\tnext"));
        assert_eq!(page(1, 9, &[&exact, &exact, "\n"]), format!("1\t{exact}…"));
    }

    #[test]
    fn what_exceeds_the_budget_is_counted_in_bytes() {
        let mut page = Page::new(1, 9, 5);
        page.push("é\né\n");
        let page = page.finish();
        assert_eq!((page.text.as_str(), page.omitted, page.shown, page.total), ("1\té\n2", 3, 2, 2));
    }
}
