//! Model and tool output must not steer the terminal: control characters become visible symbols.

/// `text` with nothing left that a terminal would obey. Line breaks and tabs stay.
pub(crate) fn neutral(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    push_neutral(&mut safe, text);
    safe
}

/// Appends `text` neutralised. Works character by character, so text may be cut anywhere between calls.
pub(crate) fn push_neutral(safe: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(c),
            // Half of a line end, or a way to overwrite what was shown: neither is wanted.
            '\r' => {}
            '\0'..='\u{1f}' => {
                safe.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
            '\u{7f}' => safe.push('\u{2421}'),
            '\u{80}'..='\u{9f}' => safe.push(char::REPLACEMENT_CHARACTER),
            _ if reorders(c) => safe.push(char::REPLACEMENT_CHARACTER),
            _ => safe.push(c),
        }
    }
}

/// `text` on one line, neutralised, at most `max` columns wide with an ellipsis where it was cut.
pub(crate) fn one_line(text: &str, max: usize) -> String {
    let joined = neutral(text).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&joined, max)
}

/// One line of `text` as `one_line`, but with its spaces; tabs become four of them.
pub(crate) fn keep_indent(line: &str, max: usize) -> String {
    cut(neutral(line).replace('\n', " ").replace('\t', "    ").trim_end(), max)
}

/// At most `max` columns of `text`, the last one an ellipsis if something was cut.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if width(text) <= max {
        return text.to_owned();
    }
    let mut room = max.saturating_sub(1);
    let mut kept = String::new();
    for c in text.chars() {
        let Some(left) = room.checked_sub(char_width(c)) else { break };
        room = left;
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Columns that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

fn char_width(c: char) -> usize {
    match u32::from(c) {
        // Combining marks, joiners, variation selectors.
        0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0x20d0..=0x20ff => 0,
        // East Asian wide and full-width ranges, emoji.
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Marks that show text in another order than it is stored.
fn reorders(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_visible_text() {
        assert_eq!(neutral("a\u{1b}[31mb\u{7}"), "a␛[31mb␇");
        assert_eq!(neutral("\u{9b}31m"), "\u{fffd}31m");
        assert_eq!(neutral("x\u{7f}\0"), "x␡␀");
        assert_eq!(neutral("keep\n\tthis é 汉"), "keep\n\tthis é 汉");
    }

    #[test]
    fn overwriting_and_reordering_are_defused() {
        assert_eq!(neutral("safe\rrm -rf"), "saferm -rf");
        assert_eq!(neutral("a\r\nb"), "a\nb");
        assert_eq!(neutral("a\u{202e}b"), "a\u{fffd}b");
    }

    #[test]
    fn a_sequence_cut_between_pieces_is_neutralised_too() {
        let mut safe = String::new();
        for piece in ["a\u{1b}", "[2J", "\u{1b}", "]0;title\u{7}"] {
            push_neutral(&mut safe, piece);
        }
        assert_eq!(safe, "a␛[2J␛]0;title␇");
    }

    #[test]
    fn indentation_is_kept_where_it_is_wanted() {
        assert_eq!(keep_indent("  if a {\tb  ", 20), "  if a {    b");
        assert_eq!(keep_indent("\tx\u{1b}[2J", 20), "    x␛[2J");
        assert_eq!(keep_indent("    abcdef", 8), "    abc…");
    }

    #[test]
    fn long_text_is_cut_by_columns() {
        assert_eq!(one_line("a\n  b\tc", 10), "a b c");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("汉字汉字", 5), "汉字…");
        assert_eq!(width("汉a\u{301}"), 3);
        assert_eq!(cut("abc", 3), "abc");
    }
}
