//! A turn for people: what each event line becomes on the screen.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::Value;
use tokio::time::Instant;

use crate::client::line::Line;
use crate::commands::run::screen::Screen;
use crate::render::diff;
use crate::render::escape::{keep_indent, neutral, one_line};
use crate::render::style::Tone;
use crate::render::when::took;

/// Columns of one line of progress.
const COLUMNS: usize = 160;
/// Lines of a failed check's output that are shown.
const CHECK_LINES: usize = 10;
/// What the daemon says when an answer hit the output cap and the model is asked for the rest.
const TRUNCATED: &str = "Output truncated; continuing";

/// The state of one turn on the screen.
#[derive(Debug)]
pub(super) struct Progress<O, E> {
    screen: Screen<O, E>,
    /// Whether a terminal shows the answer as it comes; else it is written once, when it is final.
    streams: bool,
    /// Text of the latest step that had any, as far as it was streamed and not withdrawn; the parts of an answer
    /// that hit the output cap count as one step.
    step_text: String,
    /// Bytes of it that came before the part that is being received.
    settled: usize,
    /// The next model call goes on with the text of the one before.
    continues: bool,
    /// The next text starts a step.
    fresh_step: bool,
    label: String,
    label_since: Instant,
    calls: HashMap<String, String>,
    model: String,
    rounds: u64,
    input: u64,
    output: u64,
    session: String,
    since: Instant,
}

impl<O: Write, E: Write> Progress<O, E> {
    /// A turn of `session` that starts now; `streams` if standard output is a terminal.
    pub(super) fn new(screen: Screen<O, E>, streams: bool, session: &str) -> Self {
        Self {
            screen,
            streams,
            step_text: String::new(),
            settled: 0,
            continues: false,
            fresh_step: true,
            label: "Waiting".to_owned(),
            label_since: Instant::now(),
            calls: HashMap::new(),
            model: String::new(),
            rounds: 0,
            input: 0,
            output: 0,
            session: session.to_owned(),
            since: Instant::now(),
        }
    }

    /// Shows one event of the turn.
    pub(super) fn event(&mut self, line: &Line) -> io::Result<()> {
        match line.event.as_str() {
            "delta" => self.delta(&line.data),
            "thinking" => self.screen.thought(&line.data),
            "status" => self.status(line),
            "model_start" => self.model_start(&line.data),
            "usage" => self.usage(line),
            "tool_start" => self.tool_start(line),
            "tool_done" => self.tool_done(line),
            "file_diff" => {
                self.screen.line(&diff::render(line.text("diff").unwrap_or_default(), self.screen.style()))
            }
            "image_view" => self.say(Tone::Dim, "looked at image", &line.data),
            "steer" => self.say(Tone::Cyan, "guidance:", &line.data),
            "verification" => self.verification(line),
            "retry" => self.retry(line),
            "warning" => self.say(Tone::Yellow, "warning:", &line.data),
            "provider_switched" => self.switched(line),
            "recovered" => self.recovered(line),
            "done" => self.done(&line.data),
            "cancelled" => self.cancelled(&line.data),
            "error" => self.screen.close(),
            _ => Ok(()),
        }
    }

    /// Moves the spinner on.
    pub(super) fn tick(&mut self) {
        let seconds = self.since.elapsed().as_secs();
        self.screen.spin(&format!("{} ({seconds} s)", self.label));
    }

    /// Shows a note of our own.
    pub(super) fn note(&mut self, text: &str) -> io::Result<()> {
        let text = self.screen.style().paint(Tone::Yellow, &neutral(text));
        self.screen.line(&text)
    }

    fn delta(&mut self, text: &str) -> io::Result<()> {
        if std::mem::take(&mut self.fresh_step) {
            self.step_text.clear();
            self.settled = 0;
        }
        self.step_text.push_str(text);
        if self.streams { self.screen.answer(text) } else { Ok(()) }
    }

