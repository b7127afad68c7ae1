use serde_json::json;

use super::*;

fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn an_answer_has_its_members_in_order_and_ends_with_a_line_feed() {
    assert_eq!(text(&answer(-3, "pong", "")), "{\"id\":-3,\"event\":\"pong\",\"data\":\"\"}\n");
    assert_eq!(
        text(&answer_in_session(1, "result", "guidance queued", "s")),
        "{\"id\":1,\"event\":\"result\",\"data\":\"guidance queued\",\"sessionId\":\"s\"}\n"
    );
}

#[test]
fn data_is_one_line_whatever_it_holds() {
    let line = answer(1, "result", "a\n\"b\"\u{2028}\u{0}é");
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    let parsed: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(parsed["data"], "a\n\"b\"\u{2028}\u{0}é");
}

#[test]
fn a_json_result_is_a_document_inside_a_string() {
    let line = json_result(4, &json!(["p/m"]));
    assert_eq!(text(&line), "{\"id\":4,\"event\":\"result\",\"data\":\"[\\\"p/m\\\"]\"}\n");
}

#[test]
fn an_error_has_its_code_and_names_a_session_only_if_told_to() {
    let refused = WireError::new(ErrorCode::InvalidParams, "params.path is required");
    assert_eq!(
        text(&error(9, &refused, None)),
        "{\"id\":9,\"event\":\"error\",\"data\":\"params.path is required\",\
         \"details\":{\"code\":\"invalid_params\",\"retryable\":false}}\n"
    );
    let mut limited = WireError::new(ErrorCode::ProviderRateLimited, "slow down");
    limited.retry_after_ms = Some(1500);
    limited.context.insert("provider".to_owned(), json!("p"));
    assert_eq!(
        text(&error(9, &limited, Some("s"))),
        "{\"id\":9,\"event\":\"error\",\"data\":\"slow down\",\"sessionId\":\"s\",\"details\":\
         {\"code\":\"provider_rate_limited\",\"retryable\":true,\"retryAfterMs\":1500,\"provider\":\"p\"}}\n"
    );
}

#[test]
fn context_never_doubles_a_member_of_the_details() {
    let mut odd = WireError::new(ErrorCode::Internal, "x");
    odd.context.insert("code".to_owned(), json!("other"));
    let line = error(1, &odd, None);
    assert_eq!(text(&line).matches("\"code\"").count(), 1);
    assert!(text(&line).contains("\"code\":\"internal\""));
}

#[test]
fn a_line_over_the_cap_is_answered_under_id_zero() {
    assert_eq!(
        text(&error(0, &too_long(), None)),
        "{\"id\":0,\"event\":\"error\",\"data\":\"Request line exceeds the 64 MiB limit\",\
         \"details\":{\"code\":\"line_too_long\",\"retryable\":false}}\n"
    );
}

#[test]
fn the_schema_hash_is_stable() {
    assert_eq!(schema_hash(), schema_hash());
    assert!(schema_hash().bytes().all(|b| b.is_ascii_hexdigit()));
    // Update it together with the change of the table that it announces.
    assert_eq!(schema_hash(), "e6316b2f05d4b902");
}
