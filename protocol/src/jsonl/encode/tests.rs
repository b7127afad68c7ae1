use serde_json::{Value, json};

use super::*;
use crate::error::ErrorCode;
use crate::event::{ToolOutcome, UncertainCall, Usage, WorkflowKind};

fn line_of(event: &Event) -> String {
    let (mut tail, mut out) = (Vec::new(), Vec::new());
    event_tail(event, "s", &mut tail);
    line(7, &tail, None, &mut out);
    String::from_utf8(out).unwrap()
}

/// Asserts a line given without the members that all of them share.
fn assert_line(event: &Event, name: &str, data: &str, details: &str) {
    let details = if details.is_empty() { String::new() } else { format!(",\"details\":{details}") };
    let expected =
        format!("{{\"id\":7,\"event\":\"{name}\",\"data\":\"{data}\",\"sessionId\":\"s\"{details}}}\n");
    assert_eq!(line_of(event), expected);
    assert!(Event::NAMES.contains(&event.name()));
    let parsed: Value = serde_json::from_str(&line_of(event)).unwrap();
    assert_eq!(parsed["event"], name);
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn texts_have_no_details() {
    assert_line(&Event::Thinking { text: text("hm") }, "thinking", "hm", "");
    assert_line(&Event::Delta { text: text("a\n\"é\"") }, "delta", r#"a\n\"é\""#, "");
    assert_line(&Event::Steer { text: text("left") }, "steer", "left", "");
    assert_line(&Event::Done { text: text("") }, "done", "", "");
    assert_line(&Event::Cancelled { text: text("half") }, "cancelled", "half", "");
}

#[test]
fn status_has_details_only_if_it_is_about_waiting() {
    assert_line(&Event::Status { label: text("Thinking"), details: None }, "status", "Thinking", "");
    let details = json!({"position": 2}).as_object().cloned();
    assert_line(&Event::Status { label: text("Queued"), details }, "status", "Queued", r#"{"position":2}"#);
}

#[test]
fn workflow_has_an_explicit_null_detail() {
    let kinds = [
        (WorkflowKind::Start, "start"),
        (WorkflowKind::Think, "think"),
        (WorkflowKind::Tool, "tool"),
        (WorkflowKind::Verify, "verify"),
        (WorkflowKind::Repair, "repair"),
        (WorkflowKind::Compact, "compact"),
        (WorkflowKind::Done, "done"),
        (WorkflowKind::Error, "error"),
    ];
    for (kind, name) in kinds {
        let event = Event::Workflow { step: 0, kind, label: text("开始任务"), detail: None };
        let details = format!(r#"{{"step":0,"kind":"{name}","label":"开始任务","detail":null}}"#);
        assert_line(&event, "workflow", "开始任务", &details);
    }
    let event =
        Event::Workflow { step: 3, kind: WorkflowKind::Error, label: text("x"), detail: Some(text("why")) };
    assert_line(&event, "workflow", "x", r#"{"step":3,"kind":"error","label":"x","detail":"why"}"#);
}

#[test]
fn model_calls_name_their_reference() {
    let event = Event::ModelStart { provider: text("deepseek"), model: text("chat"), step: 1 };
    let details = r#"{"provider":"deepseek","model":"chat","step":1}"#;
    assert_line(&event, "model_start", "deepseek/chat", details);

    let usage = Usage {
        input_tokens: 900,
        output_tokens: 40,
        total_input_tokens: 900,
        cached_input_tokens: 0,
        elapsed_ms: 812.4,
    };
    let event = Event::Usage { provider: text("deepseek"), model: text("c\"t"), usage };
    let details = concat!(
        r#"{"provider":"deepseek","model":"c\"t","inputTokens":900,"outputTokens":40,"#,
        r#""totalInputTokens":900,"cachedInputTokens":0,"elapsedMs":812.4}"#
    );
    assert_line(&event, "usage", r#"deepseek/c\"t"#, details);
}

#[test]
fn tools_and_images_are_matched_by_their_ids() {
    let event = Event::ImageView { image_id: text("i1"), name: text("a.png"), media_type: text("image/png") };
    assert_line(&event, "image_view", "a.png", r#"{"imageId":"i1","mediaType":"image/png"}"#);

    let event = Event::ToolStart { call_id: text("c"), tool: text("edit_file"), summary: text("path: a") };
    assert_line(&event, "tool_start", "edit_file", r#"{"callId":"c","summary":"path: a"}"#);

    let event = Event::FileDiff { call_id: text("c"), path: text("a.txt"), diff: text("--- a/a.txt\n") };
    assert_line(&event, "file_diff", "a.txt", r#"{"callId":"c","diff":"--- a/a.txt\n"}"#);
}

#[test]
fn only_an_ok_tool_is_a_success() {
    let outcomes = [
        (ToolOutcome::Ok, "ok"),
        (ToolOutcome::Failed, "failed"),
        (ToolOutcome::Denied, "denied"),
        (ToolOutcome::Cancelled, "cancelled"),
        (ToolOutcome::Uncertain, "uncertain"),
    ];
    for (outcome, name) in outcomes {
        let event = Event::ToolDone {
            call_id: text("c"),
            summary: text("Edited"),
            outcome,
            duration_ms: 3.1,
            omitted_bytes: 12,
        };
        let success = outcome == ToolOutcome::Ok;
        let details = format!(
            r#"{{"callId":"c","success":{success},"durationMs":3.1,"outcome":"{name}","omittedBytes":12}}"#
        );
        assert_line(&event, "tool_done", "Edited", &details);
    }
}

#[test]
fn a_time_is_always_a_number() {
    for odd in [f64::NAN, f64::INFINITY] {
        let usage = Usage { elapsed_ms: odd, ..Usage::default() };
        let line = line_of(&Event::Usage { provider: text("p"), model: text("m"), usage });
        let parsed: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(parsed["details"]["elapsedMs"], 0.0);
    }
}

#[test]
fn a_retry_names_what_it_withdraws() {
    let event = Event::Retry {
        line: text("again"),
        attempt: 1,
        of: 3,
        delay_ms: 250,
        reason: text("stream broke"),
        code: ErrorCode::ProviderUnavailable,
        from_seq: 5,
        to_seq: 9,
        chars: 40,
    };
    let details = concat!(
        r#"{"attempt":1,"of":3,"delayMs":250,"reason":"stream broke","code":"provider_unavailable","#,
        r#""withdrawn":{"fromSeq":5,"toSeq":9,"chars":40}}"#
    );
    assert_line(&event, "retry", "again", details);
}

#[test]
fn warnings_switches_and_recoveries_are_readable_and_structured() {
    let event = Event::Warning { text: text("limit"), code: text("step_limit") };
    assert_line(&event, "warning", "limit", r#"{"code":"step_limit"}"#);

    let event = Event::ProviderSwitched { from: text("a/x"), to: text("b/y"), reason: text("HTTP 500") };
    let details = r#"{"from":"a/x","to":"b/y","reason":"HTTP 500"}"#;
    assert_line(&event, "provider_switched", "a/x -> b/y: HTTP 500", details);

    let call = UncertainCall { call_id: text("c"), tool: text("bash"), summary: text("make") };
    let event = Event::Recovered { reason: text("crash"), uncertain: vec![call] };
    let details = r#"{"reason":"crash","uncertainCalls":[{"callId":"c","tool":"bash","summary":"make"}]}"#;
    assert_line(&event, "recovered", "crash", details);
}

#[test]
fn a_failed_turn_has_a_code() {
    let event = Event::Error { code: ErrorCode::NoModel, message: text("none"), retry_after_ms: None };
    assert_line(&event, "error", "none", r#"{"code":"no_model","retryable":false}"#);
    let event = Event::Error {
        code: ErrorCode::ProviderRateLimited,
        message: text("slow"),
        retry_after_ms: Some(61_000),
    };
    let details = r#"{"code":"provider_rate_limited","retryable":true,"retryAfterMs":61000}"#;
    assert_line(&event, "error", "slow", details);
}

#[test]
fn a_cursor_follows_the_details_and_lines_are_appended() {
    let (mut tail, mut cursor, mut out) = (Vec::new(), Vec::new(), Vec::new());
    event_tail(&Event::Warning { text: text("w"), code: text("c") }, "s", &mut tail);
    cursor_tail(2, 41, Timestamp(1_785_499_200_123), "00ff", &mut cursor);
    line(1, &tail, Some(&cursor), &mut out);
    line(2, &tail, None, &mut out);
    let expected = concat!(
        r#"{"id":1,"event":"warning","data":"w","sessionId":"s","details":{"code":"c"},"#,
        r#""cursor":{"generation":2,"seq":41},"ts":"2026-07-31T12:00:00.123Z","turnId":"00ff"}"#,
        "\n",
        r#"{"id":2,"event":"warning","data":"w","sessionId":"s","details":{"code":"c"}}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_value_that_cannot_be_written_leaves_valid_json() {
    let mut out = Vec::new();
    let no_text_keys = std::collections::BTreeMap::from([((1, 2), 3)]);
    put(&mut out, &no_text_keys);
    assert_eq!(out, b"null");
}
