//! What survives: `kill -9` at every durable point, restarts, damaged or foreign files, many starters
//! (contract 4.5, 4.6, 11; extensions 6; rulings 10, 24, 31, 37).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

#[path = "kit/lib.rs"]
mod kit;

#[path = "durability/crash.rs"]
mod crash;
#[path = "durability/files.rs"]
mod files;
#[path = "durability/rest.rs"]
mod rest;
#[path = "durability/starting.rs"]
mod starting;
use kit::events::text;
use kit::{Desk, Reply, until};
use serde_json::json;

/// Waits until the last message of the session is an answer without calls.
#[track_caller]
fn wait_for_answer(desk: &mut Desk) -> Vec<(String, String)> {
    until("an answer", || {
        let session = desk.get();
        let last = session["messages"].as_array().unwrap().last().cloned().unwrap_or_default();
        last["role"] == "assistant" && last["toolCalls"] == json!([]) && !text(&last["text"]).is_empty()
    });
    desk.history()
}

/// Nothing of the session runs any more: a new chat starts at once and is answered.
#[track_caller]
fn expect_idle(desk: &mut Desk) {
    desk.provider.then(Reply::answer("Still here."));
    let lines = desk.turn("are you there?");
    assert_eq!(lines.last().unwrap()["data"], "Still here.", "{lines:?}");
    assert_eq!(desk.client.ok("agent.cancel", json!({"sessionId": desk.session})), "no active turn");
}

fn count(history: &[(String, String)], wanted: &str) -> usize {
    history.iter().filter(|(_, text)| text == wanted).count()
}
