//! What a command prints, kept within bounds while it runs: the beginning, the end, and how many bytes
//! are missing between them.

use std::collections::VecDeque;

/// Bytes kept of the beginning of a stream; with the end it covers the largest output budget.
const HEAD_BYTES: usize = 128 * 1024;
/// Bytes kept of the end of a stream.
const TAIL_BYTES: usize = 128 * 1024;

/// Beginning and end of a stream.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// A stream as it is shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The text, with a line where something is missing.
    pub(super) text: String,
    /// Bytes of the stream that are not in the text.
    pub(super) omitted: u64,
}

impl Capture {
    /// Takes the next bytes of the stream.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let (head, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(head);
        let (_, rest) = rest.split_at(rest.len().saturating_sub(TAIL_BYTES));
        let excess = (self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Bytes that came so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Ends the stream.
    pub(super) fn finish(self) -> Output {
        let Self { mut head, tail, total } = self;
        let mut tail = Vec::from(tail);
        if (head.len() + tail.len()) as u64 == total {
            head.append(&mut tail);
            return Output { head, tail, total };
        }
        head.truncate(head.len() - cut_character(&head));
        tail.drain(..stray_bytes(&tail));
        Output { head, tail, total }
    }
}

/// A stream that has ended. Without a gap all of it is in the head.
#[derive(Debug)]
pub(super) struct Output {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Output {
    /// Characters that are there to be shown.
    pub(super) fn chars(&self) -> usize {
        count(&self.head) + count(&self.tail)
    }

    /// Shows at most `budget` characters, half from the beginning and half from the end. The line about
    /// the gap, which calls the stream `name`, is not counted.
    pub(super) fn show(&self, budget: usize, name: &str) -> Shown {
        let (head, tail) = (self.head.as_slice(), self.tail.as_slice());
        let whole = tail.is_empty() && head.len() as u64 == self.total;
        if whole && count(head) <= budget {
            return Shown { text: String::from_utf8_lossy(head).into_owned(), omitted: 0 };
        }
        // Without a gap in memory, the end to show is the end of the head.
        let end = if tail.is_empty() { head } else { tail };
        let begin = head.get(..prefix(head, budget / 2)).unwrap_or(head);
        let skip = prefix(end, count(end).saturating_sub(budget - budget / 2));
        let end = end.get(skip..).unwrap_or_default();
        let omitted = self.total - (begin.len() + end.len()) as u64;
        let text = format!(
            "{}\n[… {omitted} bytes of {name} omitted …]\n{}",
            String::from_utf8_lossy(begin),
            String::from_utf8_lossy(end)
        );
        Shown { text, omitted }
    }
}

/// Splits `budget` between two streams: a short one is shown whole, two long ones get half each.
pub(super) fn share(first: usize, second: usize, budget: usize) -> (usize, usize) {
    let half = budget / 2;
    if second <= half {
        (budget - second, second)
    } else if first <= half {
        (first, budget - first)
    } else {
        (budget - half, half)
    }
}

/// Characters that `bytes` are shown as.
fn count(bytes: &[u8]) -> usize {
    bytes.utf8_chunks().map(|c| c.valid().chars().count() + usize::from(!c.invalid().is_empty())).sum()
}

/// Length of the longest beginning of `bytes` that is shown as at most `chars` characters.
fn prefix(bytes: &[u8], chars: usize) -> usize {
    let (mut at, mut left) = (0, chars);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if left == 0 {
                return at;
            }
            (at, left) = (at + character.len_utf8(), left - 1);
        }
        if left == 0 {
            return at;
        }
        if !chunk.invalid().is_empty() {
            (at, left) = (at + chunk.invalid().len(), left - 1);
        }
    }
    at
}

/// Bytes at the end that begin a character which goes on in the gap.
fn cut_character(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map(|chunk| chunk.invalid()).unwrap_or_default();
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => last.len(),
        Ok(_) | Err(_) => 0,
    }
}

/// Bytes at the start that end a character which began in the gap.
fn stray_bytes(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(bytes: &[u8], chunk: usize) -> Output {
        let mut capture = Capture::default();
        bytes.chunks(chunk).for_each(|c| capture.push(c));
        assert!(capture.head.len() <= HEAD_BYTES && capture.tail.len() <= TAIL_BYTES);
        capture.finish()
    }

    #[test]
    fn short_output_is_whole() {
        let shown = captured("grüße\n".as_bytes(), 1).show(100, "stdout");
        assert_eq!(shown, Shown { text: "grüße\n".to_owned(), omitted: 0 });
    }

    #[test]
    fn output_between_head_and_both_is_whole() {
        let bytes = vec![b'x'; HEAD_BYTES + 77];
        let shown = captured(&bytes, 1000).show(usize::MAX, "stdout");
        assert_eq!((shown.text.len(), shown.omitted), (bytes.len(), 0));
    }

    #[test]
    fn shown_and_omitted_bytes_add_up_at_every_budget() {
        let text = "aé€😀".repeat(40);
        for budget in 0..200 {
            let shown = captured(text.as_bytes(), 7).show(budget, "stdout");
            let marker = format!("\n[… {} bytes of stdout omitted …]\n", shown.omitted);
            let kept = shown.text.replace(&marker, "");
            assert_eq!(kept.len() as u64 + shown.omitted, text.len() as u64, "budget {budget}");
            assert!(kept.chars().count() <= budget, "budget {budget}");
            assert!(!kept.contains('\u{FFFD}'), "budget {budget}: cut inside a character");
        }
    }

    #[test]
    fn a_gap_in_memory_cuts_no_character() {
        let text = "€".repeat((HEAD_BYTES + TAIL_BYTES) / 3 + 1000);
        for chunk in [1, 4096, text.len()] {
            let output = captured(text.as_bytes(), chunk);
            let shown = output.show(usize::MAX, "stderr");
            assert!(!shown.text.contains('\u{FFFD}'));
            let marker = format!("\n[… {} bytes of stderr omitted …]\n", shown.omitted);
            let kept = shown.text.replace(&marker, "");
            assert_eq!(kept.len() as u64 + shown.omitted, text.len() as u64);
            assert!(shown.omitted > 0 && kept.len() > HEAD_BYTES + TAIL_BYTES - 8);
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_and_counted_as_they_were() {
        let shown = captured(b"a\xff\xfeb", 1).show(10, "stdout");
        assert_eq!(shown.text, "a\u{FFFD}\u{FFFD}b");
        let shown = captured(&[0xFF; 10], 3).show(4, "stdout");
        assert_eq!(shown.omitted, 6);
    }

    #[test]
    fn budget_goes_where_the_output_is() {
        assert_eq!(share(10, 20, 100), (80, 20));
        assert_eq!(share(500, 20, 100), (80, 20));
        assert_eq!(share(10, 500, 100), (10, 90));
        assert_eq!(share(500, 500, 101), (51, 50));
    }
}
