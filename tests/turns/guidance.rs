//! Guidance in every phase: accepted once, used once.

use std::fs;

use serde_json::json;

use crate::kit::desk::said;
use crate::kit::events::{data_of, text};
use crate::kit::files::Effects;
use crate::kit::{Desk, Gate, Reply};

/// Expects that `guidance` was accepted: once in the history, once on the wire, once with the model.
#[track_caller]
fn expect_applied_once(desk: &mut Desk, id: i64, guidance: &str) {
    let lines = desk.client.stream_of(id);
    assert_eq!(lines.last().unwrap()["event"], "done", "{lines:#?}");
    assert_eq!(data_of(&lines, "steer"), [guidance]);
    let history = desk.history();
    assert_eq!(history.iter().filter(|(_, text)| text == guidance).count(), 1, "{history:?}");
    let last = desk.provider.requests().pop().unwrap().texts("user");
    assert_eq!(last.iter().filter(|text| *text == guidance).count(), 1, "{last:?}");
}

#[test]
fn guidance_during_the_stream_makes_the_turn_go_on() {
    let gate = Gate::new();
    let mut desk = Desk::plain([
        Reply::stream().text("Half").gate(&gate).text(" done.").stop(),
        Reply::answer("All done."),
    ]);
    let id = desk.chat("do it");
    gate.reached();
    desk.steer_accepted("also the tests");
    gate.open();
    expect_applied_once(&mut desk, id, "also the tests");
    let expected = [
        ("user", "do it"),
        ("assistant", "Half done."),
        ("user", "also the tests"),
        ("assistant", "All done."),
    ];
    assert_eq!(desk.history(), said(&expected));
}

#[test]
fn guidance_before_the_first_byte_is_not_lost() {
    let gate = Gate::new();
    let mut desk = Desk::plain([Reply::answer("First.").held(&gate), Reply::answer("Second.")]);
    let id = desk.chat("do it");
    gate.reached();
    desk.steer_accepted("be brief");
    gate.open();
    expect_applied_once(&mut desk, id, "be brief");
}

#[test]
fn guidance_while_a_tool_runs_comes_after_the_results_of_the_step() {
    let mut desk = Desk::plain([]);
    let (effects, go) = (Effects::in_directory(&desk.workspace), desk.workspace.join("go"));
    desk.provider.then(
        Reply::stream()
            .tool("c1", "bash", effects.append_and_wait("x", &go))
            .tool("c2", "read_file", json!({"path": "effects.txt"}))
            .stop(),
    );
    desk.provider.then(Reply::answer("Yes."));
    let id = desk.chat("do it");
    effects.wait(1);
    desk.steer_accepted("hurry");
    fs::write(&go, "").unwrap();
    expect_applied_once(&mut desk, id, "hurry");
    let roles: Vec<String> = desk.history().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user", "assistant"]);
    assert_eq!(effects.lines(), ["x"]);
}

#[test]
fn guidance_for_a_waiting_message_is_part_of_its_turn() {
    let gate = Gate::new();
    let mut desk = Desk::plain([
        Reply::stream().text("one").gate(&gate).stop(),
        Reply::answer("two"),
        Reply::answer("three"),
    ]);
    let first = desk.chat("first");
    gate.reached();
    let second = desk.chat("second");
    desk.client.event(second, "status");
    let answer = desk.client.call("agent.steer", json!({"message": "more", "requestId": second}));
    assert_eq!(answer["data"], "guidance queued", "{answer}");
    gate.open();
    assert_eq!(desk.client.terminal(first)["data"], "one");
    let lines = desk.client.stream_of(second);
    assert_eq!(data_of(&lines, "steer"), ["more"]);
    assert_eq!(desk.history().iter().filter(|(_, text)| text == "more").count(), 1);
}

