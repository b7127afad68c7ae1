use seekclaw_storage::config::model::{Model, Profile, Provider};

use super::*;

fn provider(id: &str, models: &[&str], enabled: bool, priority: i64) -> Provider {
    let models = models.iter().map(|id| Model { id: (*id).to_owned(), ..Model::default() }).collect();
    Provider { id: id.to_owned(), models, enabled, priority, ..Provider::default() }
}

fn config(providers: Vec<Provider>) -> Config {
    Config { providers, ..Config::default() }
}

fn active(config: &Config, own: &WorkspaceConfig) -> Vec<String> {
    let entries = entries(config, own).into_iter();
    entries.filter(|entry| entry.active).map(|entry| entry.reference).collect()
}

#[test]
fn the_built_in_model_is_listed_and_active_while_no_provider_is_enabled() {
    let config = config(vec![provider("p", &["m"], false, 0)]);
    let entries = entries(&config, &WorkspaceConfig::default());
    let shown: Vec<_> =
        entries.iter().map(|e| (e.reference.as_str(), e.active, e.provider_enabled)).collect();
    assert_eq!(shown, [("builtin/offline", true, true), ("p/m", false, false)]);
    assert_eq!(entries.first().unwrap().provider, "builtin");
}

#[test]
fn one_model_is_active_the_head_of_the_chain() {
    let mut config = config(vec![provider("a", &["x", "y"], true, 1), provider("b", &["z"], true, 0)]);
    let own = WorkspaceConfig::default();
    assert_eq!(active(&config, &own), ["b/z"]);
    assert_eq!(choose(&mut config, "A/Y").unwrap(), "switched to a/y");
    assert_eq!(active(&config, &own), ["a/y"]);
    let pinned = WorkspaceConfig { model: Some("b/z".to_owned()), ..own };
    assert_eq!(active(&config, &pinned), ["b/z"]);
}

#[test]
fn switching_writes_provider_and_model_of_the_active_profile() {
    let mut config = config(vec![provider("a", &["vendor/x"], true, 0)]);
    let kept = Profile { strategy: Some("s".to_owned()), ..Profile::default() };
    config.profiles.insert("default".to_owned(), kept);
    choose(&mut config, "vendor/x").unwrap();
    let profile = config.profiles.get("default").unwrap();
    assert_eq!((profile.provider.as_deref(), profile.model.as_deref()), (Some("a"), Some("vendor/x")));
    assert_eq!(profile.strategy.as_deref(), Some("s"));
}

#[test]
fn switching_refuses_what_could_not_answer() {
    let mut config = config(vec![provider("a", &["x"], true, 0), provider("off", &["y"], false, 0)]);
    let before = config.clone();
    let mut refused = |model: &str| choose(&mut config, model).unwrap_err().message;
    assert_eq!(refused("nope"), "Unknown model nope");
    assert_eq!(refused("builtin/offline"), "Unknown model builtin/offline");
    assert_eq!(refused("off/y"), "Model provider is disabled: off");
    assert_eq!(config, before);
}

#[test]
fn switching_to_the_built_in_model_leaves_no_trace() {
    let mut config = Config::default();
    assert_eq!(choose(&mut config, "builtin/offline").unwrap(), "switched to builtin/offline");
    assert_eq!(config, Config::default());
}

#[test]
fn an_entry_has_the_fields_of_the_contract() {
    let config = config(vec![provider("p", &["m"], true, 0)]);
    let entry = entries(&config, &WorkspaceConfig::default()).remove(0);
    let expected = serde_json::json!({
        "ref": "p/m", "active": true, "provider": "p", "providerEnabled": true, "id": "m", "alias": null,
        "contextWindow": 128_000, "maxOutput": 8192, "tags": [],
        "capabilities": {
            "streaming": true, "tools": true, "thinking": false, "vision": false, "reasoning": false,
            "maxReasoningLevel": "max", "mcp": true,
        },
    });
    assert_eq!(serde_json::to_value(entry).unwrap(), expected);
}
