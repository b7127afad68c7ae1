//! The life of a session.

use serde_json::{Value, json};

use crate::kit::desk::{history_of, said};
use crate::kit::events::{self, data_of, text};
use crate::kit::{Desk, Gate, Reply};

#[test]
fn a_session_lives_from_new_to_delete() {
    let mut desk = Desk::plain([Reply::answer("Hello.")]);
    let id = desk.client.ok(
        "session.new",
        json!({"workspace": desk.workspace, "reasoningLevel": "XHigh", "networkEnabled": false}),
    );
    assert_eq!(id.len(), "20260731-120000-a1b2c3".len());
    let with = |more: Value| {
        let mut params = more.as_object().unwrap().clone();
        params.insert("id".to_owned(), json!(id));
        params.insert("workspace".to_owned(), json!(desk.workspace));
        Value::Object(params)
    };
    let made = desk.client.json("session.get", with(json!({})));
    assert_eq!((&made["reasoningLevel"], &made["networkEnabled"]), (&json!("xhigh"), &json!(false)));
    assert_eq!(
        (&made["title"], &made["messages"], &made["archived"]),
        (&Value::Null, &json!([]), &json!(false))
    );
    assert_eq!(made["workspace"], json!(desk.workspace));
    let updated =
        desk.client.json("session.update", with(json!({"title": "  My title ", "reasoningLevel": "ultra"})));
    assert_eq!((&updated["title"], &updated["reasoningLevel"]), (&json!("My title"), &json!("ultra")));
    assert!(updated.get("messages").is_none() && text(&updated["updatedAt"]) > text(&made["updatedAt"]));
    let cleared = desk.client.json("session.update", with(json!({"title": " ", "networkEnabled": null})));
    assert_eq!((cleared.get("title"), &cleared["networkEnabled"]), (None, &json!(true)));
    let list = |desk: &mut Desk, archived: bool| -> Vec<String> {
        let params = json!({"workspace": desk.workspace, "includeArchived": archived});
        let listed = desk.client.json("session.list", params);
        listed.as_array().unwrap().iter().map(|session| text(&session["id"])).collect()
    };
    let params = with(json!({}));
    assert_eq!(desk.client.json("session.archive", params.clone())["archived"], true);
    let first = desk.session.clone();
    assert_eq!(list(&mut desk, false), std::slice::from_ref(&first));
    assert_eq!(list(&mut desk, true), [id.clone(), first.clone()]);
    let mut back = params.clone();
    back["archived"] = json!(false);
    desk.client.ok("session.archive", back);
    desk.turn("hi");
    assert_eq!(list(&mut desk, false), [first.clone(), id.clone()]);
    assert_eq!(desk.client.ok("session.delete", params.clone()), id);
    assert_eq!(desk.client.error("session.get", params).0, format!("Session not found: {id}"));
    assert_eq!(list(&mut desk, true), [first]);
}

#[test]
fn the_first_message_names_the_session_once() {
    let mut desk = Desk::plain([Reply::answer("a"), Reply::answer("b")]);
    desk.turn(&"ü".repeat(50));
    assert_eq!(desk.get()["title"], format!("{}…", "ü".repeat(42)));
    desk.turn("another");
    assert_eq!(desk.get()["title"], format!("{}…", "ü".repeat(42)));
}

#[test]
fn a_chat_without_a_session_goes_to_the_bound_or_newest_or_a_new_one() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(|_| Some(Reply::answer("ok")));
    let session_of = |client: &mut crate::kit::Client, params: Value| {
        let id = client.send("chat", params);
        text(&client.terminal(id)["sessionId"])
    };
    let here = json!({"message": "a", "workspace": desk.workspace});
    let older = desk.session.clone();
    let newer = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
    assert_eq!(session_of(&mut desk.client, here.clone()), newer);
    desk.client.ok("session.resume", json!({"id": older, "workspace": desk.workspace}));
    assert_eq!(session_of(&mut desk.client, here.clone()), older);
    let mut other = desk.daemon().connect();
    assert_eq!(session_of(&mut other, here.clone()), older);
    let global = session_of(&mut other, json!({"message": "a", "global": true}));
    assert!(global != older && global != newer);
    assert_eq!(session_of(&mut other, json!({"message": "b", "global": true})), global);
    let empty = desk.home.workspace("empty");
    let fresh = session_of(&mut other, json!({"message": "a", "workspace": empty}));
    assert!(![&older, &newer, &global].contains(&&fresh));
}

