//! Streams that break.

use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::desk::said;
use crate::kit::events::{self, data_of, streamed, text};
use crate::kit::files::Effects;
use crate::kit::home::provider_config;
use crate::kit::{Daemon, Desk, Gate, Home, Provider, Reply};
use crate::{kinds, last, steps};

#[test]
fn a_stream_without_a_finish_reason_is_withdrawn_and_asked_for_again() {
    let mut desk =
        Desk::resident([Reply::stream().thinking("Hm.").text("Hal").text("f"), Reply::answer("Whole.")]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "Whole.");
    let retry = events::of(&lines, "retry")[0];
    let details = &retry["details"];
    assert_eq!(
        (&details["attempt"], &details["of"], &details["delayMs"]),
        (&json!(1), &json!(3), &json!(250))
    );
    assert_eq!(details["withdrawn"]["chars"], "Hm.Half".len());
    assert!(!text(&retry["data"]).is_empty() && !text(&retry["data"]).contains('\n'));
    let seq = |line: &&Value| line["cursor"]["seq"].clone();
    let first: Vec<Value> =
        lines.iter().filter(|line| line["event"] == "thinking").map(|line| seq(&line)).collect();
    assert_eq!(details["withdrawn"]["fromSeq"], first[0]);
    assert_eq!(details["withdrawn"]["toSeq"], seq(&events::of(&lines, "delta")[1]));
    // The desktop opens a new bubble for the next step.
    assert_eq!(steps(&lines), [1, 2]);
    assert_eq!(desk.history(), said(&[("user", "go"), ("assistant", "Whole.")]));
    let (one, two) = (desk.provider.request(1), desk.provider.request(2));
    assert_eq!(one.messages(), two.messages());
    assert!(two.at - one.at >= Duration::from_millis(250));
}

#[test]
fn a_stream_that_is_cut_reset_or_refused_inside_is_no_answer() {
    let broken = [
        Reply::stream().text("Half").cut(),
        Reply::stream().text("Half").reset(),
        Reply::stream()
            .text("Half")
            .frame(&json!({"error": {"message": "overloaded", "type": "server_error"}})),
        Reply::stream().text("Half").bytes("data: {\"choices\":[{\"ind").cut(),
    ];
    for reply in broken {
        let mut desk = Desk::plain([reply, Reply::answer("Whole.")]);
        let lines = desk.turn("go");
        assert_eq!(last(&lines, "done")["data"], "Whole.");
        assert_eq!(events::of(&lines, "retry").len(), 1);
        assert_eq!(desk.history(), said(&[("user", "go"), ("assistant", "Whole.")]));
    }
}

#[test]
fn a_call_from_a_broken_stream_is_never_run() {
    let mut desk = Desk::plain([]);
    let effects = Effects::in_directory(&desk.workspace);
    let call = effects.append("x");
    // Half of the arguments; all of them without a finish reason; all of them and a reset.
    desk.provider.then(Reply::stream().raw_tool("c1", "bash", &call.to_string()[..20]).cut());
    desk.provider.then(Reply::stream().tool("c1", "bash", call.clone()));
    desk.provider.then(Reply::answer("Nothing done."));
    let lines = desk.turn("go");
    last(&lines, "done");
    assert_eq!(events::of(&lines, "tool_start"), Vec::<&Value>::new());
    assert_eq!(effects.lines(), Vec::<String>::new());
    assert_eq!(desk.history(), said(&[("user", "go"), ("assistant", "Nothing done.")]));
}

#[test]
fn an_empty_answer_is_retried_before_anything_is_shown() {
    let empty = || Reply::body(200, "");
    let mut desk = Desk::plain([empty(), Reply::stream().bytes("data: [DONE]\n\n"), Reply::answer("There.")]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "There.");
    assert_eq!(events::of(&lines, "retry"), Vec::<&Value>::new());
    assert_eq!(events::of(&lines, "usage").len(), 3);

    let mut desk = Desk::plain([empty(), empty(), empty()]);
    let lines = desk.turn("go");
    assert!(text(&last(&lines, "error")["data"]).starts_with("p stream error: "));
    assert_eq!(desk.history(), said(&[("user", "go")]));
}

