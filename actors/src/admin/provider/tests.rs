use seekclaw_protocol::{FromParams, Params};
use serde_json::{Value, json};

use super::*;

fn params(value: Value) -> Params {
    let Value::Object(map) = value else { panic!("params are an object") };
    Params(map)
}

fn upserted(config: &mut Config, value: Value) -> Result<ProviderView, WireError> {
    apply(config, ProviderUpsert::from_params(&params(value))?)
}

fn refused(config: &mut Config, value: Value) -> String {
    let before = config.clone();
    let error = upserted(config, value).unwrap_err();
    assert_eq!(*config, before, "a refused change changes nothing");
    error.message
}

fn with(providers: &[Value]) -> Config {
    let mut config = Config::default();
    for provider in providers {
        upserted(&mut config, provider.clone()).unwrap();
    }
    config
}

fn alpha() -> Value {
    json!({"id": "Alpha", "baseUrl": "http://a/v1", "models": ["m1", "m2"], "apiKey": "sk-a"})
}

fn active(config: &Config) -> Profile {
    config.profiles.get(&config.active_profile).cloned().unwrap_or_default()
}

#[test]
fn a_new_provider_gets_the_defaults_of_the_contract() {
    let mut config = Config::default();
    let shown = upserted(&mut config, alpha()).unwrap();
    let expected = json!({
        "id": "Alpha", "name": "Alpha", "kind": "openai", "baseUrl": "http://a/v1", "apiKey": "sk-a",
        "apiKeyConfigured": true, "models": ["m1", "m2"], "enabled": true, "priority": 0,
        "timeoutSeconds": 120, "modelListUrl": null, "promptCaching": true, "proxy": null, "active": false,
    });
    assert_eq!(serde_json::to_value(shown).unwrap(), expected);
}

#[test]
fn what_is_missing_is_named_and_nothing_is_half_changed() {
    let mut config = with(&[alpha()]);
    assert_eq!(refused(&mut config, json!({"id": "b", "models": ["m"]})), "Provider baseUrl is required");
    assert_eq!(
        refused(&mut config, json!({"id": "b", "baseUrl": "http://b"})),
        "At least one model is required"
    );
    let emptied = json!({"id": "alpha", "name": "New", "models": [" "], "clearApiKey": true});
    assert_eq!(refused(&mut config, emptied), "At least one model is required");
    let kind = json!({"id": "alpha", "name": "New", "kind": "gemini"});
    assert_eq!(refused(&mut config, kind), "Provider kind must be openai or anthropic");
}

#[test]
fn ids_match_in_any_case_and_absent_or_blank_values_stay() {
    let mut config = with(&[alpha()]);
    let set = json!({"id": "ALPHA", "name": "A", "proxy": "http://p", "priority": 3, "kind": "Anthropic"});
    upserted(&mut config, set).unwrap();
    let blank = json!({"id": "alpha", "name": " ", "proxy": "", "baseUrl": "", "kind": "", "enabled": false});
    let shown = upserted(&mut config, blank).unwrap();
    assert_eq!(config.providers.len(), 1);
    assert_eq!((shown.id.as_str(), shown.name.as_str(), shown.priority), ("Alpha", "A", 3));
    assert_eq!((shown.proxy.as_deref(), shown.base_url.as_str()), (Some("http://p"), "http://a/v1"));
    assert_eq!((shown.kind, shown.enabled), (WireKind::Anthropic, false));
}

#[test]
fn a_blank_key_keeps_and_clear_wins() {
    let mut config = with(&[alpha()]);
    let key = |config: &mut Config, change: Value| {
        let mut change = change;
        change["id"] = json!("alpha");
        upserted(config, change).unwrap().api_key.map(|key| key.0)
    };
    assert_eq!(key(&mut config, json!({"apiKey": ""})).as_deref(), Some("sk-a"));
    assert_eq!(key(&mut config, json!({"apiKey": "sk-b"})).as_deref(), Some("sk-b"));
    assert_eq!(key(&mut config, json!({"apiKey": "sk-c", "clearApiKey": true})), None);
    assert!(!listed(&config).first().unwrap().api_key_configured);
}

