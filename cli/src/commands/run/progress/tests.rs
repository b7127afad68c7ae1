use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::render::style::Style;

#[derive(Clone, Default)]
struct Stream(Rc<RefCell<Vec<u8>>>);

impl Stream {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What standard output and standard error show of a turn.
fn shown(streams: bool, events: &[(&str, &str, Value)]) -> (String, String) {
    let (out, err) = (Stream::default(), Stream::default());
    let mut progress = Progress::new(Screen::new(out.clone(), err.clone(), Style::PLAIN), streams, "s1");
    for (event, data, details) in events {
        let raw =
            json!({"id": 1, "event": event, "data": data, "sessionId": "s1", "details": details}).to_string();
        progress.event(&Line::parse(&Bytes::from(raw)).unwrap()).unwrap();
    }
    (out.text(), err.text())
}

fn two_steps() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("workflow", "start", json!({"step": 0, "kind": "start"})),
        ("model_start", "p/m", json!({"step": 1})),
        ("thinking", "Look ", json!({})),
        ("thinking", "first.", json!({})),
        ("delta", "I look.", json!({})),
        ("usage", "p/m", json!({"totalInputTokens": 900, "inputTokens": 1, "outputTokens": 40})),
        ("tool_start", "read_file", json!({"callId": "c", "summary": "path: a.txt"})),
        ("tool_done", "3 lines", json!({"callId": "c", "success": true, "durationMs": 3.2})),
        ("model_start", "p/m", json!({"step": 2})),
        ("delta", "It is ", json!({})),
        ("delta", "fine.", json!({})),
        ("done", "It is fine.", json!({})),
    ]
}

#[tokio::test]
async fn a_pipe_gets_the_final_answer_alone() {
    let (out, err) = shown(false, &two_steps());
    assert_eq!(out, "It is fine.\n");
    assert!(
        err.starts_with(
            "Look first.\n✓ read_file path: a.txt (3 ms)\np/m · 2 model calls · 900 in, 40 out tokens · "
        ),
        "{err}"
    );
    assert!(err.ends_with(" · session s1\n"), "{err}");
}

#[tokio::test]
async fn a_terminal_gets_the_answer_as_it_comes() {
    let (out, _) = shown(true, &two_steps());
    assert_eq!(out, "I look.\nIt is fine.\n");
}

#[tokio::test]
async fn withdrawn_text_is_not_doubled() {
    let mut events = vec![
        ("model_start", "p/m", json!({"step": 1})),
        ("delta", "It is bro", json!({})),
        (
            "retry",
            "connection lost",
            json!({"attempt": 1, "of": 3, "delayMs": 250, "reason": "connection lost", "code": "provider_unavailable",
                   "withdrawn": {"fromSeq": 1, "toSeq": 2, "chars": 9}}),
        ),
        ("model_start", "p/m", json!({"step": 2})),
        ("delta", "It is fine.", json!({})),
    ];
    events.push(("done", "It is fine.", json!({})));
    let (out, err) = shown(false, &events);
    assert_eq!(out, "It is fine.\n");
    assert!(err.contains("retry 1 of 3 in 250 ms: connection lost\n"), "{err}");
    let (out, err) = shown(true, &events);
    assert_eq!(out, "It is bro\nIt is fine.\n");
    assert!(err.contains("connection lost (the text of this step is withdrawn)\n"), "{err}");
}

#[tokio::test]
async fn an_answer_that_was_not_streamed_is_shown_at_the_end() {
    let (out, _) = shown(true, &[("done", "All of it.", json!({}))]);
    assert_eq!(out, "All of it.\n");
    let (out, _) = shown(false, &[("done", "", json!({}))]);
    assert_eq!(out, "\n", "an empty answer still ends its line");
}

#[tokio::test]
async fn tool_lines_tell_outcomes_apart() {
    let done = |outcome: &str, data: &'static str| {
        (
            "tool_done",
            data,
            json!({"callId": "c", "success": outcome == "ok", "outcome": outcome, "durationMs": 1500.0,
                                   "omittedBytes": 12}),
        )
    };
    let start = || ("tool_start", "bash", json!({"callId": "c", "summary": "command: make\u{1b}[2J"}));
    let (_, err) = shown(
        false,
        &[
            start(),
            done("failed", "exit 2"),
            start(),
            done("denied", "mode plan"),
            start(),
            done("uncertain", "the daemon died"),
        ],
    );
    let expected = "✗ bash command: make␛[2J (1.5 s, 12 bytes not shown to the model) failed: exit 2\n\
        ✗ bash command: make␛[2J (1.5 s, 12 bytes not shown to the model) denied: mode plan\n\
        ? bash command: make␛[2J (1.5 s, 12 bytes not shown to the model) uncertain: the daemon died\n";
    assert_eq!(err, expected);
}

