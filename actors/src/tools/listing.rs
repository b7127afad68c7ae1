//! A result made of lines: as many as fit, then what was left out and why.

use super::ToolReport;

/// Lines of a result, in order, and remarks about them.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// What was found.
    pub(super) lines: Vec<String>,
    /// Why it may not be all.
    pub(super) notes: Vec<String>,
}

impl Listing {
    /// The result: `empty` if nothing was found, else whole lines of at most `budget` characters.
    pub(super) fn report(self, empty: &str, summary: String, budget: usize) -> ToolReport {
        let Self { mut lines, mut notes } = self;
        let found = !lines.is_empty();
        if !found {
            lines.push(empty.to_owned());
        }
        let fitting = fitting(&lines, budget);
        let omitted = lines.drain(fitting..).map(|line| line.len() as u64 + 1).sum();
        if omitted > 0 {
            notes.push(format!("{omitted} bytes of output omitted; ask for less at once"));
        }
        lines.extend(notes.into_iter().map(|note| format!("[{note}]")));
        let mut report = ToolReport::ok(lines.join("\n"));
        report.omitted = omitted;
        report.summary = if found { summary } else { String::new() };
        report
    }
}

/// How many of the lines have at most `budget` characters together, line breaks included.
fn fitting(lines: &[String], budget: usize) -> usize {
    let mut used = 0_usize;
    let fits = |line: &&String| {
        used = used.saturating_add(line.chars().count() + 1);
        used <= budget.saturating_add(1)
    };
    lines.iter().take_while(fits).count()
}

/// A name or path on one line: a line break in it would look like another result.
pub(super) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// `count` with its noun in the right number.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(lines: &[&str]) -> Listing {
        Listing { lines: lines.iter().map(|line| (*line).to_owned()).collect(), notes: Vec::new() }
    }

    #[test]
    fn whole_lines_are_kept_and_the_rest_is_counted() {
        let report = listing(&["äöü", "defg", "hi"]).report("none", "3 lines".to_owned(), 8);
        assert_eq!(report.text, "äöü\ndefg\n[3 bytes of output omitted; ask for less at once]");
        assert_eq!((report.omitted, report.summary.as_str()), (3, "3 lines"));
        let report = listing(&["äöü", "defg", "hi"]).report("none", String::new(), 11);
        assert_eq!((report.text.as_str(), report.omitted), ("äöü\ndefg\nhi", 0));
    }

    #[test]
    fn nothing_found_says_so() {
        let report = listing(&[]).report("No files matched.", "0 files".to_owned(), 100);
        assert_eq!((report.text.as_str(), report.summary.as_str()), ("No files matched.", ""));
    }
}
