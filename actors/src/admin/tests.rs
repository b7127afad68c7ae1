use std::fs;

use seekclaw_protocol::doctor::report;
use seekclaw_protocol::mode::ModeSwitch;
use seekclaw_protocol::model::ModelParams;
use seekclaw_protocol::provider::{ProviderParams, ProviderTest, ProviderUpsert};
use seekclaw_protocol::workspace::WorkspaceOpen;
use seekclaw_protocol::{FromParams, Mode, Params};
use serde_json::{Value, json};

use super::{AdminContext, doctor, mode, model, provider, workspace};
use crate::config::kit::Disk;

fn read<P: FromParams>(value: Value) -> P {
    let Value::Object(map) = value else { panic!("params are an object") };
    P::from_params(&Params(map)).unwrap()
}

fn alpha() -> ProviderUpsert {
    read(json!({"id": "alpha", "baseUrl": "http://127.0.0.1:9/v1", "models": ["m1", "m2"], "apiKey": "sk-1"}))
}

async fn context(disk: &Disk) -> AdminContext {
    AdminContext { config: disk.serve().await }
}

#[tokio::test]
async fn a_workspace_shows_path_name_kinds_and_mode() {
    let disk = Disk::new();
    let context = context(&disk).await;
    let shown = |path: &str, name: &str, kinds: Value| json!({"path": disk.root.join(path), "name": name, "projectKinds": kinds, "mode": "edit"});
    let view = workspace::get(&context).await.unwrap();
    assert_eq!(serde_json::to_value(view).unwrap(), shown("work", "work", json!(["rust"])));
    let inner = disk.root.join("other/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(disk.root.join("other/go.mod"), "").unwrap();
    let view = workspace::open(WorkspaceOpen { path: inner.display().to_string() }, &context).await.unwrap();
    assert_eq!(serde_json::to_value(view).unwrap(), shown("other", "other", json!(["go"])));
    assert_eq!(workspace::get(&context).await.unwrap().name, "other");
    let made = workspace::init(&context).await.unwrap();
    assert_eq!((made.path, made.created.len()), (disk.root.join("other").display().to_string(), 9));
    assert_eq!(workspace::init(&context).await.unwrap().created, Vec::<String>::new());
}

#[tokio::test]
async fn a_switched_mode_is_kept_in_the_file_of_the_opened_workspace() {
    let disk = Disk::new();
    let own = disk.write_own("{}");
    let context = context(&disk).await;
    assert_eq!(mode::get(&context).await.unwrap(), Mode::Edit);
    let switched = mode::switch(read::<ModeSwitch>(json!({"mode": " Plan "})), &context).await.unwrap();
    assert_eq!((switched, mode::get(&context).await.unwrap()), (Mode::Plan, Mode::Plan));
    let own: Value = serde_json::from_str(&fs::read_to_string(own).unwrap()).unwrap();
    assert_eq!(own, json!({"mode": "plan"}));
    assert_eq!(disk.load().current().mode(), Mode::Plan, "and survives the daemon");
}

#[tokio::test]
async fn a_key_is_shown_kept_by_a_blank_and_gone_when_cleared() {
    let disk = Disk::new();
    let context = context(&disk).await;
    let key = |shown: seekclaw_protocol::provider::ProviderView| shown.api_key.map(|key| key.0);
    assert_eq!(key(provider::upsert(alpha(), &context).await.unwrap()).as_deref(), Some("sk-1"));
    let blank = read(json!({"id": "alpha", "apiKey": " "}));
    assert_eq!(key(provider::upsert(blank, &context).await.unwrap()).as_deref(), Some("sk-1"));
    assert_eq!(disk.load().current().config.providers.first().unwrap().api_key.as_deref(), Some("sk-1"));
    let cleared = read(json!({"id": "alpha", "clearApiKey": true}));
    provider::upsert(cleared, &context).await.unwrap();
    context.config.reload().await.unwrap();
    assert!(!provider::list(&context).await.unwrap().first().unwrap().api_key_configured);
    assert!(!disk.read().contains("sk-1"));
}

#[tokio::test]
async fn providers_and_models_are_chosen_and_removed() {
    let disk = Disk::new();
    let context = context(&disk).await;
    assert_eq!(model::list(&context).await.unwrap(), ["builtin/offline"]);
    provider::upsert(alpha(), &context).await.unwrap();
    assert_eq!(model::list(&context).await.unwrap(), ["alpha/m1", "alpha/m2"]);
    let id = || ProviderParams { id: "ALPHA".to_owned() };
    assert_eq!(provider::select(id(), &context).await.unwrap(), "alpha");
    let chosen = model::switch(ModelParams { model: "m2".to_owned() }, &context).await.unwrap();
    assert_eq!(chosen, "switched to alpha/m2");
    let active = model::catalog(&context).await.unwrap().into_iter().find(|entry| entry.active);
    assert_eq!(active.unwrap().reference, "alpha/m2");
    assert_eq!(provider::remove(id(), &context).await.unwrap(), "ALPHA");
    assert_eq!(provider::list(&context).await.unwrap(), []);
    assert_eq!(provider::select(id(), &context).await.unwrap_err().message, "Provider not found: ALPHA");
    let profile = context.config.current().config.profiles.get("default").cloned().unwrap();
    assert_eq!((profile.provider, profile.model), (None, None));
}

#[tokio::test]
async fn tests_answer_with_a_result_also_when_nobody_is_there() {
    let disk = Disk::new();
    let context = context(&disk).await;
    let all = || ProviderTest::default();
    assert_eq!(provider::test(all(), &context).await.unwrap_err().message, "No matching providers");
    let unknown = model::test(ModelParams { model: "m9".to_owned() }, &context).await.unwrap_err();
    assert_eq!(unknown.message, "Model not found: m9");

    let mut off = alpha();
    off.enabled = Some(false);
    provider::upsert(off, &context).await.unwrap();
    let probes = provider::test(all(), &context).await.unwrap();
    let probe = probes.first().unwrap();
    assert_eq!((probes.len(), probe.id.as_str(), probe.online), (1, "alpha", false));
    let other = ProviderTest { id: Some("beta".to_owned()) };
    assert_eq!(provider::test(other, &context).await.unwrap_err().message, "No matching providers");
    let tested = model::test(ModelParams { model: "alpha/m1".to_owned() }, &context).await.unwrap();
    assert_eq!((tested.model.as_str(), tested.success), ("alpha/m1", false));
    assert!(tested.detail.starts_with("Cannot reach alpha: "), "{}", tested.detail);
}

#[tokio::test]
async fn doctor_reports_the_checks_in_the_order_of_the_contract() {
    let disk = Disk::new();
    let context = context(&disk).await;
    provider::upsert(alpha(), &context).await.unwrap();
    let (work, file) = (disk.work().display().to_string(), disk.file().display().to_string());
    let lines = [
        format!("[OK] Workspace Root: {work}"),
        "[FAIL] SeekClaw Metadata Dir: not initialized, `workspace.init` creates it".to_owned(),
        "[OK] Provider Config: 1 provider, active profile default".to_owned(),
        "[FAIL] Workspace Memory: no MEMORY.md yet".to_owned(),
        format!("[OK] Config File: {file}"),
    ];
    assert_eq!(report(&doctor::local_checks(&context).await.unwrap()), lines.join("\n"));

    workspace::init(&context).await.unwrap();
    let memory = disk.work().join(".seekclaw/memory/MEMORY.md");
    fs::write(&memory, "").unwrap();
    disk.write("[]");
    let checks = doctor::local_checks(&context).await.unwrap();
    let lines: Vec<String> = checks.iter().map(|check| check.line()).collect();
    assert_eq!(lines.get(1).unwrap(), &format!("[OK] SeekClaw Metadata Dir: {work}/.seekclaw"));
    assert_eq!(lines.get(3).unwrap(), &format!("[OK] Workspace Memory: {}", memory.display()));
    let broken = format!("[FAIL] Config File: Invalid config: {file}: line 1, column 1");
    assert_eq!(lines.get(4).unwrap(), &broken);
}
