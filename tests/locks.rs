//! Sessions that change the same files (contract 10; rulings 17, 19).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

#[path = "kit/lib.rs"]
mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use kit::desk::in_session;
use kit::events::{self, text};
use kit::http::Request;
use kit::{Client, Desk, Reply, until_some};
use serde_json::{Value, json};

/// The number in the first message: which session asks.
fn number(request: &Request) -> usize {
    request.texts("user")[0].parse().unwrap()
}

/// Starts a chat in a session of its own for each of `count` numbers.
fn start(desk: &mut Desk, count: usize) -> Vec<i64> {
    let mut ids = Vec::new();
    for number in 0..count {
        let session = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
        let params = in_session(&session, &desk.workspace, json!({"message": number.to_string()}));
        ids.push(desk.client.send("chat", params));
    }
    ids
}

#[track_caller]
fn all_succeed(client: &mut Client, id: i64) {
    let lines = client.stream_of(id);
    assert_eq!(lines.last().unwrap()["event"], "done");
    for done in events::of(&lines, "tool_done") {
        assert_eq!(done["details"]["success"], true, "{done}");
    }
}

#[test]
fn sessions_that_edit_one_file_lose_no_edit() {
    const SESSIONS: usize = 6;
    const EDITS: usize = 5;
    let mut desk = Desk::plain([]);
    let slots: Vec<String> = (0..SESSIONS * EDITS).map(|slot| format!("slot {slot} is open\n")).collect();
    fs::write(desk.workspace.join("shared.txt"), slots.concat()).unwrap();
    fs::create_dir(desk.workspace.join("real")).unwrap();
    std::os::unix::fs::symlink(&desk.workspace, desk.workspace.join("real/link")).unwrap();
    desk.provider.rule(|request| {
        let (session, done) = (number(request), request.texts("tool").len());
        if done == EDITS {
            return Some(Reply::answer("done"));
        }
        let slot = session * EDITS + done;
        // Half of them come by another way to the same file.
        let path = if session.is_multiple_of(2) { "shared.txt" } else { "real/link/shared.txt" };
        let (old, new) = (format!("slot {slot} is open\n"), format!("slot {slot} is taken by {session}\n"));
        let edit = json!({"path": path, "old_string": old, "new_string": new});
        Some(Reply::call(&format!("c{done}"), "edit_file", edit))
    });
    for id in start(&mut desk, SESSIONS) {
        all_succeed(&mut desk.client, id);
    }
    let text = fs::read_to_string(desk.workspace.join("shared.txt")).unwrap();
    let expected: Vec<String> =
        (0..SESSIONS * EDITS).map(|slot| format!("slot {slot} is taken by {}\n", slot / EDITS)).collect();
    assert_eq!(text, expected.concat());
    assert_eq!(desk.client.json("lock.list", json!({})), json!([]));
}

#[test]
fn a_held_lock_is_listed_with_its_owner() {
    const EDITS: usize = 40;
    let mut desk = Desk::plain([]);
    let file = desk.workspace.join("big.txt");
    let filler: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
    fs::write(&file, format!("0\n{filler}")).unwrap();
    desk.provider.rule(|request| {
        let done = request.texts("tool").len();
        if done == EDITS {
            return Some(Reply::answer("done"));
        }
        let (old, new) = (format!("{done}\nline 0\n"), format!("{}\nline 0\n", done + 1));
        Some(Reply::call(
            &format!("c{done}"),
            "edit_file",
            json!({"path": "big.txt", "old_string": old, "new_string": new}),
        ))
    });
    let id = desk.chat("0");
    let mut other = desk.daemon().connect();
    let held =
        until_some("a held lock", || other.json("lock.list", json!({})).as_array().unwrap().first().cloned());
    assert_eq!((&held["file"], &held["workspace"]), (&json!(file), &json!(desk.workspace)));
    let owner = text(&held["owner"]);
    let (session, turn) = owner.split_once('/').unwrap();
    assert_eq!(session, desk.session);
    assert!(turn.len() == 8 && turn.chars().all(|digit| digit.is_ascii_hexdigit()), "{owner}");
    assert!(text(&held["acquiredAt"]).starts_with("20"), "{held}");
    all_succeed(&mut desk.client, id);
    assert_eq!(desk.client.json("lock.list", json!({})), json!([]));
}