#[tokio::test]
async fn what_else_happens_is_told_in_a_line_each() {
    let calls = json!([{"callId": "c", "tool": "bash", "summary": "command: make"}]);
    let (out, err) = shown(
        false,
        &[
            ("status", "Queued", json!({"position": 2})),
            ("warning", "step limit", json!({"code": "step_limit"})),
            ("provider_switched", "", json!({"from": "a/b", "to": "c/d", "reason": "429"})),
            ("recovered", "the daemon died", json!({"reason": "the daemon died", "uncertainCalls": calls})),
            ("steer", "look there", json!({})),
            ("file_diff", "a.txt", json!({"callId": "c", "diff": "@@ -1 +1 @@\n-a\n+b\n"})),
            ("something_new", "x", json!({})),
        ],
    );
    assert_eq!(out, "");
    let expected = "waiting: the session is busy, place 2 in its queue\nwarning: step limit\n\
        model changed: a/b → c/d: 429\nrecovered: the daemon died\n  uncertain: bash command: make\n\
        guidance: look there\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(err, expected);
}

#[tokio::test]
async fn a_cancelled_turn_leaves_what_it_had() {
    let events =
        [("model_start", "p/m", json!({})), ("delta", "half", json!({})), ("cancelled", "half", json!({}))];
    assert_eq!(shown(false, &events).0, "half\n");
    assert_eq!(shown(true, &events).0, "half\n");
}

/// An answer in two parts, since the first hit the output cap.
fn capped() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("model_start", "p/m", json!({"step": 1})),
        ("delta", "Earlier.", json!({})),
        ("model_start", "p/m", json!({"step": 2})),
        ("delta", "First ha", json!({})),
        ("status", "Output truncated; continuing", json!({})),
        ("model_start", "p/m", json!({"step": 3})),
        ("delta", "lf and", json!({})),
        ("retry", "lost", json!({"attempt": 1, "of": 3, "reason": "lost"})),
        ("model_start", "p/m", json!({"step": 3})),
        ("delta", "lf, second half.", json!({})),
    ]
}

#[tokio::test]
async fn an_answer_that_hit_the_output_cap_is_printed_whole() {
    let with = |event| capped().into_iter().chain([event]).collect::<Vec<_>>();
    let (out, err) = shown(false, &with(("done", "lf, second half.", json!({}))));
    assert_eq!(out, "First half, second half.\n");
    assert!(err.contains("truncated: asking for the rest\n"), "{err}");
    let (out, _) = shown(false, &with(("cancelled", "lf, second half.", json!({}))));
    assert_eq!(out, "First half, second half.\n");
    let (out, _) = shown(true, &with(("done", "lf, second half.", json!({}))));
    assert_eq!(out, "Earlier.\nFirst half and\nlf, second half.\n");
    let mut later = capped();
    later.extend([("model_start", "p/m", json!({})), ("delta", "Else.", json!({}))]);
    later.push(("done", "Else.", json!({})));
    assert_eq!(shown(false, &later).0, "Else.\n", "a later step is another answer");
}

#[tokio::test]
async fn checks_are_shown_with_the_end_of_what_they_said() {
    let tail: String = (1..=12).map(|line| format!("  line {line}\n")).collect();
    let (_, err) = shown(
        false,
        &[
            ("status", "Verifying", json!({})),
            (
                "verification",
                "make\u{1b} test",
                json!({"command": "make test", "ok": false, "exitCode": 2, "tail": tail}),
            ),
            (
                "verification",
                "make test",
                json!({"command": "make test", "ok": true, "exitCode": 0, "tail": "fine"}),
            ),
        ],
    );
    assert!(
        err.starts_with("✗ check: make␛ test (") && err.contains(" ms, exit code 2)\n    line 3\n"),
        "{err}"
    );
    assert!(err.contains("    line 12\n✓ check: make test (") && !err.contains("fine"), "{err}");
}

#[tokio::test]
async fn waits_are_told_where_no_spinner_tells_them() {
    let (_, err) = shown(false, &[("status", "Waiting 2.0 s: p is busy", json!({"waitMs": 2000}))]);
    assert_eq!(err, "waiting: 2.0 s: p is busy\n");
}

#[tokio::test]
async fn an_empty_answer_is_said_to_be_none() {
    let (_, err) = shown(false, &[("done", "", json!({}))]);
    assert!(err.starts_with("(no answer)\n"), "{err}");
    assert!(!shown(false, &[("done", "x", json!({}))]).1.contains("no answer"));
}
