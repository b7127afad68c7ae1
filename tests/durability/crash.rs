//! `kill -9` at the durable points of a turn.

use std::fs;
use std::time::Duration;
use std::time::Instant;

use serde_json::{Value, json};

use crate::kit::desk::said;
use crate::kit::events::is_terminal;
use crate::kit::files::Effects;
use crate::kit::{Desk, Gate, Reply, process, until};
use crate::{count, expect_idle, wait_for_answer};

#[test]
fn killed_before_the_first_answer_the_turn_goes_on() {
    let gate = Gate::new();
    let mut desk = Desk::resident([Reply::answer("never").held(&gate), Reply::answer("Done.")]);
    desk.chat("go");
    gate.reached();
    desk.crash();
    assert_eq!(wait_for_answer(&mut desk), said(&[("user", "go"), ("assistant", "Done.")]));
    expect_idle(&mut desk);
}

#[test]
fn killed_in_the_middle_of_a_stream_the_step_starts_again() {
    let gate = Gate::new();
    let mut desk = Desk::resident([Reply::stream().text("Half").gate(&gate).stop(), Reply::answer("Done.")]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    desk.crash();
    assert_eq!(wait_for_answer(&mut desk), said(&[("user", "go"), ("assistant", "Done.")]));
    expect_idle(&mut desk);
}

#[test]
fn killed_while_a_command_runs_its_outcome_is_uncertain_and_it_is_not_repeated() {
    let mut desk = Desk::resident([]);
    let effects = Effects::in_directory(&desk.workspace);
    let never = desk.workspace.join("never");
    desk.provider.then(Reply::call("c1", "bash", effects.append_and_wait("x", &never)));
    desk.provider.then(Reply::answer("I shall look first."));
    desk.chat("go");
    effects.wait(1);
    desk.crash();
    let history = wait_for_answer(&mut desk);
    assert_eq!(effects.lines(), ["x"]);
    let told = desk.provider.request(2).texts("tool");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("uncertain"), "{told:?}");
    assert_eq!(history[2], ("tool".to_owned(), told[0].clone()));
    let result = desk.get()["messages"][2].clone();
    assert_eq!((&result["toolSuccess"], &result["toolCallId"]), (&json!(false), &json!("c1")));
    expect_idle(&mut desk);
    fs::write(&never, "").unwrap();
}

#[test]
fn a_command_that_a_killed_daemon_left_running_is_ended_before_its_turn_goes_on() {
    let mut desk = Desk::resident([]);
    let effects = Effects::in_directory(&desk.workspace);
    let go = desk.workspace.join("go");
    let line = format!(
        "setsid bash -c 'echo began >> {0}; until [ -e {1} ]; do sleep 0.02; done; echo late >> {0}'",
        effects.path().display(),
        go.display()
    );
    desk.provider.then(Reply::call("c1", "bash", json!({"command": line})));
    let answer = Gate::new();
    desk.provider.then(Reply::answer("I looked.").held(&answer));
    desk.chat("go");
    effects.wait(1);
    let running = desk.home.processes().len();
    assert!(running > 1, "the daemon and its command");
    desk.crash();
    answer.reached();
    // The model is asked again: by now the command must be gone, so that what it sees stays true.
    fs::write(&go, "").unwrap();
    let left = process::with_command(&go.display().to_string());
    assert!(left.is_empty(), "{left:?}");
    answer.open();
    wait_for_answer(&mut desk);
    assert_eq!(effects.lines(), ["began"]);
}

#[test]
fn killed_between_two_calls_only_the_one_that_had_not_begun_is_run() {
    let mut desk = Desk::resident([]);
    let effects = Effects::in_directory(&desk.workspace);
    let never = desk.workspace.join("never");
    desk.provider.then(
        Reply::stream()
            .tool("c1", "bash", effects.append("first"))
            .tool("c2", "bash", effects.append_and_wait("second", &never))
            .tool("c3", "bash", effects.append("third"))
            .stop(),
    );
    desk.provider.then(Reply::answer("Done."));
    desk.chat("go");
    effects.wait(2);
    desk.crash();
    wait_for_answer(&mut desk);
    assert_eq!(effects.lines(), ["first", "second", "third"]);
    let told = desk.provider.request(2).texts("tool");
    let uncertain: Vec<bool> = told.iter().map(|text| text.contains("uncertain")).collect();
    assert_eq!(uncertain, [false, true, false], "{told:?}");
    expect_idle(&mut desk);
}

#[test]
fn killed_after_a_result_nothing_is_run_again() {
    let gate = Gate::new();
    let mut desk = Desk::resident([]);
    let effects = Effects::in_directory(&desk.workspace);
    desk.provider.then(Reply::call("c1", "bash", effects.append("x")));
    desk.provider.then(Reply::answer("never").held(&gate));
    desk.provider.then(Reply::answer("Done."));
    desk.chat("go");
    gate.reached();
    desk.crash();
    let history = wait_for_answer(&mut desk);
    assert_eq!(effects.lines(), ["x"]);
    assert_eq!(history.len(), 4);
    assert!(!history[2].1.contains("uncertain"), "{history:?}");
    assert_eq!(desk.provider.request(3).messages(), desk.provider.request(2).messages());
    expect_idle(&mut desk);
}