    fn status(&mut self, line: &Line) -> io::Result<()> {
        self.label = one_line(&line.data, COLUMNS);
        self.label_since = Instant::now();
        if line.data == TRUNCATED {
            self.continues = true;
            // On a terminal the answer simply goes on in its line.
            return if self.streams {
                Ok(())
            } else {
                self.say(Tone::Dim, "truncated:", "asking for the rest")
            };
        }
        match line.count("position") {
            Some(position) if line.data == "Queued" => self.say(
                Tone::Dim,
                "waiting:",
                &format!("the session is busy, place {position} in its queue"),
            ),
            // Elsewhere the spinner says so.
            _ if line.data.starts_with("Waiting ") && !self.screen.style().is_rich() => {
                self.say(Tone::Dim, "waiting:", line.data.trim_start_matches("Waiting "))
            }
            _ => Ok(()),
        }
    }

    fn model_start(&mut self, model: &str) -> io::Result<()> {
        self.model = one_line(model, COLUMNS);
        self.label = "Thinking".to_owned();
        self.rounds += 1;
        if std::mem::take(&mut self.continues) {
            self.settled = self.step_text.len();
            return Ok(());
        }
        self.fresh_step = true;
        self.screen.close()
    }

    fn usage(&mut self, line: &Line) -> io::Result<()> {
        self.input += line.count("totalInputTokens").or_else(|| line.count("inputTokens")).unwrap_or(0);
        self.output += line.count("outputTokens").unwrap_or(0);
        Ok(())
    }

    fn tool_start(&mut self, line: &Line) -> io::Result<()> {
        let call = one_line(&format!("{} {}", line.data, line.text("summary").unwrap_or_default()), COLUMNS);
        self.label.clone_from(&call);
        if let Some(id) = line.text("callId") {
            self.calls.insert(id.to_owned(), call);
        }
        Ok(())
    }

    fn tool_done(&mut self, line: &Line) -> io::Result<()> {
        let call =
            line.text("callId").and_then(|id| self.calls.remove(id)).unwrap_or_else(|| "tool".to_owned());
        let success = line.details.get("success").and_then(Value::as_bool).unwrap_or(false);
        let outcome = line.text("outcome").unwrap_or(if success { "ok" } else { "failed" });
        let (mark, tone) = match outcome {
            "ok" => ("✓", Tone::Green),
            "uncertain" => ("?", Tone::Yellow),
            _ => ("✗", Tone::Red),
        };
        let mut text = format!("{} {call}", self.screen.style().paint(tone, mark));
        let time = took(line.details.get("durationMs").and_then(Value::as_f64).unwrap_or(0.0));
        let mut facts = vec![time];
        if let Some(omitted) = line.count("omittedBytes").filter(|omitted| *omitted > 0) {
            facts.push(format!("{omitted} bytes not shown to the model"));
        }
        text.push_str(&self.screen.style().paint(Tone::Dim, &format!(" ({})", facts.join(", "))));
        if outcome != "ok" {
            text.push_str(&format!(" {outcome}: {}", one_line(&line.data, COLUMNS)));
        }
        self.label = "Thinking".to_owned();
        self.screen.line(&text)
    }

    fn retry(&mut self, line: &Line) -> io::Result<()> {
        let shown = self.streams && !self.fresh_step && self.step_text.len() > self.settled;
        self.withdraw();
        let reason = line.text("reason").unwrap_or(&line.data);
        let attempt = line.count("attempt").unwrap_or(1);
        let of = line.count("of").map(|of| format!(" of {of}")).unwrap_or_default();
        let wait = line.count("delayMs").map(|ms| format!(" in {}", took(ms as f64))).unwrap_or_default();
        let withdrawn = if shown { " (the text of this step is withdrawn)" } else { "" };
        self.say(Tone::Yellow, &format!("retry {attempt}{of}{wait}:"), &format!("{reason}{withdrawn}"))
    }

    /// Forgets the part that is being received: it is asked for again.
    fn withdraw(&mut self) {
        if self.fresh_step {
            self.settled = 0;
        }
        self.step_text.truncate(self.settled);
        self.continues = self.settled > 0;
    }

