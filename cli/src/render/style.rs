//! Colours, where a terminal shows them.

use std::io::IsTerminal as _;

/// Ways to set text apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Less important.
    Dim,
    /// A heading.
    Bold,
    /// Good, or added.
    Green,
    /// Bad, or removed.
    Red,
    /// Doubtful.
    Yellow,
    /// A place.
    Cyan,
}

/// Whether one stream gets colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// No colours.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colour: false };
    /// Colours.
    #[cfg(test)]
    pub(crate) const COLOUR: Self = Self { colour: true };

    /// Colours if the stream is a terminal and the environment does not forbid them.
    pub(crate) fn of(is_terminal: bool) -> Self {
        let text = |name: &str| std::env::var_os(name).unwrap_or_default();
        Self { colour: allowed(is_terminal, !text("NO_COLOR").is_empty(), text("TERM") == "dumb") }
    }

    /// The style of standard output.
    pub(crate) fn stdout() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// The style of standard error.
    pub(crate) fn stderr() -> Self {
        Self::of(std::io::stderr().is_terminal())
    }

    /// Whether text is coloured, and lines may be redrawn.
    pub(crate) fn is_rich(self) -> bool {
        self.colour
    }

    /// `text` in `tone`.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        format!("{}{text}\u{1b}[0m", Self::start(tone))
    }

    fn start(tone: Tone) -> &'static str {
        match tone {
            Tone::Dim => "\u{1b}[2m",
            Tone::Bold => "\u{1b}[1m",
            Tone::Green => "\u{1b}[32m",
            Tone::Red => "\u{1b}[31m",
            Tone::Yellow => "\u{1b}[33m",
            Tone::Cyan => "\u{1b}[36m",
        }
    }
}

fn allowed(is_terminal: bool, no_colour: bool, dumb: bool) -> bool {
    is_terminal && !no_colour && !dumb
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_unless_a_capable_terminal_shows_it() {
        assert!(allowed(true, false, false));
        assert!(!allowed(false, false, false));
        assert!(!allowed(true, true, false));
        assert!(!allowed(true, false, true));
    }

    #[test]
    fn plain_text_has_no_sequences() {
        assert_eq!(Style::PLAIN.paint(Tone::Red, "x"), "x");
        assert_eq!(Style::COLOUR.paint(Tone::Red, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Style::COLOUR.paint(Tone::Red, ""), "");
    }
}
