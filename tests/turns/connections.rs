//! Many sessions at once, and connections that come and go.

use std::fs;

use serde_json::json;

use crate::kit::desk::{in_session, said};
use crate::kit::events::{self, streamed};
use crate::kit::http::Request;
use crate::kit::{Desk, Gate, Reply, until};

/// Answers by what the conversation holds: a call first, then its result.
fn echo_rule(request: &Request) -> Option<Reply> {
    let name = request.texts("user").first()?.clone();
    Some(match request.texts("tool").len() {
        0 => Reply::stream()
            .text("Working. ")
            .tool("c1", "bash", json!({"command": format!("echo {name} >> {name}.txt")}))
            .tool("c2", "read_file", json!({"path": format!("{name}.txt")}))
            .stop(),
        _ => Reply::answer(&format!("Finished {name}.")),
    })
}

#[test]
fn twenty_sessions_on_two_connections_finish_undisturbed() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(echo_rule);
    let mut second = desk.daemon().connect();
    let mut running = Vec::new();
    for number in 0..20 {
        let client = if number % 2 == 0 { &mut desk.client } else { &mut second };
        let session = client.ok("session.new", json!({ "workspace": desk.workspace }));
        let params = in_session(&session, &desk.workspace, json!({"message": format!("s{number}")}));
        running.push((number, client.send("chat", params), session));
    }
    for (number, id, session) in running {
        let client = if number % 2 == 0 { &mut desk.client } else { &mut second };
        let lines = client.stream_of(id);
        assert_eq!(lines.last().unwrap()["data"], format!("Finished s{number}."));
        assert!(lines.iter().all(|line| line["sessionId"] == *session));
        assert!(events::of(&lines, "tool_done").iter().all(|line| line["details"]["success"] == true));
        let file = fs::read_to_string(desk.workspace.join(format!("s{number}.txt"))).unwrap();
        assert_eq!(file, format!("s{number}\n"));
    }
    assert_eq!(desk.client.json("lock.list", json!({})), json!([]));
}

#[test]
fn the_turns_of_a_plain_client_end_with_it_and_keep_what_streamed() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("Half an ans").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    let waiting = desk.chat("never");
    desk.client.event(waiting, "status");
    desk.client = desk.daemon().connect();
    gone.reached();
    until("the partial text", || desk.history().len() == 2);
    assert_eq!(desk.history(), said(&[("user", "go"), ("assistant", "Half an ans")]));
    desk.provider.then(Reply::answer("next"));
    assert_eq!(desk.turn("again").last().unwrap()["data"], "next");
}

#[test]
fn the_turns_of_a_client_that_said_hello_go_on_without_it() {
    let gate = Gate::new();
    let mut desk = Desk::resident([Reply::stream().text("one").gate(&gate).stop(), Reply::answer("two")]);
    desk.chat("first");
    gate.reached();
    let waiting = desk.chat("second");
    desk.client.event(waiting, "status");
    desk.client = desk.daemon().connect();
    // The old connection is closed before the turn may go on.
    desk.client.call("ping", json!({}));
    gate.open();
    until("both answers", || desk.history().len() == 4);
    let expected = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")];
    assert_eq!(desk.history(), said(&expected));
}

#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let mut desk = Desk::plain([]);
    let flood: String = "x".repeat(64 * 1024);
    desk.provider.rule(move |request| {
        let name = request.texts("user").pop().unwrap_or_default();
        let mut reply = Reply::stream();
        if name == "flood" {
            for _ in 0..100 {
                reply = reply.text(&flood);
            }
        }
        Some(reply.text("end").stop())
    });
    let session = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
    let params = in_session(&session, &desk.workspace, json!({"message": "flood"}));
    let flooded = desk.client.send("chat", params);
    let mut other = desk.daemon().connect();
    let params = desk.with(json!({"message": "quick"}));
    let id = other.send("chat", params);
    assert_eq!(other.terminal(id)["data"], "end");
    // The slow one gets everything once it reads.
    let lines = desk.client.stream_of(flooded);
    assert_eq!(streamed(&lines).len(), 100 * 64 * 1024 + 3);
}
