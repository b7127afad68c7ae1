//! Commands: what they may do to the turn, and what is left of them afterwards.

use serde_json::{Value, json};

use crate::kit::events::{self, text};
use crate::kit::{Desk, Gate, Reply, process, until};

/// Runs one command in a turn; the line of its end and what the model got.
#[track_caller]
fn run(desk: &mut Desk, arguments: Value) -> (Value, String) {
    desk.provider.then(Reply::call("c1", "bash", arguments));
    desk.provider.then(Reply::answer("ok"));
    let lines = desk.turn("go");
    assert_eq!(lines.last().unwrap()["event"], "done");
    let told = desk.provider.requests().pop().unwrap().texts("tool").pop().unwrap();
    (events::of(&lines, "tool_done")[0].clone(), told)
}

#[test]
fn a_command_that_reads_input_gets_none_and_ends() {
    let mut desk = Desk::plain([]);
    let (done, told) = run(&mut desk, json!({"command": "cat; read line; echo \"got '$line'\""}));
    assert_eq!(done["details"]["success"], true);
    assert_eq!(told, "got ''");
}

#[test]
fn a_command_is_over_when_it_ends_even_if_a_child_keeps_its_output_open() {
    let mut desk = Desk::plain([]);
    let mark = desk.workspace.join("marker").display().to_string();
    let (done, told) =
        run(&mut desk, json!({"command": format!("(exec -a {mark} sleep 600) & echo started")}));
    assert_eq!(done["details"]["success"], true);
    assert!(told.starts_with("started"), "{told}");
    let left = process::with_command(&mark);
    assert_eq!(left.len(), 1);
    assert!(told.contains(&left[0].to_string()), "what is left is named: {told}");
}

#[test]
fn a_command_over_its_time_is_killed_with_all_it_started() {
    let mut desk = Desk::plain([]);
    let mark = desk.workspace.join("marker").display().to_string();
    let command = format!("echo before; (exec -a {mark} sleep 600) & exec -a {mark} sleep 600");
    let (done, told) = run(&mut desk, json!({"command": command, "timeout_seconds": 1}));
    assert_eq!(done["details"]["success"], false);
    assert!(told.starts_with("Command timed out after 1s: ") && told.contains("before"), "{told}");
    until("all are gone", || process::with_command(&mark).is_empty());
}

#[test]
fn endless_output_is_bounded_in_memory_and_says_exactly_what_is_missing() {
    let mut desk = Desk::plain([]);
    let pid = desk.daemon().pid();
    let before = process::rss_kib(pid);
    let (done, told) = run(&mut desk, json!({"command": "yes é | head -c 60000000; echo end"}));
    let grown = process::rss_kib(pid).saturating_sub(before);
    assert!(grown < 32 * 1024, "{grown} KiB more for 60 MB of output");
    assert!(told.len() < 200_000 && told.trim_end().ends_with("end"), "{}", told.len());
    let omitted = done["details"]["omittedBytes"].as_u64().unwrap();
    let kept = told.matches('é').count() as u64 * 3;
    assert!((60_000_000 - omitted).abs_diff(kept) < 64, "{omitted} + {kept}");
    assert!(told.contains(&omitted.to_string()), "the model is told, too");
}

#[test]
fn a_command_runs_in_the_workspace_without_the_daemons_own_variables() {
    let mut desk = Desk::plain([]);
    let (_, told) = run(&mut desk, json!({"command": "pwd; env | grep -c '^SEEKCLAW_LOG=' ; true"}));
    assert_eq!(told, format!("{}\n0", desk.workspace.display()));
    let inner = desk.workspace.join("inner");
    std::fs::create_dir(&inner).unwrap();
    let (_, told) = run(&mut desk, json!({"command": "pwd", "cwd": "inner"}));
    assert_eq!(text(&json!(told)), inner.display().to_string());
}

/// Starts a turn whose command left a process behind that has even left its group, and waits for it.
#[track_caller]
fn leave_something(desk: &mut Desk, after: Reply) -> (i64, String) {
    let mark = desk.workspace.join("left").display().to_string();
    let command = format!("setsid -f bash -c 'exec -a {mark} sleep 600'");
    desk.provider.then(Reply::stream().tool("c1", "bash", json!({ "command": command })).stop());
    desk.provider.then(after);
    let id = desk.chat("go");
    desk.client.event(id, "tool_done");
    until("it runs", || process::with_command(&mark).len() == 1);
    (id, mark)
}

#[test]
fn what_a_command_left_behind_ends_with_a_cancel_of_its_turn() {
    let gone = Gate::new();
    let mut desk = Desk::plain([]);
    let (id, mark) = leave_something(&mut desk, Reply::stream().text("a").hang(&gone));
    desk.client.event(id, "delta");
    assert_eq!(process::with_command(&mark).len(), 1);
    desk.client.ok("agent.cancel", json!({ "requestId": id }));
    assert_eq!(desk.client.terminal(id)["event"], "cancelled");
    until("it is gone", || process::with_command(&mark).is_empty());
}

#[test]
fn what_a_command_left_behind_lives_on_after_its_turn_and_ends_with_its_session() {
    let mut desk = Desk::plain([]);
    let (id, mark) = leave_something(&mut desk, Reply::answer("ok"));
    assert_eq!(desk.client.terminal(id)["event"], "done");
    desk.provider.then(Reply::answer("still here"));
    desk.turn("again");
    assert_eq!(process::with_command(&mark).len(), 1);
    desk.client.ok("session.delete", json!({"id": desk.session, "workspace": desk.workspace}));
    until("it is gone", || process::with_command(&mark).is_empty());
}

#[test]
fn what_a_command_left_behind_ends_with_the_daemon() {
    let mut desk = Desk::plain([]);
    let (id, mark) = leave_something(&mut desk, Reply::answer("ok"));
    desk.client.terminal(id);
    assert!(desk.daemon.take().unwrap().stop().success());
    until("it is gone", || process::with_command(&mark).is_empty());
}
