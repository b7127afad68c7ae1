//! Modes and tools: what is offered, refused, run, checked.

use std::fs;

use serde_json::{Value, json};

use crate::kit::desk::said;
use crate::kit::events::{self, text};
use crate::kit::{Daemon, Desk, Home, Provider, Reply};

#[test]
fn plan_and_readonly_offer_no_writing_tools_and_refuse_them_when_called() {
    for mode in ["plan", "readonly"] {
        let mut desk = Desk::plain([
            Reply::stream()
                .tool("c1", "bash", json!({"command": "echo x > made.txt"}))
                .tool("c2", "write_file", json!({"path": "made.txt", "content": "x"}))
                .tool("c3", "list_dir", json!({}))
                .stop(),
            Reply::answer("I may not."),
        ]);
        let params = desk.with(json!({"message": "make a file", "mode": mode}));
        let id = desk.client.send("chat", params);
        let lines = desk.client.stream_of(id);
        let offered = desk.provider.request(1).tools();
        assert!(offered.contains(&"read_file".to_owned()), "{offered:?}");
        for tool in ["bash", "write_file", "edit_file"] {
            assert!(!offered.contains(&tool.to_owned()), "{mode} offers {tool}");
        }
        let outcomes: Vec<&Value> = events::of(&lines, "tool_done");
        assert_eq!(outcomes.len(), 3);
        for done in &outcomes[..2] {
            assert_eq!(
                (&done["details"]["success"], &done["details"]["outcome"]),
                (&json!(false), &json!("denied"))
            );
        }
        assert_eq!(outcomes[2]["details"]["outcome"], "ok");
        let results = desk.provider.request(2).texts("tool");
        assert!(
            results[0].starts_with("Tool execution denied: ") && results[0].contains("bash"),
            "{results:?}"
        );
        assert!(results[1].contains("write_file") && results[1].contains(mode), "{results:?}");
        assert!(!desk.workspace.join("made.txt").exists());
    }
}

#[test]
fn the_mode_of_a_chat_holds_for_that_turn_alone() {
    let write = || Reply::call("c1", "write_file", json!({"path": "made.txt", "content": "x"}));
    let mut desk = Desk::plain([write(), Reply::answer("no"), write(), Reply::answer("yes")]);
    let params = desk.with(json!({"message": "make it", "mode": "PLAN"}));
    let id = desk.client.send("chat", params);
    desk.client.terminal(id);
    assert!(!desk.workspace.join("made.txt").exists());
    desk.turn("make it");
    assert!(desk.workspace.join("made.txt").exists());
    assert_eq!(desk.client.ok("agent.mode.get", json!({})), "edit");
}

#[test]
fn every_tool_does_its_work_and_the_model_sees_the_results() {
    let mut desk = Desk::plain([
        Reply::call("c1", "write_file", json!({"path": "dir/new.txt", "content": "alpha\nbeta\n"})),
        Reply::call("c2", "read_file", json!({"path": "dir/new.txt"})),
        Reply::call(
            "c3",
            "edit_file",
            json!({"path": "dir/new.txt", "old_string": "beta", "new_string": "gamma"}),
        ),
        Reply::call("c4", "bash", json!({"command": "cat dir/new.txt; echo err >&2; exit 3"})),
        Reply::stream()
            .tool("c5", "list_dir", json!({}))
            .tool("c6", "glob", json!({"pattern": "**/*.txt"}))
            .tool("c7", "grep", json!({"pattern": "gam+a"}))
            .tool("c8", "read_file", json!({"path": "none.txt"}))
            .tool("c9", "teleport", json!({}))
            .stop(),
        Reply::answer("done"),
    ]);
    let lines = desk.turn("work");
    assert_eq!(fs::read_to_string(desk.workspace.join("dir/new.txt")).unwrap(), "alpha\ngamma\n");
    let results = desk.provider.request(6).texts("tool");
    assert_eq!(results.len(), 9);
    assert_eq!(results[0], "Created dir/new.txt");
    assert_eq!(results[1], "1\talpha\n2\tbeta");
    assert_eq!(results[2], "Edited dir/new.txt");
    assert!(
        results[3].starts_with("Exit code 3")
            && results[3].contains("alpha\ngamma\n")
            && results[3].contains("err"),
        "{}",
        results[3]
    );
    assert!(results[4].contains("dir/") && results[4].contains("new.txt"), "{}", results[4]);
    assert_eq!(results[5], "dir/new.txt");
    assert_eq!(results[6], "dir/new.txt:2: gamma");
    assert!(results[7].starts_with("File not found: "), "{}", results[7]);
    assert_eq!(results[8], "Unknown tool: teleport");
    let diffs: Vec<(String, String)> = events::of(&lines, "file_diff")
        .iter()
        .map(|line| (text(&line["data"]), text(&line["details"]["callId"])))
        .collect();
    assert_eq!(diffs, said(&[("dir/new.txt", "c1"), ("dir/new.txt", "c3")]));
    let stored = desk.get();
    let tool = |id: &str| {
        let messages = stored["messages"].as_array().unwrap();
        messages.iter().find(|message| message["toolCallId"] == id).unwrap().clone()
    };
    assert_eq!(
        (&tool("c3")["toolFilePath"], &tool("c3")["toolSuccess"]),
        (&json!("dir/new.txt"), &json!(true))
    );
    assert!(text(&tool("c3")["toolDiff"]).contains("-beta\n+gamma"));
    assert_eq!((&tool("c4")["toolSuccess"], &tool("c4")["toolDiff"]), (&json!(false), &Value::Null));
}