#[test]
fn guidance_between_two_attempts_is_not_lost() {
    let mut desk = Desk::plain([
        Reply::stream().text("lost").cut(),
        Reply::stream().text("lost").cut(),
        Reply::answer("Done."),
        Reply::answer("Done at last."),
    ]);
    let id = desk.chat("do it");
    // The second failure is followed by a wait of a second.
    desk.client.find("the second retry", |line| line["id"] == id && line["details"]["attempt"] == 2);
    desk.steer_accepted("patience");
    expect_applied_once(&mut desk, id, "patience");
}

#[test]
fn guidance_is_either_refused_or_exactly_once_in_the_history_however_close_the_end_is() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(|request| {
        let answer = format!("answer {}", request.messages().len());
        Some(Reply::stream().text("x").text(&answer).stop())
    });
    let mut accepted = Vec::new();
    for round in 0..12 {
        let id = desk.chat(&format!("round {round}"));
        desk.client.event(id, "delta");
        let mut pending = Vec::new();
        for number in 0..6 {
            let guidance = format!("guidance {round}.{number}");
            let params = json!({"message": guidance, "requestId": id});
            pending.push((desk.client.send("agent.steer", params), guidance));
        }
        for (steer, guidance) in pending {
            let answer = desk.client.terminal(steer);
            match text(&answer["data"]).as_str() {
                "guidance queued" => accepted.push(guidance),
                "The active turn is already finishing" | "No active turn found for this session" => {}
                other => panic!("{other}"),
            }
        }
        assert_eq!(desk.client.terminal(id)["event"], "done");
    }
    let history = desk.history();
    let guided: Vec<&String> =
        history.iter().map(|(_, text)| text).filter(|text| text.starts_with("guidance")).collect();
    assert_eq!(guided, accepted.iter().collect::<Vec<_>>());
    let shown: Vec<String> = data_of(&desk.client.lines, "steer");
    assert_eq!(shown, accepted);
}

#[test]
fn guidance_that_a_cancelled_turn_could_not_use_is_kept() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("Hal").hang(&gone)]);
    let id = desk.chat("do it");
    desk.client.event(id, "delta");
    desk.steer_accepted("wait");
    desk.client.ok("agent.cancel", json!({ "requestId": id }));
    let lines = desk.client.stream_of(id);
    assert_eq!(
        (&lines.last().unwrap()["event"], data_of(&lines, "steer")),
        (&json!("cancelled"), vec!["wait".to_owned()])
    );
    assert_eq!(desk.history(), said(&[("user", "do it"), ("assistant", "Hal"), ("user", "wait")]));
}

#[test]
fn the_queue_of_guidance_is_bounded() {
    let gate = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("a").gate(&gate).stop(), Reply::answer("b")]);
    let id = desk.chat("go");
    gate.reached();
    for number in 0..64 {
        desk.steer_accepted(&number.to_string());
    }
    let refused = desk.steer("one too many");
    assert_eq!(
        (&refused["event"], &refused["data"]),
        (&json!("error"), &json!("The guidance queue is full"))
    );
    assert_eq!(refused["details"]["code"], "queue_full");
    gate.open();
    assert_eq!(data_of(&desk.client.stream_of(id), "steer").len(), 64);
}

#[test]
fn guidance_and_cancel_reach_a_turn_from_another_connection_after_a_hello() {
    let gate = Gate::new();
    let gone = Gate::new();
    let mut desk =
        Desk::plain([Reply::stream().text("a").gate(&gate).stop(), Reply::stream().text("b").hang(&gone)]);
    let id = desk.chat("go");
    gate.reached();
    let session = json!({"message": "from elsewhere", "sessionId": desk.session});
    let mut stranger = desk.daemon().connect();
    assert_eq!(stranger.error("agent.steer", session.clone()).0, "No active turn found for this session");
    assert_eq!(stranger.ok("agent.cancel", json!({})), "no active turn");
    let mut known = desk.daemon().hello("other");
    let accepted = known.call("agent.steer", session);
    assert_eq!(accepted["data"], "guidance queued", "{accepted}");
    gate.open();
    desk.client.event_saying(id, "delta", "b");
    known.ok("agent.cancel", json!({"sessionId": desk.session}));
    assert_eq!(desk.client.terminal(id)["event"], "cancelled");
}