#[test]
fn killed_during_the_check_the_check_runs_again_and_the_turn_ends() {
    let mut desk = Desk::resident([]);
    let (go, runs) = (desk.workspace.join("go"), desk.workspace.join("runs"));
    let check = format!("echo x >> {}; until [ -e {} ]; do sleep 0.02; done", runs.display(), go.display());
    fs::write(desk.workspace.join(".seekclaw/config.json"), json!({ "verifyCommand": check }).to_string())
        .unwrap();
    desk.provider.then(Reply::call("c1", "write_file", json!({"path": "a.txt", "content": "x"})));
    desk.provider.then(Reply::answer("Done."));
    desk.chat("go");
    let started = |count: usize| fs::read_to_string(&runs).unwrap_or_default().lines().count() >= count;
    until("the check", || started(1));
    desk.crash();
    until("the second check", || started(2));
    fs::write(&go, "").unwrap();
    until("the end of the turn", || {
        desk.client.ok("agent.cancel", json!({"sessionId": "other"})) == "no active turn"
            && desk.get()["llmRounds"] == 2
    });
    let history = desk.history();
    assert_eq!(history.last().unwrap().1, "Done.");
    assert_eq!(desk.provider.requests().len(), 2);
    fs::write(desk.workspace.join(".seekclaw/config.json"), "{}").unwrap();
    expect_idle(&mut desk);
}

#[test]
fn killed_right_after_the_terminal_line_everything_is_there() {
    let mut desk = Desk::resident([]);
    let effects = Effects::in_directory(&desk.workspace);
    desk.provider.then(Reply::call("c1", "bash", effects.append("x")));
    desk.provider.then(Reply::answer("Done."));
    let lines = desk.turn("go");
    assert_eq!(lines.last().unwrap()["event"], "done");
    let before = desk.get();
    desk.crash();
    assert_eq!(desk.get(), before);
    assert_eq!((before["messages"].as_array().unwrap().len(), before["llmRounds"].clone()), (4, json!(2)));
    assert_eq!(effects.lines(), ["x"]);
    expect_idle(&mut desk);
}

#[test]
fn killed_at_every_line_of_a_turn_no_effect_is_doubled_and_no_message_lost() {
    let mut desk = Desk::resident([]);
    let file = desk.workspace.clone();
    desk.provider.rule(move |request| {
        // The number of the round names its own file of effects.
        let users = request.texts("user");
        let round = users.first()?.strip_prefix("round ")?.to_owned();
        let directory = file.join(&round);
        let answered = request.texts("tool");
        Some(match answered.len() {
            0 => {
                fs::create_dir_all(&directory).unwrap();
                Reply::stream()
                    .text("Wor")
                    .text("king.")
                    .tool("c1", "bash", Effects::in_directory(&directory).append("x"))
                    .stop()
            }
            _ => Reply::stream().text("All ").text("done.").stop(),
        })
    });
    let whole = 22;
    for kill_after in 1..=whole {
        let session = desk.client.ok("session.new", json!({ "workspace": desk.workspace }));
        desk.session = session;
        let id = desk.chat(&format!("round {kill_after}"));
        let mut over = false;
        desk.client.find("enough lines", |line| line["id"] == id);
        while !over && desk.client.seen(id).len() < kill_after {
            over = desk.client.next().is_some_and(|line| line["id"] == id && is_terminal(&line));
        }
        desk.crash();
        let history = wait_for_answer(&mut desk);
        let effects = Effects::in_directory(&desk.workspace.join(kill_after.to_string()));
        assert_eq!(count(&history, &format!("round {kill_after}")), 1, "{history:?}");
        assert_eq!(history.last().unwrap().1, "All done.", "killed after line {kill_after}: {history:?}");
        let results: Vec<&(String, String)> = history.iter().filter(|(role, _)| role == "tool").collect();
        assert_eq!(results.len(), 1, "killed after line {kill_after}: {history:?}");
        match effects.lines().len() {
            1 => {}
            // Nobody can know whether it ran: that must be said, and only then may it be missing.
            0 => assert!(results[0].1.contains("uncertain"), "killed after line {kill_after}: {history:?}"),
            more => panic!("killed after line {kill_after}: the effect happened {more} times"),
        }
        if over {
            assert!(kill_after > 12, "the turn had only {kill_after} lines");
            return;
        }
    }
    panic!("the turn has more than {whole} lines");
}

