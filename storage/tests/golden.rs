//! Every stored record has the bytes that it had when its version was frozen. A failing line here means
//! that existing stores could not be read any more: make a new version instead of changing the file.
//! `SEEKCLAW_WRITE_GOLDEN=1` writes the files, for a new version or a new variant only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

use std::collections::BTreeSet;
use std::fmt::{Debug, Write as _};
use std::path::Path;

use seekclaw_protocol::{Mode, ReasoningLevel};
use seekclaw_storage::record::Record;
use seekclaw_storage::record::log::{
    Answer, AnswerEnd, Applied, Body, Call, CallResult, Effect, Entry, Finished, Guidance, ImageRef, Intent,
    Mark, Note, Notice, Outcome, Prompt, Returned, Seen, Started, Streamed, Truncated,
};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::record::turn::TurnRow;

fn text(name: &str) -> String {
    format!("{name} ü")
}

fn image() -> ImageRef {
    ImageRef { id: text("id"), name: text("name"), media_type: "image/png".to_owned(), size: 70_000 }
}

fn entry(body: Body) -> Entry {
    Entry { seq: 300, at: 1_780_000_000_123, turn: "00ff00ff00ff00ff".to_owned(), body }
}

fn key() -> SessionKey {
    SessionKey { scope: "workspace|/w".to_owned(), id: "20260731-120000-abcdef".to_owned() }
}

fn answer(end: AnswerEnd) -> Body {
    let mark = |seq, kind| Mark { seq, kind, bytes: 4 };
    Body::Answer(Answer {
        step: 2,
        model: text("model"),
        thinking: text("thinking"),
        text: text("text"),
        marks: vec![mark(301, Streamed::Thinking), mark(302, Streamed::Text)],
        calls: vec![Call { id: text("id"), name: "bash".to_owned(), arguments: "{}".to_owned() }],
        viewed: vec![image()],
        end,
    })
}

fn result(outcome: Outcome) -> Body {
    Body::Result(CallResult {
        call: text("call"),
        tool: "bash".to_owned(),
        outcome,
        text: text("text"),
        summary: text("summary"),
        took_us: 1_000_000,
        omitted: 9,
        seen: vec![Seen { path: text("path"), hash: "ab".to_owned() }],
        images: vec![image()],
    })
}

fn intent(effect: Effect) -> Body {
    Body::Intent(Intent { call: text("call"), tool: text("tool"), effect })
}

fn started(mode: Mode, reasoning: ReasoningLevel) -> Body {
    Body::Started(Started { attempt: 1, mode, reasoning, model: text("model") })
}

fn bodies() -> Vec<Body> {
    let (prompt, client) = (text("prompt"), text("client"));
    let mut bodies = vec![
        Body::Prompt(Prompt { text: prompt, images: vec![image()], client }),
        Body::Returned(Returned { unanswered: true, reason: text("reason") }),
        Body::Guidance(Guidance { id: text("id"), text: text("text"), images: vec![image()] }),
        Body::Applied(Applied { guidance: text("id"), text: text("text") }),
        intent(Effect::File { path: text("path"), before: String::new(), after: "cd".to_owned() }),
        intent(Effect::Command { command: text("command"), cwd: text("cwd") }),
        intent(Effect::Other { what: text("what") }),
        Body::Note(Note { text: text("note") }),
        Body::Truncated(Truncated { keep: 3 }),
        Body::Finished(Finished::Done { text: text("text") }),
        Body::Finished(Finished::Cancelled { text: text("text") }),
        Body::Finished(Finished::Failed {
            code: text("code"),
            message: text("message"),
            retry_after_ms: 1500,
        }),
    ];
    bodies.extend(
        [AnswerEnd::Complete, AnswerEnd::Capped, AnswerEnd::Cancelled, AnswerEnd::Interrupted].map(answer),
    );
    bodies.extend(
        [Outcome::Ok, Outcome::Failed, Outcome::Denied, Outcome::Cancelled, Outcome::Uncertain].map(result),
    );
    let levels = [
        ReasoningLevel::None,
        ReasoningLevel::Low,
        ReasoningLevel::Medium,
        ReasoningLevel::High,
        ReasoningLevel::Max,
        ReasoningLevel::Xhigh,
    ];
    bodies.extend(levels.map(|level| started(Mode::Edit, level)));
    bodies.extend([Mode::Plan, Mode::Readonly, Mode::Auto].map(|mode| started(mode, ReasoningLevel::High)));
    bodies.extend(notices().into_iter().map(Body::Notice));
    bodies
}

