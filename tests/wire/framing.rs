//! Bytes that are no request, and bytes that just are one.

use serde_json::{Value, json};

use crate::kit::{Client, Daemon, Home};

/// Sends one line and returns the one that answers it.
fn answer_to(client: &mut Client, line: impl AsRef<[u8]>) -> Value {
    client.raw(line);
    client.raw("\n");
    client.next().expect("the daemon hung up")
}

#[test]
fn framing_errors_have_their_text_and_id_and_leave_the_connection_open() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let types = "Request id and method have invalid types";
    for (line, id, said, code) in [
        ("nonsense", 0, "Invalid JSON request", "invalid_json"),
        ("{\"id\":1,\"method\":\"ping\"", 0, "Invalid JSON request", "invalid_json"),
        ("{\"id\":1,\"method\":\"ping\"} x", 0, "Invalid JSON request", "invalid_json"),
        ("[1]", 0, "Invalid JSON request", "invalid_json"),
        ("\"text\"", 0, "Invalid JSON request", "invalid_json"),
        ("7", 0, "Invalid JSON request", "invalid_json"),
        ("null", 0, "Invalid JSON request", "invalid_json"),
        (r#"{"id":1,"method":"\ud800"}"#, 0, "Invalid JSON request", "invalid_json"),
        (r#"{"id":"1","method":"ping"}"#, 0, types, "invalid_request"),
        (r#"{"id":1.5,"method":"ping"}"#, 0, types, "invalid_request"),
        (r#"{"id":1.0,"method":"ping"}"#, 0, types, "invalid_request"),
        (r#"{"id":true,"method":"ping"}"#, 0, types, "invalid_request"),
        (r#"{"id":{},"method":"ping"}"#, 0, types, "invalid_request"),
        (r#"{"id":9223372036854775808,"method":"ping"}"#, 0, types, "invalid_request"),
        (r#"{"id":3,"method":7}"#, 0, types, "invalid_request"),
        (r#"{"id":3,"method":["ping"]}"#, 0, types, "invalid_request"),
        (r#"{"id":4,"method":"Ping"}"#, 4, "Unknown method: Ping", "unknown_method"),
        (r#"{"id":4,"method":""}"#, 4, "Unknown method: ", "unknown_method"),
        (r#"{"id":4,"method":null}"#, 4, "Unknown method: ", "unknown_method"),
        (r#"{"id":4}"#, 4, "Unknown method: ", "unknown_method"),
        ("{}", 0, "Unknown method: ", "unknown_method"),
        (r#"{"id":8,"id":9,"method":"ping"}"#, 8, "Invalid request: duplicate key id", "invalid_request"),
        (
            r#"{"method":"ping","method":"ping"}"#,
            0,
            "Invalid request: duplicate key method",
            "invalid_request",
        ),
        (
            r#"{"id":8,"method":"chat","params":{"message":"a","x":{"k":1,"k":2}}}"#,
            8,
            "Invalid request: duplicate key k",
            "invalid_request",
        ),
        (
            r#"{"id":5,"method":"session.delete","params":[]}"#,
            5,
            "Invalid request: params must be an object",
            "invalid_request",
        ),
    ] {
        let answer = answer_to(&mut client, line);
        assert_eq!(answer["event"], "error", "{line}: {answer}");
        assert_eq!((&answer["id"], &answer["data"]), (&json!(id), &json!(said)), "{line}");
        assert_eq!(answer["details"]["code"], code, "{line}");
        assert!(answer["details"]["retryable"].is_boolean() && answer.get("sessionId").is_none(), "{line}");
    }
    assert_eq!(client.call("ping", json!({}))["event"], "pong");
}

#[test]
fn ids_are_echoed_over_the_whole_range_of_int64() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    for id in [i64::MIN, -1, 0, 1, i64::MAX] {
        assert_eq!(answer_to(&mut client, format!(r#"{{"id":{id},"method":"ping"}}"#))["id"], json!(id));
    }
    assert_eq!(answer_to(&mut client, r#"{"id":null,"method":"ping"}"#)["id"], 0);
    assert_eq!(answer_to(&mut client, r#"{"method":"ping","more":[1]}"#)["id"], 0);
}

#[test]
fn marks_blank_lines_and_carriage_returns_are_tolerated() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    client.raw(b"\xEF\xBB\xBF{\"id\":1,\"method\":\"ping\"}\r\n\n  \t\r\n{\"id\":2,\r\"method\":\"ping\"}\n");
    assert_eq!(client.next().unwrap()["id"], 1);
    assert_eq!(client.next().unwrap()["id"], 2);
    // A mark anywhere else is no JSON.
    assert_eq!(
        answer_to(&mut client, b"\xEF\xBB\xBF{\"id\":3,\"method\":\"ping\"}")["data"],
        "Invalid JSON request"
    );
}

#[test]
fn invalid_utf8_is_replaced_and_a_last_line_needs_no_end() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let answer = answer_to(&mut client, b"{\"id\":1,\"method\":\"p\xFFng\"}");
    assert_eq!(answer["data"], "Unknown method: p\u{FFFD}ng");
    client.raw("{\"id\":2,\"method\":\"ping\"}");
    client.finish_sending();
    assert_eq!(client.next().unwrap(), json!({"id": 2, "event": "pong", "data": ""}));
    assert_eq!(client.next(), None);
}

#[test]
fn a_request_may_arrive_byte_by_byte_and_many_in_one_piece() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    for byte in "{\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"ü\"}}\n".bytes() {
        client.raw([byte]);
    }
    assert_eq!(client.next().unwrap()["id"], 1);
    let many: String = (2..500).map(|id| format!("{{\"id\":{id},\"method\":\"ping\"}}\n")).collect();
    client.raw(many);
    for id in 2..500 {
        assert_eq!(client.next().unwrap()["id"], id);
    }
}

#[test]
fn a_line_of_64_mib_is_read_and_a_longer_one_ends_the_connection() {
    const CAP: usize = 64 * 1024 * 1024;
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let (head, tail) = ("{\"id\":7,\"method\":\"ping\",\"params\":{\"x\":\"", "\"}}");
    let mut line = head.to_owned();
    line.push_str(&"a".repeat(CAP - head.len() - tail.len()));
    line.push_str(tail);
    assert_eq!(line.len(), CAP);
    assert_eq!(answer_to(&mut client, &line)["id"], 7);

    line.push(' ');
    line.push('\n');
    // The daemon may hang up before everything is sent.
    drop(client.try_raw(line.as_bytes()));
    let answer = client.next().unwrap();
    assert_eq!((&answer["id"], &answer["event"]), (&json!(0), &json!("error")));
    assert_eq!(answer["details"]["code"], "line_too_long");
    assert_eq!(client.next(), None);
    assert_eq!(daemon.connect().call("ping", json!({}))["event"], "pong");
}