#[test]
fn a_connection_that_breaks_before_the_answer_is_retried() {
    let mut desk = Desk::plain([Reply::reset_at_once(), Reply::reset_at_once(), Reply::answer("There.")]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "There.");
    assert_eq!(desk.provider.requests().len(), 3);
}

#[test]
fn after_the_third_failed_restart_there_is_one_error_and_the_session_goes_on() {
    let half = || Reply::stream().text("Half").cut();
    let mut desk = Desk::plain([half(), half(), half(), half()]);
    let lines = desk.turn("go");
    let end = last(&lines, "error");
    assert!(text(&end["data"]).starts_with("p stream error: "), "{end}");
    assert_eq!(events::of(&lines, "error").len(), 1);
    let delays: Vec<&Value> =
        events::of(&lines, "retry").iter().map(|line| &line["details"]["delayMs"]).collect();
    assert_eq!(delays, [&json!(250), &json!(1000), &json!(5000)]);
    assert_eq!(kinds(&lines).last().unwrap(), "error");
    let at: Vec<_> = desk.provider.requests().iter().map(|request| request.at).collect();
    for (number, delay) in [250, 1000, 5000].into_iter().enumerate() {
        assert!(at[number + 1] - at[number] >= Duration::from_millis(delay));
    }
    desk.provider.then(Reply::answer("Fine."));
    assert_eq!(last(&desk.turn("again"), "done")["data"], "Fine.");
    assert_eq!(desk.history().iter().filter(|(role, _)| role == "user").count(), 2);
}

#[test]
fn a_completed_step_resets_the_count_of_restarts() {
    let half = || Reply::stream().text("Half").cut();
    let list = |id: &str| Reply::call(id, "list_dir", json!({}));
    let mut desk = Desk::plain([half(), list("c1"), half(), list("c2"), half(), Reply::answer("Done.")]);
    let lines = desk.turn("go");
    last(&lines, "done");
    let attempts: Vec<&Value> =
        events::of(&lines, "retry").iter().map(|line| &line["details"]["attempt"]).collect();
    assert_eq!(attempts, [&json!(1), &json!(1), &json!(1)]);
    assert!(steps(&lines).is_sorted());
}

#[test]
fn a_step_that_starts_again_repeats_no_tool() {
    let mut desk = Desk::plain([]);
    let effects = Effects::in_directory(&desk.workspace);
    desk.provider.then(Reply::call("c1", "bash", effects.append("x")));
    desk.provider.then(Reply::stream().text("The re").cut());
    desk.provider.then(Reply::answer("The result."));
    last(&desk.turn("go"), "done");
    assert_eq!(effects.lines(), ["x"]);
    let roles: Vec<String> = desk.history().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
}

#[test]
fn a_silent_stream_is_given_up_after_the_idle_limit() {
    let (gone, provider) = (Gate::new(), Provider::new());
    provider.then(Reply::stream().text("Half").hang(&gone));
    provider.then(Reply::answer("Whole."));
    let mut config = provider_config(&[("p", &provider)]);
    config["providers"][0]["timeoutSeconds"] = json!(1);
    let home = Home::new();
    home.configure(&config);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "go", "workspace": workspace}));
    let lines = client.stream_of(id);
    assert_eq!(last(&lines, "done")["data"], "Whole.");
    let reason = text(&events::of(&lines, "retry")[0]["details"]["reason"]);
    assert_eq!(reason, "Request to p timed out after 1s idle without activity.");
    gone.reached();
}