#[test]
fn global_sessions_have_no_workspace_and_a_folder_of_their_own() {
    let mut desk = Desk::plain([
        Reply::stream()
            .tool("c1", "write_file", json!({"path": "note.txt", "content": "x"}))
            .tool("c2", "write_file", json!({"path": desk_path(), "content": "x"}))
            .stop(),
        Reply::answer("ok"),
    ]);
    let session = desk.client.ok("session.new", json!({"global": true}));
    let id = desk.client.send("chat", json!({"message": "go", "global": true, "sessionId": session}));
    let lines = desk.client.stream_of(id);
    let successes: Vec<&Value> =
        events::of(&lines, "tool_done").iter().map(|line| &line["details"]["success"]).collect();
    assert_eq!(successes, [&json!(true), &json!(false)]);
    assert!(desk.home.state().join("scratch").join(&session).join("note.txt").exists());
    let got = desk.client.json("session.get", json!({"id": session, "global": true}));
    assert_eq!(got["workspace"], Value::Null);
    let listed = desk.client.json("session.list", json!({ "workspace": desk.workspace }));
    assert!(!listed.as_array().unwrap().iter().any(|entry| entry["id"] == *session));
    let elsewhere = json!({"id": session, "workspace": desk.workspace});
    assert_eq!(desk.client.error("session.get", elsewhere).0, format!("Session not found: {session}"));
}

/// A place that no global session may write to.
fn desk_path() -> &'static str {
    "../../outside-of-the-scratch-folder.txt"
}

#[test]
fn counters_add_up_over_the_turns_of_a_session() {
    let mut desk = Desk::plain([
        Reply::stream().tool("c1", "list_dir", json!({})).finish_costing("tool_calls", 100, 10),
        Reply::stream().text("a").finish_costing("stop", 120, 5),
        Reply::stream().text("b").finish_costing("stop", 130, 7),
    ]);
    let lines = desk.turn("one");
    let steps: Vec<u64> =
        events::of(&lines, "workflow").iter().map(|line| line["details"]["step"].as_u64().unwrap()).collect();
    assert!(steps.is_sorted() && steps.last() == Some(&2), "{steps:?}");
    let after_one = desk.get();
    assert_eq!((&after_one["llmRounds"], &after_one["executionSteps"]), (&json!(2), &json!(2)));
    assert_eq!((&after_one["inputTokens"], &after_one["outputTokens"]), (&json!(220), &json!(15)));
    desk.turn("two");
    let after_two = desk.get();
    assert_eq!((&after_two["llmRounds"], &after_two["executionSteps"]), (&json!(3), &json!(3)));
    assert_eq!((&after_two["inputTokens"], &after_two["outputTokens"]), (&json!(350), &json!(22)));
    assert_eq!(after_two["totalInputTokens"], 350);
}

#[test]
fn truncate_counts_stored_messages_and_what_is_cut_is_gone_for_the_model() {
    let mut desk =
        Desk::plain([Reply::call("c1", "list_dir", json!({})), Reply::answer("a"), Reply::answer("b")]);
    desk.turn("one");
    let before = desk.get()["updatedAt"].clone();
    let truncate = |desk: &mut Desk, keep: u64| {
        let params = json!({"id": desk.session, "workspace": desk.workspace, "keepCount": keep});
        desk.client.ok("session.truncate", params)
    };
    assert_eq!(truncate(&mut desk, 99), "4");
    assert_eq!(truncate(&mut desk, 1), "1");
    assert_eq!((desk.history().len(), &desk.get()["updatedAt"]), (1, &before));
    desk.turn("two");
    assert_eq!(desk.provider.request(3).outline(), said(&[("user", "one"), ("user", "two")]));
    assert_eq!(truncate(&mut desk, 0), "0");
    assert_eq!(desk.history(), []);
}