#[test]
fn reading_calls_of_a_step_are_announced_together_and_writing_ones_run_alone() {
    let mut desk = Desk::plain([
        Reply::stream()
            .tool("r1", "list_dir", json!({}))
            .tool("r2", "glob", json!({"pattern": "*"}))
            .tool("w1", "write_file", json!({"path": "a", "content": "1"}))
            .tool("r3", "read_file", json!({"path": "a"}))
            .stop(),
        Reply::answer("done"),
    ]);
    let lines = desk.turn("go");
    let of_tools: Vec<String> = lines
        .iter()
        .filter(|line| {
            line["details"]["kind"] == "tool" || line["event"] == "tool_start" || line["event"] == "tool_done"
        })
        .map(|line| match text(&line["event"]).as_str() {
            "workflow" => format!("node {}", text(&line["data"])),
            event => format!("{event} {}", text(&line["details"]["callId"])),
        })
        .collect();
    assert_eq!(of_tools[..2], ["node list_dir", "node glob"]);
    let mut batch = of_tools[2..6].to_vec();
    batch.sort();
    assert_eq!(batch, ["tool_done r1", "tool_done r2", "tool_start r1", "tool_start r2"]);
    assert_eq!(
        of_tools[6..],
        [
            "node write_file",
            "tool_start w1",
            "tool_done w1",
            "node read_file",
            "tool_start r3",
            "tool_done r3",
        ]
    );
    assert_eq!(desk.provider.request(2).texts("tool")[3], "1\t1");
}

#[test]
fn a_failed_check_is_repaired_and_checked_again() {
    let provider = Provider::script([
        Reply::call("c1", "write_file", json!({"path": "a.txt", "content": "wrong"})),
        Reply::answer("Done?"),
        Reply::call("c2", "write_file", json!({"path": "a.txt", "content": "right"})),
        Reply::answer("Done."),
    ]);
    let home = Home::with(&provider);
    let workspace = home.workspace_with("w", &json!({"verifyCommand": "cat a.txt; grep -q right a.txt"}));
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "write it", "workspace": workspace}));
    let lines = client.stream_of(id);
    let checks: Vec<&Value> = events::of(&lines, "verification");
    let verdicts: Vec<bool> = checks.iter().map(|line| line["details"]["ok"].as_bool().unwrap()).collect();
    assert_eq!(verdicts, [false, true]);
    assert_eq!(
        (&checks[0]["details"]["exitCode"], &checks[1]["details"]["exitCode"]),
        (&json!(1), &json!(0))
    );
    let told = provider.request(3).texts("user").pop().unwrap();
    assert!(told.contains("grep -q right") && told.contains("wrong"), "{told}");
    assert_eq!(lines.last().unwrap()["data"], "Done.");
}

#[test]
fn writing_outside_of_the_workspace_is_refused_links_included() {
    let provider = Provider::new();
    let home = Home::with(&provider);
    let (workspace, outside) = (home.workspace("w"), home.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f.txt"), "old").unwrap();
    std::os::unix::fs::symlink(&outside, workspace.join("link")).unwrap();
    provider.then(
        Reply::stream()
            .tool("c1", "write_file", json!({"path": "../outside/f.txt", "content": "new"}))
            .tool("c2", "write_file", json!({"path": "link/f.txt", "content": "new"}))
            .tool(
                "c3",
                "edit_file",
                json!({"path": outside.join("f.txt"), "old_string": "old", "new_string": "new"}),
            )
            .tool("c4", "read_file", json!({"path": home.config_file()}))
            .tool("c5", "bash", json!({"command": "pwd", "cwd": outside}))
            .tool("c6", "read_file", json!({"path": outside.join("f.txt")}))
            .stop(),
    );
    provider.then(Reply::answer("ok"));
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let id = client.send("chat", json!({"message": "break out", "workspace": workspace}));
    let lines = client.stream_of(id);
    let outcome = |line: &&Value| text(&line["details"]["outcome"]);
    let outcomes: Vec<String> = events::of(&lines, "tool_done").iter().map(outcome).collect();
    assert_eq!(outcomes.len(), 6);
    assert!(outcomes[..5].iter().all(|outcome| outcome == "denied" || outcome == "failed"), "{outcomes:?}");
    assert_eq!(outcomes[5], "ok");
    assert_eq!(fs::read_to_string(outside.join("f.txt")).unwrap(), "old");
    assert!(!provider.request(2).texts("tool")[3].contains("test-key-123"));
}