#[test]
fn comments_keep_a_slow_stream_alive() {
    let provider = Provider::new();
    let mut reply = Reply::stream().text("Slow");
    let gates: Vec<Gate> = (0..4).map(|_| Gate::new()).collect();
    for gate in &gates {
        reply = reply.gate(gate).bytes(": still here\n\n");
    }
    provider.then(reply.stop());
    let mut config = provider_config(&[("p", &provider)]);
    config["providers"][0]["timeoutSeconds"] = json!(1);
    let home = Home::new();
    home.configure(&config);
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "go", "workspace": workspace}));
    for gate in &gates {
        gate.reached();
        crate::kit::pass_time(
            Duration::from_millis(600),
            "comments must be apart in time to show that they count",
        );
        gate.open();
    }
    let lines = client.stream_of(id);
    assert_eq!(last(&lines, "done")["data"], "Slow");
    assert_eq!(events::of(&lines, "retry"), Vec::<&Value>::new());
}

#[test]
fn an_answer_in_awkward_pieces_is_read_whole() {
    let frames = [
        ": comment\r\n\r\n",
        "event: x\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"grüße \"}}]}\r\n\r\n",
        "data:{\"choices\":[{\"delta\":{\"content\":\"🦀!\"}}]}\n\n",
        "data: \n\ndata: 7\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\r\rdata: [DONE]\r\r",
    ];
    for size in [1, 3, 7] {
        let mut reply = Reply::stream();
        for piece in frames.concat().as_bytes().chunks(size) {
            reply = reply.bytes(piece);
        }
        let mut desk = Desk::plain([reply]);
        let lines = desk.turn("go");
        assert_eq!(
            (last(&lines, "done")["data"].clone(), streamed(&lines)),
            (json!("grüße 🦀!"), "grüße 🦀!".to_owned())
        );
    }
}

#[test]
fn a_call_in_pieces_is_put_together_and_broken_arguments_go_back_as_valid_json() {
    let piece = |delta: Value| json!({"choices": [{"index": 0, "delta": {"tool_calls": [delta]}}]});
    let split = Reply::stream()
        .frame(&piece(json!({"index": 0, "id": "c1", "function": {"name": "read_file", "arguments": ""}})))
        .frame(&piece(json!({"index": 0, "function": {"arguments": "{\"pa"}})))
        .frame(&piece(json!({"index": 0, "function": {"arguments": "th\":\"a.txt\"} and more"}})))
        .frame(&piece(
            json!({"index": 1, "id": "c2", "function": {"name": "read_file", "arguments": "nonsense"}}),
        ))
        .frame(&piece(json!({"index": 2, "id": "c3", "function": {"name": "list_dir", "arguments": ""}})))
        .finish("tool_calls");
    let mut desk = Desk::plain([split, Reply::answer("ok")]);
    std::fs::write(desk.workspace.join("a.txt"), "content").unwrap();
    let lines = desk.turn("go");
    last(&lines, "done");
    let second = desk.provider.request(2);
    let results = second.texts("tool");
    assert_eq!(results[0], "1\tcontent");
    assert!(results[1].contains("JSON"), "{}", results[1]);
    assert!(results[2].contains("a.txt"), "{}", results[2]);
    let calls = second.messages()[1]["tool_calls"].clone();
    for call in calls.as_array().unwrap() {
        let arguments = text(&call["function"]["arguments"]);
        assert!(serde_json::from_str::<Value>(&arguments).is_ok(), "{arguments}");
    }
}

#[test]
fn an_answer_that_is_no_stream_is_an_answer() {
    let usage = json!({"prompt_tokens": 5, "completion_tokens": 2});
    let message = json!({"role": "assistant", "content": "Whole.", "reasoning": "Hm."});
    let whole = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
    let mut desk = Desk::plain([Reply::body(200, &whole.to_string())]);
    let lines = desk.turn("go");
    assert_eq!(last(&lines, "done")["data"], "Whole.");
    assert_eq!(
        (data_of(&lines, "thinking"), streamed(&lines)),
        (vec!["Hm.".to_owned()], "Whole.".to_owned())
    );
    assert_eq!(events::of(&lines, "usage")[0]["details"]["inputTokens"], 5);
}
