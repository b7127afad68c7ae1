//! Where a turn is shown: the answer on one stream, progress on the other, both perhaps on the same terminal.
//! It keeps lines of the two apart, and the spinner out of both.

use std::io::{self, Write};

use crate::render::escape::{cut, push_neutral};
use crate::render::style::{Style, Tone};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Most columns of the spinner's line. It must never wrap, or it could not be erased.
const SPINNER_COLUMNS: usize = 70;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Answer,
    Thought,
}

/// Two streams that may share a terminal.
#[derive(Debug)]
pub(super) struct Screen<O, E> {
    out: O,
    err: E,
    style: Style,
    open: Open,
    spinner_shown: bool,
    frame: usize,
    /// Columns of the terminal, which may change while a turn runs.
    columns: fn() -> Option<usize>,
}

impl<O: Write, E: Write> Screen<O, E> {
    /// `style` is that of the progress stream; only a rich one gets a spinner.
    pub(super) fn new(out: O, err: E, style: Style) -> Self {
        Self { out, err, style, open: Open::Nothing, spinner_shown: false, frame: 0, columns: || None }
    }

    /// Keeps the spinner within the width that `columns` measures at each frame.
    pub(super) fn within(self, columns: fn() -> Option<usize>) -> Self {
        Self { columns, ..self }
    }

    /// The style of progress.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Shows a piece of the answer on a terminal.
    pub(super) fn answer(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.hide_spinner();
        if self.open == Open::Thought {
            self.close()?;
        }
        let mut safe = String::new();
        push_neutral(&mut safe, text);
        self.out.write_all(safe.as_bytes())?;
        self.out.flush()?;
        if !safe.is_empty() {
            self.open = if safe.ends_with('\n') { Open::Nothing } else { Open::Answer };
        }
        Ok(())
    }

    /// Writes the whole answer as it is, for whatever program reads it.
    pub(super) fn answer_raw(&mut self, text: &str) -> io::Result<()> {
        self.close()?;
        self.out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }

    /// Shows a piece of reasoning, dimmed.
    pub(super) fn thought(&mut self, text: &str) -> io::Result<()> {
        if self.open != Open::Thought {
            self.close()?;
        }
        let mut safe = String::new();
        push_neutral(&mut safe, text);
        if safe.is_empty() {
            return Ok(());
        }
        let painted = self.style.paint(Tone::Dim, &safe);
        self.progress(&painted);
        self.open = if safe.ends_with('\n') { Open::Nothing } else { Open::Thought };
        Ok(())
    }

    /// Shows whole lines of progress; `text` is safe already.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.close()?;
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.progress(&format!("{text}{end}"));
        Ok(())
    }

    /// Ends a line that has begun, on the stream where it began.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.hide_spinner();
        match self.open {
            Open::Nothing => {}
            Open::Answer => {
                self.out.write_all(b"\n")?;
                self.out.flush()?;
            }
            Open::Thought => self.progress("\n"),
        }
        self.open = Open::Nothing;
        Ok(())
    }

    /// Draws the next frame of the spinner, unless a line has begun.
    pub(super) fn spin(&mut self, label: &str) {
        if !self.style.is_rich() || self.open != Open::Nothing {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let frame = FRAMES.get(self.frame).copied().unwrap_or_default();
        // The last column stays free: some terminals wrap as soon as it is written.
        let room = (self.columns)().map_or(SPINNER_COLUMNS, |width| width.saturating_sub(1));
        let text = cut(&format!("{frame} {label}"), room.min(SPINNER_COLUMNS));
        let painted = self.style.paint(Tone::Dim, &text);
        self.spinner_shown = true;
        self.progress_raw(&format!("\r\u{1b}[2K{painted}"));
    }

    fn hide_spinner(&mut self) {
        if std::mem::take(&mut self.spinner_shown) {
            self.progress_raw("\r\u{1b}[2K");
        }
    }

    fn progress(&mut self, text: &str) {
        self.hide_spinner();
        self.progress_raw(text);
    }

    /// Progress that nobody can read is no reason to end a turn.
    fn progress_raw(&mut self, text: &str) {
        if self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush()).is_err() {
            tracing::debug!("progress cannot be shown");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// One terminal behind both streams.
    #[derive(Clone, Default)]
    struct Terminal(Rc<RefCell<Vec<u8>>>);

    impl Write for Terminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shown(style: Style, act: impl FnOnce(&mut Screen<Terminal, Terminal>)) -> String {
        let terminal = Terminal::default();
        act(&mut Screen::new(terminal.clone(), terminal.clone(), style));
        let bytes = terminal.0.borrow().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn thoughts_answers_and_lines_never_share_a_line() {
        let text = shown(Style::PLAIN, |screen| {
            screen.thought("hm").unwrap();
            screen.thought("m").unwrap();
            screen.answer("Hello").unwrap();
            screen.answer(" there").unwrap();
            screen.line("✓ tool").unwrap();
            screen.answer("more\n").unwrap();
            screen.line("end").unwrap();
        });
        assert_eq!(text, "hmm\nHello there\n✓ tool\nmore\nend\n");
    }

    #[test]
    fn the_spinner_waits_for_the_end_of_a_line_and_is_erased_before_the_next() {
        let text = shown(Style::COLOUR, |screen| {
            screen.spin("Thinking");
            screen.answer("a").unwrap();
            screen.spin("Thinking");
            screen.close().unwrap();
        });
        assert_eq!(text, "\r\u{1b}[2K\u{1b}[2m⠙ Thinking\u{1b}[0m\r\u{1b}[2Ka\n");
        assert_eq!(shown(Style::PLAIN, |screen| screen.spin("Thinking")), "");
    }

    #[test]
    fn the_spinner_fits_into_a_narrow_terminal() {
        let spun = |columns: fn() -> Option<usize>| {
            let terminal = Terminal::default();
            let screen = Screen::new(terminal.clone(), terminal.clone(), Style::COLOUR);
            screen.within(columns).spin(&"x".repeat(100));
            let bytes = terminal.0.borrow().clone();
            String::from_utf8(bytes).unwrap().matches(['x', '…', ' ', '⠙']).count()
        };
        assert_eq!(spun(|| Some(20)), 19);
        assert_eq!(spun(|| Some(200)), 70);
        assert_eq!(spun(|| None), 70);
    }

    #[test]
    fn the_terminal_gets_no_foreign_sequences() {
        let text = shown(Style::PLAIN, |screen| {
            screen.answer("\u{1b}").unwrap();
            screen.answer("[2Jx").unwrap();
            screen.thought("\u{1b}[31m").unwrap();
        });
        assert_eq!(text, "␛[2Jx\n␛[31m");
    }

    #[test]
    fn a_raw_answer_is_untouched_and_ends_its_line() {
        assert_eq!(shown(Style::PLAIN, |screen| screen.answer_raw("a\u{1b}b").unwrap()), "a\u{1b}b\n");
        assert_eq!(shown(Style::PLAIN, |screen| screen.answer_raw("a\n").unwrap()), "a\n");
    }

    #[test]
    fn a_closed_progress_stream_loses_nothing_of_the_answer() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut screen = Screen::new(Vec::new(), Closed, Style::PLAIN);
        screen.line("x").unwrap();
        screen.answer("answer").unwrap();
        assert_eq!(screen.out, b"answer");
        let mut closed = Screen::new(Closed, Vec::new(), Style::PLAIN);
        assert_eq!(closed.answer("x").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
