//! Cancel in every phase: what streamed is kept, the session goes on.

use serde_json::{Value, json};

use crate::kit::desk::{in_session, said};
use crate::kit::events;
use crate::kit::files::Effects;
use crate::kit::{Daemon, Desk, Gate, Home, Provider, Reply, process, until};

/// Cancels the turn, and expects `cancelled` with `text` and a session that works on.
#[track_caller]
fn cancel(desk: &mut Desk, id: i64, text: &str) -> Vec<Value> {
    let answer = desk.client.ok("agent.cancel", json!({ "requestId": id }));
    assert_eq!(answer, format!("cancellation requested for {id}"));
    let lines = desk.client.stream_of(id);
    let [.., node, end] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&end["event"], &end["data"]), (&json!("cancelled"), &json!(text)));
    assert_eq!((&node["details"]["kind"], &node["details"]["label"]), (&json!("error"), &json!("已取消")));
    desk.provider.then(Reply::answer("next"));
    assert_eq!(desk.turn("again").last().unwrap()["data"], "next");
    lines
}

#[test]
fn cancel_while_connecting_drops_the_request() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::silence(&gone)]);
    let id = desk.chat("go");
    desk.provider.request(1);
    cancel(&mut desk, id, "");
    gone.reached();
    assert_eq!(desk.history(), said(&[("user", "go"), ("user", "again"), ("assistant", "next")]));
}

#[test]
fn cancel_while_streaming_keeps_the_partial_text() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().thinking("Hm.").text("Half an ").text("ans").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event_saying(id, "delta", "ans");
    cancel(&mut desk, id, "Half an ans");
    gone.reached();
    assert_eq!(desk.history()[1], said(&[("assistant", "Half an ans")])[0]);
    let partial = desk.get()["messages"][1].clone();
    assert_eq!((&partial["thinking"], &partial["modelRef"]), (&json!("Hm."), &json!("p/m")));
}

#[test]
fn cancel_while_only_thinking_keeps_the_thinking() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().thinking("Let me see.").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event(id, "thinking");
    cancel(&mut desk, id, "");
    assert_eq!(desk.get()["messages"][1]["thinking"], "Let me see.");
}

#[test]
fn cancel_while_a_command_runs_kills_all_it_started() {
    let mut desk = Desk::plain([]);
    let effects = Effects::in_directory(&desk.workspace);
    let mark = desk.workspace.join("marker").display().to_string();
    let command =
        format!("echo x >> effects.txt; (exec -a {mark} sleep 600) & exec -a {mark} sleep 600 | cat");
    desk.provider
        .then(Reply::stream().text("Running.").tool("c1", "bash", json!({"command": command})).stop());
    let id = desk.chat("go");
    effects.wait(1);
    until("the commands run", || process::with_command(&mark).len() >= 2);
    let lines = cancel(&mut desk, id, "Running.");
    until("the commands are gone", || process::with_command(&mark).is_empty());
    let done = events::of(&lines, "tool_done");
    assert_eq!(done.len(), 1);
    assert_eq!(done[0]["details"]["success"], false);
    let roles: Vec<String> = desk.history().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant"]);
}

#[test]
fn cancel_between_two_attempts_does_not_wait() {
    let mut desk = Desk::plain([Reply::stream().text("lost").cut(), Reply::stream().text("lost").cut()]);
    let id = desk.chat("go");
    desk.client.find("the second retry", |line| line["id"] == id && line["details"]["attempt"] == 2);
    cancel(&mut desk, id, "");
    assert_eq!(desk.history(), said(&[("user", "go"), ("user", "again"), ("assistant", "next")]));
}

#[test]
fn cancel_while_a_provider_is_waited_for_does_not_wait() {
    let mut desk = Desk::plain([Reply::refusal(429, "slow down").header("Retry-After", "50")]);
    let id = desk.chat("go");
    desk.client.find("the wait", |line| line["id"] == id && line["data"] == "Waiting 50.0 s");
    cancel(&mut desk, id, "");
}

#[test]
fn cancel_during_the_check_ends_the_check() {
    let provider = Provider::script([
        Reply::call("c1", "write_file", json!({"path": "a.txt", "content": "x"})),
        Reply::answer("Done."),
    ]);
    let home = Home::with(&provider);
    let mark = home.path().join("check").display().to_string();
    let workspace = home.workspace_with("w", &json!({"verifyCommand": format!("exec -a {mark} sleep 600")}));
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "go", "workspace": workspace}));
    client.event_saying(id, "status", "Verifying");
    until("the check runs", || !process::with_command(&mark).is_empty());
    client.ok("agent.cancel", json!({}));
    let end = client.terminal(id);
    assert_eq!((&end["event"], &end["data"]), (&json!("cancelled"), &json!("Done.")));
    until("the check is gone", || process::with_command(&mark).is_empty());
}

#[test]
fn cancel_right_behind_the_chat_reaches_it() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(|_| Some(Reply::answer("too late?")));
    for _ in 0..10 {
        let id = desk.chat("go");
        let answer = desk.client.ok("agent.cancel", json!({ "requestId": id }));
        assert_eq!(answer, format!("cancellation requested for {id}"));
        assert_eq!(desk.client.terminal(id)["event"], "cancelled");
    }
}

#[test]
fn two_sessions_of_one_connection_are_cancelled_one_by_one() {
    let (one, two) = (Gate::new(), Gate::new());
    let mut desk = Desk::plain([Reply::stream().text("a").hang(&one)]);
    let first = desk.chat("first");
    desk.client.event(first, "delta");
    desk.provider.then(Reply::stream().text("b").hang(&two));
    let other = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
    let params = in_session(&other, &desk.workspace, json!({"message": "second"}));
    let second = desk.client.send("chat", params);
    desk.client.event(second, "delta");
    desk.client.ok("agent.cancel", json!({ "requestId": first }));
    assert_eq!(desk.client.terminal(first)["data"], "a");
    // An answer of the same connection proves that the other turn had its chance to end, too.
    desk.client.call("ping", json!({}));
    assert!(!desk.client.seen(second).iter().any(events::is_terminal));
    desk.client.ok("agent.cancel", json!({ "requestId": second }));
    assert_eq!(desk.client.terminal(second)["data"], "b");
}