#[test]
fn a_file_that_changed_since_it_was_seen_is_not_overwritten_unseen() {
    let mut desk = Desk::plain([
        Reply::call("c1", "read_file", json!({"path": "a.txt"})),
        Reply::answer("Read."),
        Reply::call("c2", "write_file", json!({"path": "a.txt", "content": "mine\n"})),
        Reply::call("c3", "write_file", json!({"path": "a.txt", "content": "mine\n"})),
        Reply::answer("Written."),
    ]);
    let file = desk.workspace.join("a.txt");
    fs::write(&file, "old\n").unwrap();
    desk.turn("read it");
    fs::write(&file, "changed by a person\n").unwrap();
    let lines = desk.turn("write it");
    let outcomes: Vec<&Value> =
        events::of(&lines, "tool_done").iter().map(|line| &line["details"]["success"]).collect();
    assert_eq!(outcomes, [&json!(false), &json!(true)]);
    let refusal = desk.provider.request(4).texts("tool").pop().unwrap();
    assert!(refusal.contains("-changed by a person\n+mine"), "{refusal}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
}

#[test]
fn what_another_session_wrote_counts_as_a_change() {
    let mut desk = Desk::plain([
        Reply::call("c1", "read_file", json!({"path": "a.txt"})),
        Reply::answer("Read."),
        Reply::call("c2", "write_file", json!({"path": "a.txt", "content": "theirs\n"})),
        Reply::answer("Written."),
        Reply::call("c3", "write_file", json!({"path": "a.txt", "content": "mine\n"})),
        Reply::answer("Refused."),
    ]);
    let file = desk.workspace.join("a.txt");
    fs::write(&file, "old\n").unwrap();
    desk.turn("read it");
    let other = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
    let params = in_session(&other, &desk.workspace, json!({"message": "write it"}));
    let id = desk.client.send("chat", params);
    all_succeed(&mut desk.client, id);
    let lines = desk.turn("write it too");
    assert_eq!(events::of(&lines, "tool_done")[0]["details"]["success"], false);
    assert_eq!(fs::read_to_string(&file).unwrap(), "theirs\n");
}

#[test]
fn an_edit_keeps_mode_mark_and_line_ends_and_is_never_half_there() {
    let mut desk = Desk::plain([
        Reply::call(
            "c1",
            "edit_file",
            json!({"path": "a.sh", "old_string": "two\nthree", "new_string": "2\n3"}),
        ),
        Reply::answer("ok"),
    ]);
    let file = desk.workspace.join("a.sh");
    fs::write(&file, "\u{feff}one\r\ntwo\r\nthree\r\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    let id = desk.chat("go");
    all_succeed(&mut desk.client, id);
    assert_eq!(fs::read_to_string(&file).unwrap(), "\u{feff}one\r\n2\r\n3\r\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o751);
    let left: Vec<_> =
        fs::read_dir(&desk.workspace).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn an_edit_says_why_it_cannot_be_made() {
    let edit = |old: &str, new: &str| json!({"path": "a.txt", "old_string": old, "new_string": new});
    let mut desk = Desk::plain([
        Reply::stream()
            .tool("c1", "edit_file", edit("absent", "x"))
            .tool("c2", "edit_file", edit("twice", "x"))
            .tool("c3", "edit_file", edit("", "x"))
            .tool("c4", "edit_file", edit("once", "once"))
            .tool("c5", "edit_file", json!({"path": "none.txt", "old_string": "a", "new_string": "b"}))
            .tool(
                "c6",
                "edit_file",
                json!({"path": "a.txt", "old_string": "twice", "new_string": "2", "replace_all": true}),
            )
            .stop(),
        Reply::answer("ok"),
    ]);
    fs::write(desk.workspace.join("a.txt"), "once twice twice\n").unwrap();
    desk.turn("go");
    let results = desk.provider.request(2).texts("tool");
    assert!(results[0].contains("not found"), "{}", results[0]);
    assert!(results[1].contains('2'), "{}", results[1]);
    assert!(results[4].starts_with("File not found: "), "{}", results[4]);
    assert_eq!(results[5], "Replaced 2 occurrences in a.txt");
    assert_eq!(fs::read_to_string(desk.workspace.join("a.txt")).unwrap(), "once 2 2\n");
}
