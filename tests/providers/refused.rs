//! Refusals, and who is asked next.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::events::{self, data_of, text};
use crate::kit::home::provider_config;
use crate::kit::{Daemon, Desk, Home, Provider, Reply};
use crate::{kinds, last, steps};

#[test]
fn a_refusal_that_may_pass_is_retried_and_then_told_with_the_providers_words() {
    let boom = || Reply::refusal(500, "boom");
    let mut desk = Desk::plain([boom(), boom(), Reply::answer("There.")]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "There.");
    let inputs: Vec<&Value> =
        events::of(&lines, "usage").iter().map(|line| &line["details"]["inputTokens"]).collect();
    assert_eq!(inputs, [&json!(0), &json!(0), &json!(900)]);
    let usages = events::of(&lines, "usage");
    assert!(usages.iter().all(|line| line["details"]["elapsedMs"].as_f64() > Some(0.0)), "{usages:?}");

    let mut desk = Desk::plain([boom(), boom(), boom()]);
    let lines = desk.turn("go");
    let end = last(&lines, "error");
    assert_eq!(
        (&end["data"], &end["details"]["code"]),
        (&json!("p returned HTTP 500: boom"), &json!("provider_unavailable"))
    );
    assert_eq!((&end["details"]["retryable"], &end["sessionId"]), (&json!(true), &json!(desk.session)));
    assert_eq!((events::of(&lines, "error").len(), kinds(&lines).last().unwrap().as_str()), (1, "error"));
    assert_eq!(desk.provider.requests().len(), 3);
}

#[test]
fn a_refusal_for_good_is_told_at_once() {
    for (status, code) in [(400, "provider_rejected"), (401, "provider_auth"), (404, "provider_rejected")] {
        let mut desk = Desk::plain([Reply::refusal(status, "no")]);
        let lines = desk.turn("go");
        let end = last(&lines, "error");
        assert_eq!(
            (&end["data"], &end["details"]["code"]),
            (&json!(format!("p returned HTTP {status}: no")), &json!(code))
        );
        assert_eq!(desk.provider.requests().len(), 1);
    }
}

#[test]
fn a_short_retry_after_is_honoured_and_announced() {
    let mut desk =
        Desk::plain([Reply::refusal(429, "slow down").header("Retry-After", "1"), Reply::answer("There.")]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "There.");
    let (one, two) = (desk.provider.request(1), desk.provider.request(2));
    assert!(two.at - one.at >= Duration::from_secs(1));
    // The reason is no phase: the desktop looks for words in the label.
    let labels = data_of(&lines, "status");
    let waiting = labels.iter().position(|label| label == "Waiting 1.0 s").expect("the wait is announced");
    assert_eq!(labels.get(waiting + 1).map(String::as_str), Some("Thinking"), "{labels:?}");
    assert!(!labels.iter().any(|label| label.contains("slow down")), "{labels:?}");
}

#[test]
fn a_long_retry_after_ends_the_turn_with_the_time_to_wait() {
    let mut desk = Desk::plain([Reply::refusal(429, "tomorrow").header("Retry-After", "61")]);
    let lines = desk.turn("go");
    let end = last(&lines, "error");
    assert_eq!(
        (&end["data"], &end["details"]["code"]),
        (&json!("p returned HTTP 429: tomorrow"), &json!("provider_rate_limited"))
    );
    assert_eq!(end["details"]["retryAfterMs"], 61_000);
    assert_eq!(desk.provider.requests().len(), 1);
}

#[test]
fn nobody_listening_is_said_as_such() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let provider = Provider::new();
    let mut config = provider_config(&[("p", &provider)]);
    config["providers"][0]["baseUrl"] = json!(format!("http://127.0.0.1:{port}/v1"));
    let home = Home::new();
    home.configure(&config);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let end = daemon.connect().call("chat", json!({"message": "go", "workspace": workspace}));
    assert!(text(&end["data"]).starts_with("Cannot reach p: "), "{end}");
    assert_eq!(end["details"]["code"], "provider_unavailable");
}

