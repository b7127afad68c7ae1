//! Every recording of a real server, whole and in pieces, from its bytes to its outcome.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use seekclaw_storage::config::model::{Model, Provider};

use super::*;
use crate::provider::{Chunk, Finish};

/// What a recording must come to.
enum Expected {
    /// Finish, text, thinking, calls (name, arguments), input, output and cached tokens.
    Answer(Finish, &'static str, &'static str, &'static [(&'static str, &'static str)], (u64, u64, u64)),
    /// Code, retryable, text, wait in milliseconds.
    Error(ErrorCode, bool, &'static str, Option<u64>),
}
use Expected::{Answer, Error};
use Finish::{Capped, Complete};

const PATHS: &[(&str, &str)] = &[("read_file", "{\"path\":\"a\"}"), ("read_file", "{\"path\":\"b\"}")];
const SPACED: &[(&str, &str)] = &[("read_file", "{\"path\": \"a\"}"), ("read_file", "{\"path\": \"b\"}")];
const AS_TEXT: &str =
    "```json\n{\n  \"name\": \"read_file\",\n  \"arguments\": {\n    \"path\": \"README.md\"\n  }\n}\n```";
const ASKED_IN_TEXT: &str = concat!(
    "```json\n{\n  \"name\": \"read_file\",\n  \"arguments\": {\n    \"path\": \"README.md\"\n  }\n}\n```\n",
    "You can use the `read_file` function to read the contents of a file named `README.md` from the disk. ",
    "The function will return the contents of the file as a JSON object. For example, if the file is located ",
    "in the same directory as the script, you can call the function like this:\n\n```json\n{\n  \""
);

const RECORDINGS: &[(&str, Expected)] = &[
    (
        "aimock-err429-chat",
        Error(ErrorCode::ProviderRateLimited, true, "p returned HTTP 429: Rate limited", Some(1000)),
    ),
    ("aimock-err500-chat", Error(ErrorCode::ProviderUnavailable, true, "p returned HTTP 500: boom", None)),
    ("aimock-hello-chat", Answer(Complete, "Hello from aimock, a third-party mock.", "", &[], (2, 10, 0))),
    (
        "aimock-mixed-chat",
        Answer(Complete, "I will read it.", "", &[("read_file", "{\"path\":\"a\"}")], (2, 9, 0)),
    ),
    (
        "aimock-think-chat",
        Answer(Complete, "The answer is 42.", "Let me think about it carefully.", &[], (2, 5, 0)),
    ),
    ("aimock-tools-chat", Answer(Complete, "", "", PATHS, (2, 11, 0))),
    ("lcp-chat-text", Answer(Capped, "Hello! How can I assist", "", &[], (0, 0, 0))),
    (
        "lcp-chat-tool-auto",
        Error(ErrorCode::ProviderUnavailable, true, "p stream error: the body is empty", None),
    ),
    (
        "lcp-chat-tool-forced",
        Answer(Complete, "", "", &[("read_file", "{ \"path\": \"/path/to/your/file.txt\" }")], (0, 0, 0)),
    ),
    (
        "llamacpp-400-badjson",
        Error(
            ErrorCode::ProviderRejected,
            false,
            "p returned HTTP 400: [json.exception.parse_error.101] parse error at line 1, column 16: syntax \
             error while parsing object key - unexpected end of input; expected string literal",
            None,
        ),
    ),
    (
        "llamacpp-400-ctx-chat",
        Error(
            ErrorCode::ContextOverflow,
            false,
            "p returned HTTP 400: request (1531 tokens) exceeds the available context size (512 tokens), try \
             increasing it",
            None,
        ),
    ),
    (
        "llamacpp-400-nomessages",
        Error(ErrorCode::ProviderUnavailable, true, "p returned HTTP 500: 'messages' is required", None),
    ),
    (
        "llamacpp-401-chat",
        Error(ErrorCode::ProviderAuth, false, "p returned HTTP 401: Invalid API Key", None),
    ),
    ("llamacpp-chat-text", Answer(Capped, "Hello! I'm here to help with", "", &[], (33, 8, 24))),
    ("llamacpp-chat-text-nousage", Answer(Capped, "Hello! I'm here to", "", &[], (0, 0, 0))),
    ("llamacpp-empty-completion-chat", Answer(Complete, "", "", &[], (221, 1, 214))),
    ("llamacpp-q05-required-not-enforced-chat", Answer(Capped, ASKED_IN_TEXT, "", &[], (165, 100, 157))),
    ("llamacpp-q05-tool-as-text-chat", Answer(Complete, AS_TEXT, "", &[], (169, 30, 18))),
    // Retry-After on a 401 is no invitation.
    ("llmock-401-chat", Error(ErrorCode::ProviderAuth, false, "p returned HTTP 401: Unauthorized.", None)),
    (
        "llmock-429-chat",
        Error(ErrorCode::ProviderRateLimited, true, "p returned HTTP 429: Rate limit exceeded.", Some(2000)),
    ),
    (
        "llmock-500-chat",
        Error(
            ErrorCode::ProviderUnavailable,
            true,
            "p returned HTTP 500: Internal server error.",
            Some(2000),
        ),
    ),
    (
        "llmock-503-chat",
        Error(ErrorCode::ProviderUnavailable, true, "p returned HTTP 503: Service unavailable.", Some(2000)),
    ),
    (
        "llmock-529-chat",
        Error(ErrorCode::ProviderUnavailable, true, "p returned HTTP 529: Service overloaded.", Some(2000)),
    ),
    // The call is complete, only its arguments are not: the agent repairs them.
    ("llmock-badargs-chat", Answer(Complete, "", "", &[("read_file", "{\"path\": \"")], (5, 2, 0))),
    ("llmock-chat-text", Answer(Complete, "LLMock says hello from gpt-x.", "", &[], (5, 7, 0))),
    ("llmock-chat-tools-parallel", Answer(Complete, "", "", SPACED, (5, 6, 0))),
    (
        "llmock-disconnect-chat",
        Error(
            ErrorCode::ProviderUnavailable,
            true,
            "p stream error: the stream ended without a finish reason",
            None,
        ),
    ),
    // Skipping the damaged frame would drop a word of the answer without a trace.
    (
        "llmock-malformed-chat",
        Error(
            ErrorCode::ProviderUnavailable,
            true,
            "p stream error: a frame is no JSON: \
             {\"id\":\"chatcmpl-307b8e50b02a46d7bc06c323\",\"object\":\"chat.completion.chunk\",\"crea",
            None,
        ),
    ),
    (
        "llmock-truncate-chat",
        Error(
            ErrorCode::ProviderUnavailable,
            true,
            "p stream error: the stream ended without a finish reason",
            None,
        ),
    ),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sse")
}

struct Recording {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

fn recording(name: &str) -> Recording {
    let bytes = std::fs::read(folder().join(format!("{name}.txt"))).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(':')).map(|(name, value)| {
        let value = HeaderValue::from_str(value.trim()).unwrap();
        (HeaderName::from_bytes(name.as_bytes()).unwrap(), value)
    });
    Recording { status, headers: headers.collect(), body: bytes[end + 4..].to_vec() }
}

fn candidate() -> Candidate {
    let provider = Provider { id: "p".to_owned(), ..Provider::default() };
    let model = Model { id: "m".to_owned(), ..Model::default() };
    Candidate { provider: Arc::new(provider), model: Arc::new(model), deep_seek_optimized: false }
}

/// The outcome of a body that arrives in these parts, and what was heard on the way.
fn parsed<'a>(parts: impl Iterator<Item = &'a [u8]>) -> (Result<Reply, ProviderError>, Vec<Chunk>) {
    let (candidate, mut heard) = (candidate(), Vec::new());
    let mut hear = |chunk| heard.push(chunk);
    let mut reader = Reader::new(&candidate);
    let mut outcome = Ok(());
    for part in parts {
        if outcome.is_ok() && !reader.is_done() {
            outcome = reader.feed(part, &mut hear);
        }
    }
    let outcome = outcome.and_then(|()| reader.finish(&mut hear));
    (outcome.map_err(|fault| failed(&candidate, fault)), heard)
}

fn check(name: &str, expected: &Expected, outcome: &Result<Reply, ProviderError>, heard: &[Chunk]) {
    match (expected, outcome) {
        (Answer(finish, text, thinking, calls, usage), Ok(reply)) => {
            let got: Vec<(&str, &str)> =
                reply.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
            assert_eq!((reply.finish, reply.text.as_str()), (*finish, *text), "{name}");
            assert_eq!((reply.thinking.as_str(), got.as_slice()), (*thinking, *calls), "{name}");
            let counted = &reply.usage;
            let figures = (counted.total_input_tokens, counted.output_tokens, counted.cached_input_tokens);
            assert_eq!(figures, *usage, "{name}");
            let ids: BTreeSet<&str> = reply.calls.iter().map(|call| call.id.as_str()).collect();
            assert!(ids.len() == calls.len() && !ids.contains(""), "{name}");
            check_heard(name, reply, heard);
        }
        (Error(code, retryable, message, wait), Err(error)) => {
            let got = (error.code, error.retryable, error.message.as_str());
            assert_eq!(got, (*code, *retryable, *message), "{name}");
            assert_eq!(error.retry_after, wait.map(Duration::from_millis), "{name}");
        }
        (_, outcome) => panic!("{name}: {outcome:?}"),
    }
}

/// What streamed is exactly what the answer holds.
fn check_heard(name: &str, reply: &Reply, heard: &[Chunk]) {
    let (mut text, mut thinking, mut started) = (String::new(), String::new(), 0);
    for chunk in heard {
        match chunk {
            Chunk::Text(piece) => text.push_str(piece),
            Chunk::Thinking(piece) => thinking.push_str(piece),
            Chunk::CallStarted => started += 1,
        }
    }
    assert_eq!((text, thinking), (reply.text.clone(), reply.thinking.clone()), "{name}");
    assert_eq!(started, usize::from(!reply.calls.is_empty()), "{name}");
}

#[test]
fn every_recording_has_its_expected_outcome_and_the_other_way_round() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> =
        files.map(|name| name.to_str().unwrap().trim_end_matches(".txt").to_owned()).collect();
    let named: BTreeSet<String> = RECORDINGS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, named);
}

