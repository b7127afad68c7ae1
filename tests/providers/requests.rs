//! What is asked, and answers that the output cap cut.

use serde_json::json;

use crate::kit::desk::said;
use crate::kit::events::{self, data_of};
use crate::kit::files::Effects;
use crate::kit::home::provider_config;
use crate::kit::{Daemon, Desk, Home, Provider, Reply};
use crate::last;

#[test]
fn a_request_says_what_the_dialect_wants_and_its_prefix_stays_the_same() {
    let mut desk = Desk::plain([Reply::call("c1", "list_dir", json!({})), Reply::answer("ok")]);
    std::fs::write(desk.workspace.join("AGENTS.md"), "Always whistle.").unwrap();
    last(&desk.turn("go"), "done");
    let (one, two) = (desk.provider.request(1), desk.provider.request(2));
    assert_eq!((one.method.as_str(), one.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!((&one.body["model"], &one.body["stream"]), (&json!("m"), &json!(true)));
    assert_eq!(one.body["stream_options"]["include_usage"], true);
    assert!(one.system().contains("Always whistle."));
    assert_eq!((one.system(), &one.body["tools"]), (two.system(), &two.body["tools"]));
    assert!(one.tools().is_sorted());
    assert_eq!(one.tools(), ["bash", "edit_file", "glob", "grep", "list_dir", "read_file", "write_file"]);
    assert_eq!(two.messages()[..1], one.messages());
}

#[test]
fn a_capped_answer_is_continued() {
    let mut desk =
        Desk::plain([Reply::stream().text("First half, ").finish("length"), Reply::answer("second half.")]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "second half.");
    assert!(data_of(&lines, "status").contains(&"Output truncated; continuing".to_owned()));
    assert!(data_of(&lines, "workflow").contains(&"续写".to_owned()));
    let expected = [("user", "go"), ("assistant", "First half, "), ("assistant", "second half.")];
    assert_eq!(desk.history(), said(&expected));
}

#[test]
fn an_answer_capped_before_its_first_word_is_asked_for_with_a_note() {
    let mut desk =
        Desk::plain([Reply::stream().thinking("Long thoughts").finish("length"), Reply::answer("There.")]);
    last(&desk.turn("go"), "done");
    let notes: Vec<(String, String)> =
        desk.history().into_iter().filter(|(_, text)| text.starts_with(">>> [output truncated]")).collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].0, "user");
}

#[test]
fn a_capped_answer_runs_none_of_its_calls() {
    let mut desk = Desk::plain([]);
    let effects = Effects::in_directory(&desk.workspace);
    desk.provider.then(Reply::stream().text("Now ").tool("c1", "bash", effects.append("x")).finish("length"));
    desk.provider.then(Reply::answer("Stopped."));
    last(&desk.turn("go"), "done");
    assert_eq!(effects.lines(), Vec::<String>::new());
    let results = desk.provider.request(2).texts("tool");
    assert_eq!(results.len(), 1);
    assert!(results[0].contains("not run"), "{results:?}");
}

#[test]
fn endless_capped_answers_are_stopped_and_said_so() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(|_| Some(Reply::stream().text("more and ").finish("length")));
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "more and ");
    assert_eq!(desk.provider.requests().len(), 7);
    assert_eq!(events::of(&lines, "warning")[0]["details"]["code"], "output_cap");
}

#[test]
fn a_turn_that_never_stops_calling_ends_at_the_step_limit() {
    let provider = Provider::new();
    provider.rule(|request| {
        let number = request.messages().len();
        Some(Reply::call(&format!("c{number}"), "list_dir", json!({})))
    });
    let mut config = provider_config(&[("p", &provider)]);
    config["agent"] = json!({"maxSteps": 4, "maxRepairAttempts": 1});
    let home = Home::new();
    home.configure(&config);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "go", "workspace": workspace}));
    let lines = client.stream_of(id);
    last(&lines, "done");
    assert_eq!(provider.requests().len(), 5);
    assert_eq!(events::of(&lines, "warning")[0]["details"]["code"], "step_limit");
}