#[test]
fn accepted_guidance_survives_a_kill_and_is_used_once() {
    let gate = Gate::new();
    let mut desk = Desk::resident([
        Reply::stream().text("Half").gate(&gate).stop(),
        Reply::answer("With it."),
        Reply::answer("More of it."),
    ]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    desk.steer_accepted("be kind");
    desk.crash();
    let history = wait_for_answer(&mut desk);
    assert_eq!(count(&history, "be kind"), 1, "{history:?}");
    let last = desk.provider.requests().pop().unwrap().texts("user");
    assert_eq!(last.iter().filter(|text| *text == "be kind").count(), 1);
}

#[test]
fn waiting_messages_of_a_resident_client_survive_a_kill_and_run_in_order() {
    let gate = Gate::new();
    let mut desk = Desk::resident([Reply::answer("never").held(&gate)]);
    desk.chat("one");
    gate.reached();
    for message in ["two", "three"] {
        let id = desk.chat(message);
        desk.client.event(id, "status");
    }
    for answer in ["1", "2", "3"] {
        desk.provider.then(Reply::answer(answer));
    }
    desk.crash();
    until("all answers", || desk.history().len() == 6);
    let expected = [
        ("user", "one"),
        ("assistant", "1"),
        ("user", "two"),
        ("assistant", "2"),
        ("user", "three"),
        ("assistant", "3"),
    ];
    assert_eq!(desk.history(), said(&expected));
}

#[test]
fn a_turn_of_a_plain_client_is_closed_after_a_kill_and_its_waiting_messages_are_marked() {
    let gone = Gate::new();
    let mut desk = Desk::plain([Reply::stream().text("Half").hang(&gone)]);
    let id = desk.chat("one");
    desk.client.event(id, "delta");
    let waiting = desk.chat("two");
    desk.client.event(waiting, "status");
    desk.crash();
    until("both are settled", || desk.history().len() == 4);
    let history = desk.history();
    assert_eq!((history[0].1.as_str(), history[2].1.as_str()), ("one", "two"));
    assert!(history[1].1.starts_with(">>> [Interrupted]"), "{history:?}");
    assert!(history[3].1.starts_with(">>> [Interrupted]"), "{history:?}");
    assert_eq!(desk.provider.requests().len(), 1);
    expect_idle(&mut desk);
}

#[test]
fn a_turn_is_given_up_after_the_third_death_of_the_daemon() {
    let gates: Vec<Gate> = (0..3).map(|_| Gate::new()).collect();
    let mut desk = Desk::resident(gates.iter().map(|gate| Reply::answer("never").held(gate)));
    desk.chat("go");
    for gate in &gates {
        gate.reached();
        desk.crash();
    }
    until("the end of the turn", || desk.history().len() == 2);
    assert!(desk.history()[1].1.starts_with(">>> [Interrupted]"));
    assert_eq!(desk.provider.requests().len(), 3);
    expect_idle(&mut desk);
}

#[test]
fn a_chat_that_comes_while_an_open_turn_goes_on_waits_for_it() {
    let (first, second) = (Gate::new(), Gate::new());
    let mut desk = Desk::resident([
        Reply::answer("never").held(&first),
        Reply::answer("one").held(&second),
        Reply::answer("two"),
    ]);
    desk.chat("first");
    first.reached();
    desk.crash();
    second.reached();
    let id = desk.chat("second");
    assert_eq!(desk.client.event(id, "status")["data"], "Queued");
    second.open();
    assert_eq!(desk.client.terminal(id)["data"], "two");
    let expected = [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")];
    assert_eq!(desk.history(), said(&expected));
}

#[test]
fn never_resuming_closes_every_open_turn() {
    let gate = Gate::new();
    let mut desk = Desk::resident([Reply::answer("never").held(&gate)]);
    let mut config: Value =
        serde_json::from_str(&fs::read_to_string(desk.home.config_file()).unwrap()).unwrap();
    config["agent"] = json!({"resumeTurns": "never"});
    desk.home.configure(&config);
    desk.chat("go");
    gate.reached();
    desk.crash();
    until("the end of the turn", || desk.history().len() == 2);
    assert!(desk.history()[1].1.starts_with(">>> [Interrupted]"));
    expect_idle(&mut desk);
}

#[test]
fn a_signal_lets_turns_end_in_good_order() {
    let gone = Gate::new();
    let mut desk = Desk::resident([Reply::stream().text("Half").hang(&gone)]);
    let id = desk.chat("go");
    desk.client.event(id, "delta");
    let before = Instant::now();
    assert!(desk.daemon.take().unwrap().stop().success());
    assert!(before.elapsed() < Duration::from_secs(5));
    assert_eq!(desk.client.terminal(id)["event"], "cancelled");
    assert!(!desk.home.socket().exists());
    desk.start();
    assert_eq!(desk.history(), said(&[("user", "go"), ("assistant", "Half")]));
}

#[test]
fn commands_of_a_stopped_daemon_do_not_outlive_it() {
    let mut desk = Desk::resident([]);
    let mark = desk.workspace.join("marker").display().to_string();
    desk.provider.then(Reply::call("c1", "bash", json!({"command": format!("exec -a {mark} sleep 600")})));
    desk.chat("go");
    until("the command runs", || !process::with_command(&mark).is_empty());
    assert!(desk.daemon.take().unwrap().stop().success());
    until("the command is gone", || process::with_command(&mark).is_empty());
}
