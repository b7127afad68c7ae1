//! Messages that wait for a busy session.

use serde_json::{Value, json};

use crate::kit::desk::{in_session, said};
use crate::kit::events::data_of;
use crate::kit::{Desk, Gate, Reply};

#[test]
fn a_second_chat_waits_and_starts_when_the_first_has_ended() {
    let gate = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("one").gate(&gate).stop(), Reply::answer("two")]);
    let first = desk.chat("first");
    gate.reached();
    let second = desk.chat("second");
    let queued = desk.client.event(second, "status");
    assert_eq!((&queued["data"], &queued["details"]["position"]), (&json!("Queued"), &json!(1)));
    assert_eq!(desk.client.seen(second).len(), 1);
    gate.open();
    let (first, second) = (desk.client.stream_of(first), desk.client.stream_of(second));
    assert_eq!(first.last().unwrap()["data"], "one");
    assert_eq!((&second[1]["event"], &second[1]["details"]["kind"]), (&json!("workflow"), &json!("start")));
    assert_eq!(second.last().unwrap()["data"], "two");
    let expected = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")];
    assert_eq!(desk.history(), said(&expected));
}

#[test]
fn sixteen_messages_wait_and_the_next_is_refused() {
    let gate = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("one").gate(&gate).stop()]);
    for number in 2..=17 {
        desk.provider.then(Reply::answer(&format!("answer {number}")));
    }
    let mut ids = vec![desk.chat("1")];
    gate.reached();
    for position in 1..=16 {
        ids.push(desk.chat(&(position + 1).to_string()));
        let queued = desk.client.event(*ids.last().unwrap(), "status");
        assert_eq!(queued["details"]["position"], position);
    }
    let over = desk.chat("over");
    let refused = desk.client.terminal(over);
    let said = format!("Session {} is busy: 16 messages are already waiting", desk.session);
    assert_eq!((&refused["event"], &refused["data"]), (&json!("error"), &json!(said)));
    assert_eq!(
        (&refused["details"]["code"], &refused["sessionId"]),
        (&json!("queue_full"), &json!(desk.session))
    );
    gate.open();
    for id in ids {
        assert_eq!(desk.client.terminal(id)["event"], "done");
    }
    let users: Vec<String> =
        desk.history().into_iter().filter(|(role, _)| role == "user").map(|(_, text)| text).collect();
    assert_eq!(users, (1..=17).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_cancelled_waiting_message_leaves_no_trace() {
    let gate = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("one").gate(&gate).stop()]);
    let first = desk.chat("first");
    gate.reached();
    let second = desk.chat("second");
    desk.client.event(second, "status");
    let answer = desk.client.ok("agent.cancel", json!({ "requestId": second }));
    assert_eq!(answer, format!("cancellation requested for {second}"));
    let cancelled = desk.client.terminal(second);
    assert_eq!((&cancelled["event"], &cancelled["data"]), (&json!("cancelled"), &json!("")));
    gate.open();
    assert_eq!(desk.client.terminal(first)["data"], "one");
    assert_eq!(desk.history(), said(&[("user", "first"), ("assistant", "one")]));
}

#[test]
fn cancel_without_an_id_counts_waiting_messages_too() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("par").hang(&gone)]);
    let ids = [desk.chat("1"), desk.chat("2"), desk.chat("3")];
    desk.client.event(ids[0], "delta");
    desk.client.event(ids[2], "status");
    assert_eq!(desk.client.ok("agent.cancel", json!({})), "cancellation requested for 3 active turns");
    for id in ids {
        assert_eq!(desk.client.terminal(id)["event"], "cancelled");
    }
    gone.reached();
    assert_eq!(desk.client.ok("agent.cancel", json!({})), "no active turn");
}

#[test]
fn the_same_id_twice_runs_both_and_cancel_reaches_both() {
    let (one, two) = (Gate::new(), Gate::new());
    let mut desk = Desk::plain([Reply::silence(&one), Reply::silence(&two)]);
    let other = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
    for session in [&desk.session, &other] {
        let params = in_session(session, &desk.workspace, json!({"message": "go"}));
        desk.client.raw(format!("{}\n", json!({"id": 500, "method": "chat", "params": params})));
    }
    desk.provider.request(2);
    desk.client.ok("agent.cancel", json!({"requestId": 500}));
    one.reached();
    two.reached();
    let ended = || |line: &Value| line["id"] == 500 && line["event"] == "cancelled";
    for session in [desk.session.clone(), other] {
        desk.client.find("both ends", |line| ended()(line) && line["sessionId"] == *session);
    }
}

#[test]
fn the_session_takes_the_next_chat_as_soon_as_the_terminal_line_is_readable() {
    let mut desk = Desk::plain([]);
    for round in 0..15 {
        desk.provider.then(Reply::answer(&round.to_string()));
        let id = desk.chat(&format!("ask {round}"));
        let lines = desk.client.stream_of(id);
        assert!(data_of(&lines, "status").iter().all(|label| label != "Queued"), "{lines:?}");
        let history = desk.history();
        assert_eq!(history.len(), 2 * (round + 1));
        assert_eq!(history.last().unwrap().1, round.to_string());
    }
}

#[test]
fn chats_that_are_sent_in_one_piece_run_in_their_order() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(|request| Some(Reply::answer(&request.texts("user").pop()?)));
    let ids: Vec<i64> = (0..8).map(|number| desk.chat(&number.to_string())).collect();
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(desk.client.terminal(id)["data"], number.to_string());
    }
    let users = desk.history().into_iter().filter(|(role, _)| role == "user");
    let expected: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    assert_eq!(users.map(|(_, text)| text).collect::<Vec<_>>(), expected);
}

#[test]
fn changes_of_one_thing_apply_in_the_order_in_which_they_were_sent() {
    let mut desk = Desk::plain([]);
    let ids: Vec<i64> = (0..40)
        .map(|number| {
            let params =
                json!({"id": desk.session, "workspace": desk.workspace, "title": format!("title {number}")});
            desk.client.send("session.update", params)
        })
        .collect();
    for id in ids {
        assert_eq!(desk.client.terminal(id)["event"], "result");
    }
    assert_eq!(desk.get()["title"], "title 39");
}