fn notices() -> Vec<Notice> {
    vec![
        Notice::Status { label: text("label"), position: 1, wait_ms: 2 },
        Notice::Workflow { step: 1, kind: 7, label: text("label"), detail: text("detail") },
        Notice::ModelStart { provider: text("p"), model: text("m"), step: 3 },
        Notice::Usage {
            provider: text("p"),
            model: text("m"),
            input: 1,
            output: 2,
            total_input: 3,
            cached: 4,
            took_us: 5,
        },
        Notice::ImageView(image()),
        Notice::ToolStart { call: text("call"), tool: text("tool"), summary: text("summary") },
        Notice::FileDiff { call: text("call"), path: text("path"), diff: text("diff") },
        Notice::Retry {
            line: text("line"),
            attempt: 1,
            of: 3,
            delay_ms: 250,
            reason: text("reason"),
            code: text("code"),
            from_seq: 10,
            to_seq: 20,
            chars: 30,
        },
        Notice::Warning { text: text("text"), code: text("code") },
        Notice::ProviderSwitched { from: text("from"), to: text("to"), reason: text("reason") },
        Notice::Recovered {
            reason: text("reason"),
            uncertain: vec![(text("call"), text("tool"), text("summary"))],
        },
        Notice::Verification { command: text("command"), ok: false, exit_code: Some(-1), tail: text("tail") },
    ]
}

/// Without a wildcard, so that a new variant asks for a sample here.
fn variant(body: &Body) -> &'static str {
    match body {
        Body::Prompt(_) => "prompt",
        Body::Returned(_) => "returned",
        Body::Started(_) => "started",
        Body::Guidance(_) => "guidance",
        Body::Applied(_) => "applied",
        Body::Answer(_) => "answer",
        Body::Intent(_) => "intent",
        Body::Result(_) => "result",
        Body::Note(_) => "note",
        Body::Truncated(_) => "truncated",
        Body::Finished(_) => "finished",
        Body::Notice(notice) => notice_variant(notice),
    }
}

fn notice_variant(notice: &Notice) -> &'static str {
    match notice {
        Notice::Status { .. } => "notice status",
        Notice::Workflow { .. } => "notice workflow",
        Notice::ModelStart { .. } => "notice model_start",
        Notice::Usage { .. } => "notice usage",
        Notice::ImageView(_) => "notice image_view",
        Notice::ToolStart { .. } => "notice tool_start",
        Notice::FileDiff { .. } => "notice file_diff",
        Notice::Retry { .. } => "notice retry",
        Notice::Warning { .. } => "notice warning",
        Notice::ProviderSwitched { .. } => "notice provider_switched",
        Notice::Recovered { .. } => "notice recovered",
        Notice::Verification { .. } => "notice verification",
    }
}

fn session() -> SessionRow {
    SessionRow {
        uid: u64::MAX,
        key: key(),
        workspace: text("/w"),
        title: text("title"),
        archived: true,
        reasoning: ReasoningLevel::Low,
        network: true,
        llm_rounds: 1,
        execution_steps: 2,
        input_tokens: 3,
        total_input_tokens: 4,
        cached_input_tokens: 5,
        output_tokens: 6,
        output_elapsed_ms: 7,
        created_at: -1,
        updated_at: 1_780_000_000_123,
        generation: 8,
        seq_reserved: 9,
        messages: 10,
    }
}

fn turn() -> TurnRow {
    TurnRow {
        session: 1,
        key: key(),
        turn: "00ff00ff00ff00ff".to_owned(),
        prompt_seq: 2,
        running: true,
        client_owned: false,
        client: text("client"),
        accepted_at: 3,
        touched_at: 4,
        deaths: 5,
        mode: "plan".to_owned(),
        model: text("model"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// One line a sample, `name: hex`.
fn check<T: Record + PartialEq + Debug>(file: &str, samples: &[(String, T)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("SEEKCLAW_WRITE_GOLDEN").is_some() {
        let line = |(name, value): &(String, T)| format!("{name}: {}\n", hex(&value.to_bytes().unwrap()));
        std::fs::write(&path, samples.iter().map(line).collect::<String>()).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = golden.lines().collect();
    assert_eq!(lines.len(), samples.len(), "{file}: a line for each sample");
    for (line, (name, value)) in lines.iter().zip(samples) {
        let bytes = line.strip_prefix(&format!("{name}: ")).expect(name);
        assert_eq!(hex(&value.to_bytes().unwrap()), bytes, "{file}: {name} is written differently");
        assert_eq!(T::from_bytes(&unhex(bytes)).as_ref(), Ok(value), "{file}: {name} is read differently");
    }
}

#[test]
fn log_entries_keep_their_bytes() {
    let samples: Vec<(String, Entry)> = bodies()
        .into_iter()
        .enumerate()
        .map(|(at, body)| (format!("{at:02} {}", variant(&body)), entry(body)))
        .collect();
    check("entry.v1.hex", &samples);
}

#[test]
fn every_variant_has_a_sample() {
    let bodies = bodies();
    let sampled: BTreeSet<&str> = bodies.iter().map(variant).collect();
    assert_eq!(sampled.len(), 11 + 12, "{sampled:?}");
}

#[test]
fn session_rows_keep_their_bytes() {
    check("session.v1.hex", &[("session".to_owned(), session())]);
}

#[test]
fn turn_rows_keep_their_bytes() {
    check("turn.v1.hex", &[("turn".to_owned(), turn())]);
}
