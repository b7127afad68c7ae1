//! Files that are broken, foreign or cannot grow.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Daemon, Desk, Home, Reply, until};

#[test]
fn a_broken_config_is_kept_aside_reported_and_never_overwritten() {
    let mut desk = Desk::plain([Reply::answer("Before.")]);
    desk.turn("go");
    assert!(desk.daemon.take().unwrap().stop().success());
    let broken = "{\n  \"providers\": [oops\n}\n";
    fs::write(desk.home.config_file(), broken).unwrap();
    desk.start();
    assert_eq!(fs::read_to_string(desk.home.config_file()).unwrap(), broken);
    let aside: Vec<_> = fs::read_dir(desk.home.state())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("config.json.broken-"))
        .collect();
    assert_eq!(aside.len(), 1);
    assert_eq!(fs::read_to_string(aside[0].path()).unwrap(), broken);
    // The last good configuration goes on to serve.
    desk.provider.then(Reply::answer("After."));
    assert_eq!(desk.turn("again").last().unwrap()["data"], "After.");
    let (refused, _) = desk.client.error("agent.mode.switch", json!({"mode": "plan"}));
    assert!(refused.starts_with("Invalid config: ") && refused.contains("line 2, column "), "{refused}");
    assert!(desk.client.ok("doctor", json!({})).contains("[FAIL] Config File"));
    assert_eq!(fs::read_to_string(desk.home.config_file()).unwrap(), broken);
}

#[test]
fn a_broken_config_of_a_new_home_starts_with_the_built_in_model() {
    let home = Home::new();
    home.make_state();
    fs::write(home.config_file(), "not json").unwrap();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.connect().json("model.list", json!({})), json!(["builtin/offline"]));
    assert_eq!(fs::read_to_string(home.config_file()).unwrap(), "not json");
}

#[test]
fn comments_of_the_config_and_foreign_changes_survive_a_write_of_the_daemon() {
    let home = Home::new();
    home.make_state();
    fs::write(home.config_file(), "{\n  // mine\n  \"foreign\": {\"a\": 1},\n}\n").unwrap();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    client.ok("agent.mode.switch", json!({"mode": "plan"}));
    let edited = fs::read_to_string(home.config_file()).unwrap().replace("\"a\": 1", "\"a\": 2");
    fs::write(home.config_file(), &edited).unwrap();
    client.ok("agent.mode.switch", json!({"mode": "auto"}));
    let written = fs::read_to_string(home.config_file()).unwrap();
    assert!(
        written.contains("// mine") && written.contains("\"a\": 2") && written.contains("auto"),
        "{written}"
    );
    let mode = fs::metadata(home.config_file()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn the_config_of_the_daemon_is_not_that_of_a_workspace_in_the_users_own_directory() {
    let home = Home::new();
    home.configure(&json!({"agent": {"mode": "edit"}}));
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    assert_eq!(client.json("workspace.get", json!({}))["path"], json!(home.path()));
    client.ok("agent.mode.switch", json!({"mode": "plan"}));
    let written: Value = serde_json::from_str(&fs::read_to_string(home.config_file()).unwrap()).unwrap();
    assert_eq!((&written["agent"]["mode"], written.get("mode")), (&json!("plan"), None));
    home.configure(&json!({"agent": {"mode": "auto"}, "mode": "readonly"}));
    assert_eq!(client.ok("agent.mode.get", json!({})), "auto");
}

#[test]
fn a_repaired_config_is_picked_up_by_itself() {
    let home = Home::new();
    home.make_state();
    fs::write(home.config_file(), "broken").unwrap();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    fs::write(home.config_file(), json!({"agent": {"mode": "readonly"}}).to_string()).unwrap();
    until("the repaired file", || client.ok("agent.mode.get", json!({})) == "readonly");
    assert!(client.ok("doctor", json!({})).contains("[OK] Config File"));
}

#[test]
fn a_full_disk_refuses_what_it_cannot_keep_and_loses_nothing() {
    let mut desk = Desk::resident([Reply::answer("One.")]);
    desk.turn("one");
    assert!(desk.daemon.take().unwrap().stop().success());
    let store = fs::metadata(desk.home.state().join("seekclaw.redb")).unwrap().len();
    // A limit on the size of files, with its signal ignored, fails a write as a full disk does.
    let blocks = (store + 512 * 1024) / 1024;
    let mut command = std::process::Command::new("bash");
    let program = desk.home.command();
    command.env_clear().envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(desk.home.path()).stdin(Stdio::null());
    command.args([
        "-c",
        &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\""),
        &crate::kit::home::program(),
    ]);
    let daemon = Daemon::spawn(&desk.home, command);
    desk.client = daemon.hello("desk");
    desk.daemon = Some(daemon);
    desk.provider.rule(|_| Some(Reply::answer("More.")));
    let big = "x".repeat(200 * 1024);
    let mut accepted = vec!["one".to_owned()];
    let refusal = loop {
        assert!(accepted.len() < 60, "the disk never got full");
        let message = format!("{} {big}", accepted.len());
        let id = desk.chat(&message);
        let end = desk.client.terminal(id);
        if end["event"] == "error" {
            break end;
        }
        accepted.push(message);
    };
    assert_eq!(refusal["details"]["code"], "storage_full", "{refusal}");
    assert_eq!(desk.client.call("ping", json!({}))["event"], "pong");
    desk.daemon.take().unwrap().kill();
    desk.start();
    let users: Vec<String> =
        desk.history().into_iter().filter(|(role, _)| role == "user").map(|(_, text)| text).collect();
    assert!(
        users.len() >= accepted.len() && users[..accepted.len()] == accepted[..],
        "{} of {}",
        users.len(),
        accepted.len()
    );
    assert_eq!(desk.turn("still there?").last().unwrap()["data"], "More.");
}
