//! The lines of a turn.

use std::fs;

use serde_json::{Value, json};

use crate::kit::events::text;
use crate::kit::{Daemon, Home, Provider, Reply};

/// The conversation of appendix A: look, edit, check, answer.
fn appendix_a() -> (Provider, Home, std::path::PathBuf) {
    let edit = r#"{"path":"a.txt","old_string":"foo","new_string":"bar"}"#;
    let provider = Provider::script([
        Reply::stream().thinking("Look at the file first.").raw_tool("call_0", "edit_file", edit).stop(),
        Reply::stream().text("Renamed foo ").text("to bar in a.txt.").finish_costing("stop", 950, 12),
    ]);
    let home = Home::with(&provider);
    let workspace = home.workspace_with("w", &json!({"verifyCommand": "grep -q bar a.txt"}));
    fs::write(workspace.join("a.txt"), "one foo\ntwo\n").unwrap();
    (provider, home, workspace)
}

/// Ids, times and durations of our machine and moment do not belong into a golden text.
fn normalised(lines: &[Value], session: &str) -> String {
    let normal = |line: &Value| {
        let mut line = line.clone();
        for (path, stand_in) in [
            ("/details/elapsedMs", json!("<ms>")),
            ("/details/durationMs", json!("<ms>")),
            ("/cursor/generation", json!("<generation>")),
            ("/ts", json!("<time>")),
            ("/turnId", json!("<turn>")),
        ] {
            if let Some(value) = line.pointer_mut(path) {
                *value = stand_in;
            }
        }
        line.to_string().replace(session, "<session>")
    };
    lines.iter().map(normal).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_turn_with_an_edit_and_a_check_sends_the_lines_of_appendix_a() {
    let (_provider, home, workspace) = appendix_a();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let session = client.ok("session.new", json!({"workspace": workspace, "reasoningLevel": "high"}));
    let chat = json!({"sessionId": session, "workspace": workspace, "message": "rename foo", "images": [], "reasoningLevel": "high"});
    let id = client.send("chat", chat);
    let lines = client.stream_of(id);
    insta::assert_snapshot!("appendix_a", normalised(&lines, &session));
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "one bar\ntwo\n");
}

#[test]
fn after_a_hello_the_lines_of_a_session_carry_rising_cursors() {
    let (_provider, home, workspace) = appendix_a();
    let daemon = Daemon::start(&home);
    let mut client = daemon.hello("golden");
    let session = client.ok("session.new", json!({ "workspace": workspace }));
    let id =
        client.send("chat", json!({"sessionId": session, "workspace": workspace, "message": "rename foo"}));
    let lines = client.stream_of(id);
    let mut before = 0;
    for line in &lines {
        let seq = line["cursor"]["seq"].as_u64().unwrap_or_else(|| panic!("no cursor: {line}"));
        assert!(seq > before, "{line}");
        before = seq;
        assert_eq!(line["cursor"]["generation"], lines[0]["cursor"]["generation"]);
        assert_eq!(line["turnId"], lines[0]["turnId"]);
        let time = text(&line["ts"]);
        assert!(time.len() >= 20 && (time.ends_with('Z') || time.ends_with("+00:00")), "{line}");
    }
    assert!(text(&lines[0]["turnId"]).len() > 3);
    assert!(client.call("ping", json!({})).get("cursor").is_none());
}

#[test]
fn lines_start_with_id_event_and_data_and_end_with_one_line_feed() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    client.raw("{\"id\":5,\"method\":\"ping\"}\n");
    assert_eq!(client.next_bytes(), b"{\"id\":5,\"event\":\"pong\",\"data\":\"\"}\n");
    client.raw("{\"id\":6,\"method\":\"nothing\"}\n");
    let line = String::from_utf8(client.next_bytes()).unwrap();
    assert!(line.starts_with("{\"id\":6,\"event\":\"error\",\"data\":\"Unknown method: nothing\""), "{line}");
}