#[test]
fn recordings_come_to_the_same_whole_and_split_at_every_byte() {
    for (name, expected) in RECORDINGS {
        let Recording { status, headers, body } = recording(name);
        if status != 200 {
            let text = String::from_utf8(body).unwrap();
            let error = ProviderError::status(&candidate().provider, status, &headers, &text);
            check(name, expected, &Err(error), &[]);
            continue;
        }
        let (outcome, heard) = parsed(std::iter::once(body.as_slice()));
        check(name, expected, &outcome, &heard);
        let (outcome, heard) = parsed(body.chunks(1));
        check(name, expected, &outcome, &heard);
        // All pairs of a long recording would take minutes; its single bytes are above.
        let stride = if body.len() > 4096 { 61 } else { 1 };
        for at in (0..=body.len()).step_by(stride) {
            let (head, tail) = body.split_at(at);
            let (outcome, heard) = parsed([head, tail].into_iter());
            check(name, expected, &outcome, &heard);
        }
    }
}

#[test]
fn an_answer_that_is_not_streamed_is_replayed() {
    let body = br#" {"choices":[{"message":{"role":"assistant","reasoning":"hm","content":"hi",
        "tool_calls":[{"id":"c","function":{"name":"x","arguments":{"a":1}}}]},"finish_reason":"tool_calls"}],
        "usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
    let (outcome, heard) = parsed(body.chunks(7));
    check("json", &Answer(Complete, "hi", "hm", &[("x", "{\"a\":1}")], (3, 4, 0)), &outcome, &heard);
    assert_eq!(heard.len(), 3);
}

#[test]
fn an_error_inside_of_a_200_is_an_error() {
    let (outcome, _) = parsed(std::iter::once(&br#"{"error":{"message":"no","code":429}}"#[..]));
    let text = "p stream error: no";
    check("json", &Error(ErrorCode::ProviderRateLimited, true, text, None), &outcome, &[]);
}

#[test]
fn a_body_of_blanks_or_of_html_is_no_answer() {
    let (outcome, _) = parsed(std::iter::once(&b" \r\n\r\n"[..]));
    let empty = "p stream error: the body is empty";
    check("blank", &Error(ErrorCode::ProviderUnavailable, true, empty, None), &outcome, &[]);
    let (outcome, _) = parsed(std::iter::once(&b"<html>hello</html>"[..]));
    let page = "p stream error: the address answers with a web page and not as a model does; check the base \
        URL, which usually ends in /v1";
    check("html", &Error(ErrorCode::ProviderRejected, false, page, None), &outcome, &[]);
    let (outcome, _) = parsed(b"It works!\nReally.".chunks(1));
    let other = "p stream error: the answer is neither a stream nor JSON; check the base URL, which usually \
        ends in /v1: It works!";
    check("text", &Error(ErrorCode::ProviderRejected, false, other, None), &outcome, &[]);
}