#[test]
fn images_reach_the_model_and_come_back_unchanged() {
    let mut desk = Desk::plain([Reply::answer("A picture.")]);
    let image = json!({"id": "i1", "name": "C:\\pics\\a.png", "mediaType": "IMAGE/PNG", "data": "aGVsbG8=", "sizeBytes": 5});
    let second = json!({"name": "b.webp", "mediaType": "image/webp", "data": "d29ybGQ="});
    let params = desk.with(json!({"message": "", "images": [image, second]}));
    let id = desk.client.send("chat", params);
    let lines = desk.client.stream_of(id);
    assert_eq!(data_of(&lines, "image_view"), ["a.png", "b.webp"]);
    let stored = desk.get()["messages"].clone();
    let images = &stored[0]["images"];
    assert_eq!(
        images[0],
        json!({"id": "i1", "name": "a.png", "mediaType": "image/png", "data": "aGVsbG8=", "sizeBytes": 5})
    );
    assert_eq!(text(&images[1]["id"]).len(), 32);
    assert_eq!(images[1]["data"], "d29ybGQ=");
    assert_eq!(stored[1]["viewedImages"][0], json!({"id": "i1", "name": "a.png"}));
    let sent = desk.provider.request(1);
    assert_eq!(sent.body["stream"], false);
    let parts = sent.messages().pop().unwrap()["content"].clone();
    let urls: Vec<String> = parts
        .as_array()
        .unwrap()
        .iter()
        .map(|part| text(&part["image_url"]["url"]))
        .filter(|url| !url.is_empty())
        .collect();
    assert_eq!(urls, ["data:image/png;base64,aGVsbG8=", "data:image/webp;base64,d29ybGQ="]);
}

#[test]
fn a_level_given_with_a_chat_is_stored_with_the_session() {
    let mut desk = Desk::plain([Reply::answer("ok")]);
    let params = desk.with(json!({"message": "go", "reasoningLevel": "Low"}));
    let id = desk.client.send("chat", params);
    desk.client.terminal(id);
    assert_eq!(desk.get()["reasoningLevel"], "low");
    assert_eq!(desk.provider.request(1).body["reasoning_effort"], "low");
}

#[test]
fn deleting_a_busy_session_ends_its_turn_first() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("Half").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    let params = json!({"id": desk.session, "workspace": desk.workspace});
    assert_eq!(desk.client.ok("session.delete", params.clone()), desk.session);
    assert_eq!(desk.client.terminal(id)["event"], "cancelled");
    gone.reached();
    assert_eq!(desk.client.error("session.get", params).1, "not_found");
}

#[test]
fn shutdown_ends_every_turn_tells_everybody_and_leaves_no_socket() {
    let gone = Gate::new();
    let mut desk = Desk::resident([Reply::stream().text("Half").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    let mut other = desk.daemon().connect();
    assert_eq!(other.call("shutdown", json!({}))["event"], "bye");
    assert_eq!(desk.client.terminal(id)["event"], "cancelled");
    assert!(desk.daemon.as_mut().unwrap().wait().success());
    assert!(!desk.home.socket().exists());
    desk.start();
    assert_eq!(desk.history(), said(&[("user", "go"), ("assistant", "Half")]));
}

#[test]
fn a_running_chat_does_not_block_other_requests_of_its_connection() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("a").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    let other = desk.home.workspace("other");
    assert_eq!(desk.client.json("workspace.open", json!({ "path": other }))["name"], "other");
    let open = desk.get();
    assert_eq!(history_of(&open)[0], said(&[("user", "go")])[0]);
    desk.client.ok("agent.cancel", json!({ "requestId": id }));
    assert_eq!(desk.client.terminal(id)["event"], "cancelled");
}
