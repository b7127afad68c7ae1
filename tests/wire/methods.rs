//! What methods answer and refuse.

use std::fs;

use serde_json::{Value, json};

use crate::kit::events::{self, text};
use crate::kit::{Daemon, Gate, Home, Provider, Reply};

#[test]
fn protocol_info_lists_what_this_version_offers() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let info = daemon.connect().json("protocol.info", json!({}));
    assert_eq!((&info["version"], &info["transport"]), (&json!("2.1"), &json!("jsonl")));
    let list = |key: &str| {
        let names = info[key].as_array().unwrap().iter().map(text);
        names.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!("methods", list("methods"));
    insta::assert_snapshot!("capabilities", list("capabilities"));
}

#[test]
fn hello_answers_with_the_lists_and_every_bound() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let info = client.json("protocol.info", json!({}));
    let hello = client.hello("one");
    assert_eq!((&hello["methods"], &hello["capabilities"]), (&info["methods"], &info["capabilities"]));
    assert_eq!((&hello["limits"]["lineBytes"], &hello["protocol"]), (&json!(67_108_864), &json!("2.1")));
    assert_eq!(client.hello("one")["connectionId"], hello["connectionId"]);
    assert_eq!(client.error("client.hello", json!({"clientId": "other"})).1, "conflict");
    let wrong = json!({"clientId": "one", "protocol": "3.0"});
    assert_eq!(client.error("client.hello", wrong).1, "protocol_incompatible");
}

#[test]
fn known_methods_of_later_versions_say_so() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let listed = client.json("protocol.info", json!({}))["methods"].clone();
    for method in [
        "doctor.run",
        "factory.reset",
        "usage.get",
        "routing.get",
        "routing.set",
        "model.update",
        "prompt.optimize",
        "profile.list",
        "profile.upsert",
        "profile.use",
        "profile.remove",
        "provider.models.fetch",
        "mcp.list",
        "mcp.upsert",
        "mcp.remove",
        "mcp.reload",
        "skill.list",
        "skill.toggle",
        "skill.import",
        "project.list",
        "project.upsert",
        "project.remove",
        "schedule.list",
        "schedule.create",
        "schedule.update",
        "schedule.toggle",
        "schedule.delete",
        "schedule.run",
    ] {
        let (said, code) = client.error(method, json!({}));
        assert_eq!(said, format!("{method} is not available in this version yet"));
        assert_eq!(code, "unavailable");
        assert!(!listed.as_array().unwrap().contains(&json!(method)), "{method} is listed");
    }
}

#[test]
fn slow_requests_do_not_hold_up_the_quick_ones() {
    let gate = Gate::new();
    let provider = Provider::script([Reply::answer("ok").held(&gate)]);
    let home = Home::with(&provider);
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let slow = client.send("model.test", json!({"model": "p/m"}));
    gate.reached();
    assert_eq!(client.call("ping", json!({}))["event"], "pong");
    assert_eq!(client.ok("agent.cancel", json!({})), "no active turn");
    assert_eq!(client.json("lock.list", json!({})), json!([]));
    assert_eq!(client.json("model.list", json!({})), json!(["p/m", "p/n"]));
    assert!(client.seen(slow).is_empty());
    gate.open();
    let tested: Value = serde_json::from_str(client.terminal(slow)["data"].as_str().unwrap()).unwrap();
    assert_eq!((&tested["model"], &tested["success"]), (&json!("p/m"), &json!(true)));
}

#[test]
fn doctor_speaks_of_every_check_on_its_own_line() {
    let home = Home::new();
    let workspace = home.workspace("w");
    let daemon = Daemon::start_in(&home, &workspace);
    let report = daemon.connect().ok("doctor", json!({}));
    let names: Vec<&str> = report.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        names[..4],
        [
            "[OK] Workspace Root",
            "[OK] SeekClaw Metadata Dir",
            "[FAIL] Provider Config",
            "[FAIL] Workspace Memory",
        ]
    );
    assert!(names.contains(&"[OK] Config File"), "{report}");
}

#[test]
fn settings_survive_a_restart_and_reach_the_catalogue() {
    let provider = Provider::new();
    let home = Home::new();
    let workspace = home.workspace("w");
    let daemon = Daemon::start_in(&home, &workspace);
    let mut client = daemon.connect();
    assert_eq!(client.json("model.list", json!({})), json!(["builtin/offline"]));
    let made = client.json(
        "provider.upsert",
        json!({
        "id": "local", "baseUrl": provider.base_url(), "models": ["m", "n"], "apiKey": "key-1"}),
    );
    assert_eq!(
        (&made["apiKey"], &made["apiKeyConfigured"], &made["kind"]),
        (&json!("key-1"), &json!(true), &json!("openai"))
    );
    assert_eq!(client.json("provider.upsert", json!({"id": "LOCAL", "apiKey": " "}))["apiKey"], "key-1");
    assert_eq!(client.json("model.list", json!({})), json!(["local/m", "local/n"]));
    assert_eq!(client.ok("provider.use", json!({"id": "local"})), "local");
    assert_eq!(client.ok("model.switch", json!({"model": "n"})), "switched to local/n");
    assert_eq!(client.ok("agent.mode.switch", json!({"mode": " Plan "})), "plan");
    assert_eq!(client.json("provider.test", json!({"id": "local"}))[0]["online"], true);
    assert!(daemon.stop().success());

    let daemon = Daemon::start_in(&home, &workspace);
    let mut client = daemon.connect();
    assert_eq!(client.ok("agent.mode.get", json!({})), "plan");
    let catalogue = client.json("model.catalog", json!({}));
    let active = |entry: &&Value| entry["active"] == true;
    assert_eq!(catalogue.as_array().unwrap().iter().find(active).unwrap()["ref"], "local/n");
    assert_eq!(client.json("provider.list", json!({}))[0]["apiKey"], "key-1");
    let cleared = client.json("provider.upsert", json!({"id": "local", "clearApiKey": true, "apiKey": "x"}));
    assert_eq!((&cleared["apiKey"], &cleared["apiKeyConfigured"]), (&Value::Null, &json!(false)));
    assert_eq!(client.ok("provider.remove", json!({"id": "local"})), "local");
    assert_eq!(client.json("model.list", json!({})), json!(["builtin/offline"]));
}

#[test]
fn a_workspace_is_found_opened_and_prepared() {
    let home = Home::new();
    let workspace = home.workspace("w");
    let inner = workspace.join("src/deep");
    fs::create_dir_all(&inner).unwrap();
    fs::write(workspace.join("Cargo.toml"), "").unwrap();
    fs::create_dir(workspace.join("skills")).unwrap();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let opened = client.json("workspace.open", json!({"path": inner}));
    assert_eq!((&opened["path"], &opened["name"]), (&json!(workspace), &json!("w")));
    assert_eq!((&opened["projectKinds"], &opened["mode"]), (&json!(["rust"]), &json!("edit")));
    assert_eq!(daemon.connect().json("workspace.get", json!({})), opened);
    let made = client.json("workspace.init", json!({}))["created"].clone();
    let made: Vec<String> = made.as_array().unwrap().iter().map(text).collect();
    assert!(made.contains(&".gitignore (updated)".to_owned()), "{made:?}");
    assert!(!made.iter().any(|path| path.contains("skills")), "{made:?}");
    assert_eq!(client.json("workspace.init", json!({}))["created"], json!([]));
    assert_eq!(events::data_of(&client.lines, "error"), Vec::<String>::new());
}
