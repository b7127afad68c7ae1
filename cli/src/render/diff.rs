//! Unified diffs, coloured and bounded.

use crate::render::escape::{cut, neutral};
use crate::render::style::{Style, Tone};

/// Lines of one diff that are shown; the session keeps the whole.
const MAX_LINES: usize = 60;
/// Columns of one line that are shown.
const MAX_COLUMNS: usize = 240;

/// `diff` as text for people, ending in a line break.
pub(crate) fn render(diff: &str, style: Style) -> String {
    let mut shown = String::new();
    let mut in_hunk = false;
    for line in diff.lines().take(MAX_LINES) {
        in_hunk |= line.starts_with("@@");
        let text = cut(&neutral(line).replace('\t', "    "), MAX_COLUMNS);
        match tone(line, in_hunk) {
            Some(tone) => shown.push_str(&style.paint(tone, &text)),
            None => shown.push_str(&text),
        }
        shown.push('\n');
    }
    let hidden = diff.lines().skip(MAX_LINES).count();
    if hidden > 0 {
        let note = format!("… {hidden} more {}", if hidden == 1 { "line" } else { "lines" });
        shown.push_str(&style.paint(Tone::Dim, &note));
        shown.push('\n');
    }
    shown
}

fn tone(line: &str, in_hunk: bool) -> Option<Tone> {
    match line.as_bytes().first()? {
        b'@' => Some(Tone::Cyan),
        b'+' if in_hunk => Some(Tone::Green),
        b'-' if in_hunk => Some(Tone::Red),
        _ if !in_hunk => Some(Tone::Bold),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_removed_lines_are_coloured() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n";
        let shown = render(diff, Style::COLOUR);
        assert!(shown.contains("\u{1b}[1m--- a/x\u{1b}[0m\n"));
        assert!(shown.contains("\u{1b}[36m@@ -1,2 +1,2 @@\u{1b}[0m\n same\n"));
        assert!(shown.contains("\u{1b}[31m-old\u{1b}[0m\n\u{1b}[32m+new\u{1b}[0m\n"));
        assert_eq!(render(diff, Style::PLAIN), diff);
    }

    #[test]
    fn a_removed_line_of_dashes_is_no_header() {
        let shown = render("--- a/x\n+++ b/x\n@@ -1 +0,0 @@\n--- note\n", Style::COLOUR);
        assert!(shown.ends_with("\u{1b}[31m--- note\u{1b}[0m\n"));
    }

    #[test]
    fn long_diffs_are_bounded_and_say_so() {
        let diff = format!("@@ -1 +1 @@\n{}", "+line\n".repeat(MAX_LINES + 4));
        let shown = render(&diff, Style::PLAIN);
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(shown.ends_with("… 5 more lines\n"));
        let wide = render(&format!("@@\n+{}", "x".repeat(1000)), Style::PLAIN);
        assert!(wide.lines().all(|line| line.chars().count() <= MAX_COLUMNS));
    }

    #[test]
    fn escapes_in_a_file_stay_text() {
        assert!(!render("@@\n+\u{1b}[2J\n", Style::PLAIN).contains('\u{1b}'));
    }
}
