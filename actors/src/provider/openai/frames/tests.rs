use super::*;

fn run(payloads: &[&str]) -> (Result<Reply, Fault>, Vec<Chunk>) {
    run_as(false, payloads)
}

fn run_as(deep_seek: bool, payloads: &[&str]) -> (Result<Reply, Fault>, Vec<Chunk>) {
    let (mut assembler, mut heard) = (Assembler::new(deep_seek), Vec::new());
    let mut hear = |chunk| heard.push(chunk);
    let fed = payloads.iter().try_for_each(|payload| assembler.payload(payload, &mut hear));
    let outcome = fed.and_then(|()| assembler.finish());
    (outcome, heard)
}

const STOP: &str = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

#[test]
fn frames_that_are_no_objects_are_skipped() {
    let (outcome, heard) = run(&["ping", "3", "[1]", "\"x\"", &delta(r#"{"content":"a"}"#), STOP]);
    assert_eq!((outcome.unwrap().text.as_str(), heard.len()), ("a", 1));
}

#[test]
fn nothing_counts_after_the_end_mark() {
    let late = delta(r#"{"content":"late"}"#);
    let (outcome, _) = run(&[&delta(r#"{"content":"a"}"#), STOP, "[DONE]", &late, "{broken"]);
    assert_eq!(outcome.unwrap().text, "a");
}

#[test]
fn an_end_mark_alone_is_no_finish_reason() {
    let (outcome, _) = run(&[&delta(r#"{"content":"a"}"#), "[DONE]"]);
    assert_eq!(outcome.unwrap_err(), Fault::Unfinished);
}

#[test]
fn half_a_call_is_an_error_and_a_capped_one_is_kept() {
    let call = delta(r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"x","arguments":"{\"p\""}}]}"#);
    assert_eq!(run(&[&call]).0.unwrap_err(), Fault::HalfCall);
    let capped = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
    let (outcome, heard) = run(&[&call, capped]);
    let reply = outcome.unwrap();
    assert_eq!((reply.finish, reply.calls.len()), (Finish::Capped, 1));
    assert_eq!(heard, [Chunk::CallStarted]);
}

#[test]
fn an_error_frame_is_an_error_wherever_it_comes() {
    let code = |error: &str| run(&[&delta(r#"{"content":"a"}"#), error]).0.unwrap_err().code();
    assert_eq!(
        code(r#"{"error":{"message":"m","code":"rate_limit_exceeded"}}"#),
        ErrorCode::ProviderRateLimited
    );
    assert_eq!(code(r#"{"error":{"message":"m","code":503}}"#), ErrorCode::ProviderUnavailable);
    assert_eq!(code(r#"{"error":{"message":"m","code":"401"}}"#), ErrorCode::ProviderAuth);
    assert_eq!(code(r#"{"error":"overloaded"}"#), ErrorCode::ProviderUnavailable);
    let long = r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"m"}}"#;
    assert_eq!(code(long), ErrorCode::ContextOverflow);
    assert!(run(&[&delta(r#"{"content":"a"}"#), r#"{"error":null}"#, STOP]).0.is_ok());
}

#[test]
fn reasons_to_end_are_told_apart() {
    let end = |reason: &str| {
        let frame = format!(r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"{reason}"}}]}}"#);
        run(&[&frame]).0.map(|reply| reply.finish)
    };
    for reason in ["length", "max_tokens", "incomplete", "MAX_TOKENS"] {
        assert_eq!(end(reason), Ok(Finish::Capped), "{reason}");
    }
    for reason in ["stop", "tool_calls", "eos", "content_filter"] {
        assert_eq!(end(reason), Ok(Finish::Complete), "{reason}");
    }
    for reason in ["error", "abort", "insufficient_system_resource"] {
        assert_eq!(end(reason), Err(Fault::Aborted(reason.to_owned())));
    }
    assert_eq!(end(""), Err(Fault::Unfinished));
}

#[test]
fn a_filter_takes_the_calls_with_it_and_an_empty_filtered_answer_is_refused() {
    let call = delta(r#"{"content":"a","tool_calls":[{"index":0,"function":{"name":"x"}}]}"#);
    let filtered = r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#;
    assert!(run(&[&call, filtered]).0.unwrap().calls.is_empty());
    assert_eq!(run(&[filtered]).0.unwrap_err(), Fault::Filtered);
}

#[test]
fn thinking_comes_under_two_names_and_in_parts() {
    let frames = [
        delta(r#"{"reasoning_content":"a"}"#),
        delta(r#"{"reasoning":"b","reasoning_content":null}"#),
        delta(r#"{"reasoning":"c","reasoning_content":"c"}"#),
        delta(
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"d"}]},{"type":"text","text":"e"}]}"#,
        ),
        STOP.to_owned(),
    ];
    let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
    let reply = run(&frames).0.unwrap();
    assert_eq!((reply.thinking.as_str(), reply.text.as_str()), ("abcd", "e"));
}

#[test]
fn a_character_that_the_server_cut_in_half_spoils_nothing_else() {
    let (outcome, _) = run(&[&delta(r#"{"content":"a\ud83d"}"#), &delta(r#"{"content":"\ude00b"}"#), STOP]);
    assert_eq!(outcome.unwrap().text, "a\u{fffd}\u{fffd}b");
}

#[test]
fn lines_without_blank_lines_between_them_are_frames() {
    let joined = format!("{}\n{}\n[DONE]", delta(r#"{"content":"a"}"#), STOP);
    assert_eq!(run(&[&joined]).0.unwrap().text, "a");
}

#[test]
fn an_empty_answer_is_one_but_not_for_optimised_deepseek() {
    assert_eq!(run(&[STOP]).0.unwrap().text, "");
    assert_eq!(run_as(true, &[STOP]).0.unwrap_err(), Fault::NoContent);
}

#[test]
fn figures_are_read_under_all_their_names() {
    let figures = |usage: &str, deep_seek| {
        let frame = format!(r#"{{"choices":[],"usage":{usage}}}"#);
        let reply = run_as(deep_seek, &[&delta(r#"{"content":"a"}"#), STOP, &frame]).0.unwrap();
        let usage = reply.usage;
        (usage.input_tokens, usage.total_input_tokens, usage.cached_input_tokens, usage.output_tokens)
    };
    let hit = r#"{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":4}"#;
    assert_eq!(figures(hit, false), (10, 10, 4, 2));
    assert_eq!(figures(hit, true), (6, 10, 4, 2));
    assert_eq!(figures(r#"{"prompt_tokens":10.0,"cached_tokens":3}"#, false), (10, 10, 3, 0));
    let details =
        r#"{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":5},"completion_tokens":null}"#;
    assert_eq!(figures(details, false), (9, 9, 5, 0));
    assert_eq!(figures("null", false), (0, 0, 0, 0));
}

#[test]
fn an_answer_without_end_is_refused_before_it_fills_the_memory() {
    let big = delta(&format!(r#"{{"content":"{}"}}"#, "x".repeat(1024 * 1024)));
    let (mut assembler, mut heard) = (Assembler::new(false), 0);
    let refused = (0..100).find_map(|_| assembler.payload(&big, &mut |_| heard += 1).err());
    assert_eq!(refused, Some(Fault::TooLong));
}