#[test]
fn a_key_that_the_server_repeats_reaches_neither_client_nor_log() {
    let provider = Provider::script([Reply::refusal(401, "bad key test-key-123")]);
    let home = Home::with(&provider);
    let workspace = home.workspace("w");
    let mut command = home.command();
    command.env("SEEKCLAW_LOG", "trace");
    let daemon = Daemon::spawn(&home, command);
    let end = daemon.connect().call("chat", json!({"message": "go", "workspace": workspace}));
    assert_eq!(end["data"], "p returned HTTP 401: bad key ***");
    assert_eq!(provider.request(1).headers["authorization"], "Bearer test-key-123");
    assert!(home.log().contains("TRACE"), "the log was asked for everything");
    assert!(!home.log().contains("test-key-123"));
}

/// Two providers, the first one active, both in the chain.
fn two_providers(first: &Provider, second: &Provider) -> Home {
    let mut config = provider_config(&[("p", first), ("q", second)]);
    config["routing"]["fallback"] = json!(["q/n"]);
    let home = Home::new();
    home.configure(&config);
    home
}

#[test]
fn the_next_candidate_answers_when_the_first_has_failed() {
    let boom = || Reply::refusal(503, "down");
    let (first, second) =
        (Provider::script([boom(), boom(), boom()]), Provider::script([Reply::answer("From q.")]));
    let home = two_providers(&first, &second);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "go", "workspace": workspace}));
    let lines = client.stream_of(id);
    assert_eq!(last(&lines, "done")["data"], "From q.");
    let switched = &events::of(&lines, "provider_switched")[0]["details"];
    assert_eq!((&switched["from"], &switched["to"]), (&json!("p/m"), &json!("q/n")));
    assert_eq!(data_of(&lines, "model_start"), ["p/m", "q/n"]);
    assert_eq!(steps(&lines), [1, 1]);
    assert_eq!(data_of(&lines, "usage"), ["p/m", "p/m", "p/m", "q/n"]);
    let session = client.json("session.get", json!({"id": lines[0]["sessionId"], "workspace": workspace}));
    assert_eq!(session["messages"][1]["modelRef"], "q/n");
}

#[test]
fn a_broken_stream_is_asked_for_again_first_at_the_same_model_then_at_the_next() {
    let half = || Reply::stream().text("Half").cut();
    let (first, second) = (Provider::script([half(), half()]), Provider::script([Reply::answer("From q.")]));
    let home = two_providers(&first, &second);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "go", "workspace": workspace}));
    let lines = client.stream_of(id);
    assert_eq!(last(&lines, "done")["data"], "From q.");
    assert_eq!(data_of(&lines, "model_start"), ["p/m", "p/m", "q/n"]);
    assert_eq!(steps(&lines), [1, 2, 3]);
}

#[test]
fn when_all_candidates_failed_each_is_named() {
    let (first, second) = (Provider::new(), Provider::new());
    first.rule(|_| Some(Reply::refusal(503, "down")));
    second.rule(|_| Some(Reply::refusal(400, "no such model")));
    let home = two_providers(&first, &second);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let end = daemon.connect().call("chat", json!({"message": "go", "workspace": workspace}));
    assert_eq!(
        end["data"],
        "All candidate models failed after automatic failover (2 tried):\n\
         - p/m: p returned HTTP 503: down\n- q/n: q returned HTTP 400: no such model"
    );
}

#[test]
fn the_model_of_a_chat_holds_for_that_turn_alone() {
    let mut desk = Desk::plain([Reply::answer("n"), Reply::answer("m")]);
    let params = desk.with(json!({"message": "go", "model": "P/N"}));
    let id = desk.client.send("chat", params);
    assert_eq!(data_of(&desk.client.stream_of(id), "model_start"), ["p/n"]);
    assert_eq!(data_of(&desk.turn("go"), "model_start"), ["p/m"]);
}

#[test]
fn without_a_provider_the_built_in_model_answers_with_real_tools() {
    let home = Home::new();
    let workspace = home.workspace("w");
    std::fs::write(workspace.join("README.md"), "# The readme\n").unwrap();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "what is in this folder?", "workspace": workspace}));
    let lines = client.stream_of(id);
    last(&lines, "done");
    assert!(events::of(&lines, "tool_done").len() >= 2, "{:?}", events::outline(&lines));
    assert!(data_of(&lines, "model_start").iter().all(|model| model == "builtin/offline"));
}
