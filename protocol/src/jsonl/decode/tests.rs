use serde_json::json;

use super::*;

fn request_of(line: impl AsRef<[u8]>) -> Request {
    decode(line.as_ref(), false).unwrap().unwrap()
}

fn refused(line: impl AsRef<[u8]>) -> (RequestId, String) {
    let Refused { id, error } = decode(line.as_ref(), false).unwrap_err();
    (id, error.message)
}

const NOT_JSON: &str = "Invalid JSON request";
const WRONG_TYPES: &str = "Request id and method have invalid types";

#[test]
fn a_request_has_id_method_and_params_and_other_members_are_ignored() {
    let request =
        request_of(r#"{"x":[{"y":null}],"params":{"a":1},"method":"ping","id":-9223372036854775808}"#);
    assert_eq!(request.id, i64::MIN);
    assert_eq!(request.method, "ping");
    assert_eq!(request.params, Params::of(json!({"a": 1})));
}

#[test]
fn missing_and_null_members_have_defaults() {
    for line in ["{}", r#"{"id":null,"method":null,"params":null}"#] {
        let request = request_of(line);
        assert_eq!((request.id, request.method.as_str(), request.params), (0, "", Params::default()));
    }
}

#[test]
fn blank_lines_are_skipped() {
    for line in ["", "\r", " \t ", "\u{a0}"] {
        assert_eq!(decode(line.as_bytes(), false), Ok(None));
    }
    assert_eq!(decode(b"\xEF\xBB\xBF", true), Ok(None));
}

#[test]
fn a_byte_order_mark_is_tolerated_on_the_first_line_only() {
    let line = b"\xEF\xBB\xBF{\"id\":1,\"method\":\"ping\"}";
    assert_eq!(decode(line, true).unwrap().unwrap().id, 1);
    assert_eq!(refused(line), (0, NOT_JSON.to_owned()));
}

#[test]
fn carriage_returns_are_white_space() {
    assert_eq!(request_of("{\"id\":1,\r\"method\":\"ping\"}\r").id, 1);
}

#[test]
fn invalid_utf8_is_replaced() {
    assert_eq!(request_of(b"{\"id\":1,\"method\":\"a\xFFb\"}").method, "a\u{fffd}b");
}

#[test]
fn what_is_no_object_is_no_request() {
    for line in
        ["x", "[]", "[1", "1", "null", "true", r#""s""#, "{", r#"{"id":1,}"#, r#"{"id":1} {}"#, "{} x"]
    {
        assert_eq!(refused(line), (0, NOT_JSON.to_owned()), "{line}");
        assert_eq!(decode(line.as_bytes(), false).unwrap_err().error.code, ErrorCode::InvalidJson);
    }
}

#[test]
fn an_id_is_an_integer_of_64_bits() {
    assert_eq!(request_of(r#"{"id":9223372036854775807}"#).id, i64::MAX);
    for id in ["1.0", "1.5", "1e3", "9223372036854775808", r#""1""#, "true", "{}", "[]"] {
        assert_eq!(refused(format!(r#"{{"id":{id},"method":"ping"}}"#)), (0, WRONG_TYPES.to_owned()), "{id}");
    }
}

#[test]
fn a_method_is_a_string() {
    for method in ["1", "true", "[]", "{}"] {
        assert_eq!(refused(format!(r#"{{"id":5,"method":{method}}}"#)), (0, WRONG_TYPES.to_owned()));
    }
}

#[test]
fn duplicate_keys_are_refused_wherever_they_are() {
    for (line, id, name) in [
        (r#"{"id":1,"id":2}"#, 1, "id"),
        (r#"{"id":"x","id":3}"#, 3, "id"),
        (r#"{"method":"a","method":"b","id":7}"#, 7, "method"),
        (r#"{"id":4,"params":{"a":1,"a":1}}"#, 4, "a"),
        (r#"{"params":[{"deep":{"k":1,"\u006b":2}}]}"#, 0, "k"),
        (r#"{"id":1,"a":0,"a":{"b":1,"b":2}}"#, 1, "a"),
        (r#"{"params":{"id":8,"id":9}}"#, 0, "id"),
    ] {
        let text = format!("Invalid request: duplicate key {name}");
        assert_eq!(refused(line), (id, text), "{line}");
    }
    assert_eq!(refused(r#"{"id":1,"id":2"#), (0, NOT_JSON.to_owned()));
    assert_eq!(request_of(r#"{"a":{"k":1},"b":{"k":1}}"#).id, 0);
}

#[test]
fn lone_surrogates_are_no_json_and_pairs_are() {
    for text in [r"\ud83d", r"\ude00", r"\ude00\ud83d", r"\ud83dx"] {
        assert_eq!(refused(format!(r#"{{"id":1,"method":"{text}"}}"#)), (0, NOT_JSON.to_owned()), "{text}");
    }
    assert_eq!(request_of(r#"{"method":"\ud83d\ude00"}"#).method, "😀");
}

#[test]
fn params_that_are_no_object_count_as_empty_where_the_contract_says_so() {
    for method in ["chat", "agent.runTurn", "agent.steer", "session.new", "session.get", "shutdown", "nope"] {
        let request = request_of(format!(r#"{{"id":1,"method":"{method}","params":[1]}}"#));
        assert_eq!(request.params, Params::default(), "{method}");
    }
    for method in [
        "agent.cancel",
        "workspace.open",
        "agent.mode.switch",
        "model.switch",
        "session.archive",
        "session.delete",
        "session.resume",
    ] {
        let line = format!(r#"{{"id":6,"method":"{method}","params":"x"}}"#);
        assert_eq!(refused(line), (6, "Invalid request: params must be an object".to_owned()), "{method}");
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_stack_overflow() {
    for open in ["[", r#"{"a":"#] {
        let line = format!(r#"{{"id":1,"params":{}"#, open.repeat(100_000));
        assert_eq!(refused(line), (0, NOT_JSON.to_owned()));
    }
    let fine = format!(r#"{{"id":1,"params":{{"a":{}{}}}}}"#, "[".repeat(100), "]".repeat(100));
    assert_eq!(request_of(fine).id, 1);
}

#[test]
fn values_of_every_kind_arrive_unchanged() {
    let params = r#"{"a":[1,-2,1.5,18446744073709551615,true,false,null,"é\n",{"b":{}}]}"#;
    let request = request_of(format!(r#"{{"params":{params}}}"#));
    assert_eq!(request.params, Params(serde_json::from_str(params).unwrap()));
}