    fn verification(&mut self, line: &Line) -> io::Result<()> {
        let ok = line.details.get("ok").and_then(Value::as_bool).unwrap_or(false);
        let (mark, tone) = if ok { ("✓", Tone::Green) } else { ("✗", Tone::Red) };
        let style = self.screen.style();
        let mut facts = took(self.label_since.elapsed().as_secs_f64() * 1000.0);
        if let Some(code) = line.details.get("exitCode").and_then(Value::as_i64).filter(|_| !ok) {
            facts.push_str(&format!(", exit code {code}"));
        }
        let facts = style.paint(Tone::Dim, &format!(" ({facts})"));
        let command = one_line(&line.data, COLUMNS);
        let mut text = format!("{} check: {command}{facts}\n", style.paint(tone, mark));
        if !ok {
            let tail: Vec<&str> = line.text("tail").unwrap_or_default().trim_end().lines().collect();
            for last in tail.iter().skip(tail.len().saturating_sub(CHECK_LINES)) {
                text.push_str(&style.paint(Tone::Dim, &format!("  {}", keep_indent(last, COLUMNS))));
                text.push('\n');
            }
        }
        self.label = "Thinking".to_owned();
        self.screen.line(&text)
    }

    fn switched(&mut self, line: &Line) -> io::Result<()> {
        self.continues = !self.fresh_step && self.settled > 0;
        let part = |name: &str| line.text(name).unwrap_or("?").to_owned();
        let text = format!("{} → {}: {}", part("from"), part("to"), part("reason"));
        self.say(Tone::Yellow, "model changed:", &text)
    }

    fn recovered(&mut self, line: &Line) -> io::Result<()> {
        let reason = line.text("reason").unwrap_or(&line.data);
        self.say(Tone::Yellow, "recovered:", reason)?;
        let calls = line.details.get("uncertainCalls").and_then(Value::as_array).cloned().unwrap_or_default();
        for call in calls {
            let part = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
            self.say(Tone::Yellow, "  uncertain:", &format!("{} {}", part("tool"), part("summary")))?;
        }
        Ok(())
    }

    fn done(&mut self, answer: &str) -> io::Result<()> {
        let whole = self.whole(answer);
        if !self.streams {
            self.screen.answer_raw(&whole)?;
        } else if self.step_text.trim() != whole.trim() {
            // What was streamed is not the answer: it was withdrawn, or came before we listened.
            self.screen.close()?;
            self.screen.answer(&whole)?;
        }
        if whole.trim().is_empty() {
            self.note("(no answer)")?;
        }
        self.footer()
    }

    /// The terminal event carries the last part alone of an answer that hit the output cap.
    fn whole(&self, last: &str) -> String {
        let joined = !self.fresh_step && self.settled > 0 && self.step_text.ends_with(last);
        if joined { self.step_text.clone() } else { last.to_owned() }
    }

    fn cancelled(&mut self, partial: &str) -> io::Result<()> {
        let whole = self.whole(partial);
        if !self.streams && !whole.is_empty() {
            self.screen.answer_raw(&whole)?;
        }
        self.footer()
    }

    fn footer(&mut self) -> io::Result<()> {
        let calls = format!("{} model {}", self.rounds, if self.rounds == 1 { "call" } else { "calls" });
        let tokens = format!("{} in, {} out tokens", self.input, self.output);
        let time = took(self.since.elapsed().as_secs_f64() * 1000.0);
        let session = format!("session {}", neutral(&self.session));
        let facts: Vec<&str> = [self.model.as_str(), &calls, &tokens, &time, &session]
            .into_iter()
            .filter(|fact| !fact.is_empty())
            .collect();
        let text = self.screen.style().paint(Tone::Dim, &facts.join(" · "));
        self.screen.line(&text)
    }

    fn say(&mut self, tone: Tone, what: &str, text: &str) -> io::Result<()> {
        let text = format!("{} {}", self.screen.style().paint(tone, what), one_line(text, COLUMNS * 4));
        self.screen.line(&text)
    }
}