#[test]
fn the_model_list_url_is_cleared_by_a_present_blank() {
    let mut config = with(&[alpha()]);
    let url = |config: &mut Config, change: Value| upserted(config, change).unwrap().model_list_url;
    let set = json!({"id": "alpha", "modelListUrl": "http://l"});
    assert_eq!(url(&mut config, set).as_deref(), Some("http://l"));
    assert_eq!(url(&mut config, json!({"id": "alpha"})).as_deref(), Some("http://l"));
    assert_eq!(url(&mut config, json!({"id": "alpha", "modelListUrl": " "})), None);
}

#[test]
fn models_that_survive_keep_their_settings() {
    let mut config = with(&[alpha()]);
    let model = config.providers.first_mut().unwrap().models.get_mut(1).unwrap();
    model.alias = Some("two".to_owned());
    model.context_window = 5;
    let shown = upserted(&mut config, json!({"id": "alpha", "models": ["M2", "m3"]})).unwrap();
    assert_eq!(shown.models, ["M2", "m3"]);
    let models = &config.providers.first().unwrap().models;
    assert_eq!(models.iter().map(|m| m.context_window).collect::<Vec<_>>(), [5, 128_000]);
    assert_eq!(models.first().unwrap().alias.as_deref(), Some("two"));
}

#[test]
fn the_list_is_sorted_by_priority_then_id() {
    let provider = |id: &str, priority: i64| json!({"id": id, "baseUrl": "http://x", "models": ["m"], "priority": priority});
    let config = with(&[provider("c", 1), provider("b", 2), provider("a", 2), provider("d", -1)]);
    let ids: Vec<String> = listed(&config).into_iter().map(|provider| provider.id).collect();
    assert_eq!(ids, ["d", "c", "a", "b"]);
}

#[test]
fn using_a_provider_moves_the_model_unless_it_belongs_to_it() {
    let beta = json!({"id": "beta", "baseUrl": "http://b", "models": ["x", "m2"]});
    let mut config = with(&[alpha(), beta]);
    assert_eq!(choose(&mut config, "ALPHA").unwrap(), "Alpha");
    assert_eq!((active(&config).provider, active(&config).model), (Some("Alpha".into()), Some("m1".into())));
    assert!(listed(&config).first().unwrap().active);

    config.profiles.get_mut("default").unwrap().model = Some("m2".into());
    choose(&mut config, "alpha").unwrap();
    assert_eq!(active(&config).model.as_deref(), Some("m2"));
    choose(&mut config, "beta").unwrap();
    assert_eq!(active(&config).model.as_deref(), Some("x"), "the m2 of another provider is another model");
    config.profiles.get_mut("default").unwrap().model = Some("alpha/m2".into());
    choose(&mut config, "alpha").unwrap();
    assert_eq!(active(&config).model.as_deref(), Some("m2"));

    let error = choose(&mut config, "gamma").unwrap_err();
    assert_eq!(error.message, "Provider not found: gamma");
}

#[test]
fn removing_a_provider_clears_every_profile_that_named_it() {
    let mut config = with(&[alpha()]);
    let profile = |provider: Option<&str>, model: &str| Profile {
        provider: provider.map(str::to_owned),
        model: Some(model.to_owned()),
        strategy: Some("s".to_owned()),
        ..Profile::default()
    };
    let profiles = [
        ("by-provider", profile(Some("ALPHA"), "m1")),
        ("by-model", profile(None, "alpha/m1")),
        ("other", profile(Some("beta"), "alpha/m1")),
    ];
    config.profiles.extend(profiles.into_iter().map(|(name, profile)| (name.to_owned(), profile)));
    forget(&mut config, "alpha").unwrap();
    let cleared = Profile { strategy: Some("s".to_owned()), ..Profile::default() };
    assert_eq!(config.profiles.get("by-provider"), Some(&cleared));
    assert_eq!(config.profiles.get("by-model"), Some(&cleared));
    assert_eq!(config.profiles.get("other"), Some(&profile(Some("beta"), "alpha/m1")));
    assert_eq!(forget(&mut config, "Alpha").unwrap_err().message, "Provider not found: Alpha");
}
