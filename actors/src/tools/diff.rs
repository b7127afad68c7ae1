//! Unified diffs of text files, bounded in time and size.

use std::fmt::Write;
use std::time::Duration;

use similar::TextDiff;

use super::text::{Bounded, normalised};

/// Computing may take this long; what is left then is shown as one coarse replacement.
const DIFF_TIME: Duration = Duration::from_millis(300);
/// Longest diff that is kept; it goes into the log and to every watcher.
const DIFF_CHARS: usize = 128 * 1024;
/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// The difference of two texts of the file that is shown as `path`; empty if there is none. Line ends are
/// compared only if nothing else differs.
pub(super) fn unified(path: &str, before: &str, after: &str) -> String {
    let (old, new) = (normalised(before), normalised(after));
    let ends_only = old == new;
    let (old, new) = if ends_only { (before, after) } else { (&*old, &*new) };
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let mut shown = Bounded::new(DIFF_CHARS);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        if write!(shown, "{hunk}").is_err() {
            tracing::debug!(path, "a line of a diff could not be written");
        }
    }
    match shown.finish() {
        (hunks, 0) if hunks.is_empty() => hunks,
        (hunks, 0) => format!("--- a/{path}\n+++ b/{path}\n{hunks}"),
        (hunks, omitted) => cut(path, &hunks, omitted),
    }
}

/// Ends after a whole line, so that what is there can be read as a diff.
fn cut(path: &str, hunks: &str, omitted: u64) -> String {
    let whole = hunks.rfind('\n').map_or(0, |at| at + 1);
    let (kept, partial) = hunks.split_at(whole);
    let omitted = omitted + partial.len() as u64;
    format!("--- a/{path}\n+++ b/{path}\n{kept}\\ diff cut: {omitted} bytes omitted\n")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_change_is_shown_with_three_lines_around_it() {
        let before: String = (1..=9).fold(String::new(), |s, n| s + &n.to_string() + "\n");
        let after = before.replace('5', "five");
        let expected = "--- a/d/f\n+++ b/d/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified("d/f", &before, &after), expected);
        assert_eq!(unified("d/f", &before, &before), "");
    }

    #[test]
    fn a_missing_last_line_end_and_ends_alone_are_shown() {
        assert_eq!(
            unified("f", "a\n", "a"),
            "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"
        );
        assert_eq!(unified("f", "a\r\nb\r\n", "a\r\nc\r\n"), unified("f", "a\nb\n", "a\nc\n"));
        assert!(unified("f", "a\r\n", "a\n").contains("-a\r\n+a\n"));
    }

    #[test]
    fn a_hard_and_huge_difference_ends_in_time_and_within_its_size() {
        let lines = |seed: u64| {
            let mut state = seed;
            (0..200_000).fold(String::new(), |mut text, _| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                writeln!(text, "line {}", state >> 54).unwrap();
                text
            })
        };
        let (before, after) = (lines(1), lines(2));
        let start = Instant::now();
        let diff = unified("f", &before, &after);
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
        assert!(diff.len() < DIFF_CHARS + 1000);
        assert!(diff.ends_with(" bytes omitted\n"));
    }
}
