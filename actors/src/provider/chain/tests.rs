use std::collections::BTreeMap;

use seekclaw_storage::config::model::Profile;

use super::*;

/// `id priority enabled model[=alias][+vision] …`
fn provider(text: &str) -> Provider {
    let mut words = text.split_whitespace();
    let mut next = || words.next().unwrap();
    let (id, priority, enabled) = (next().to_owned(), next().parse().unwrap(), next() == "on");
    let models = words.map(|word| {
        let (word, vision) = word.strip_suffix("+vision").map_or((word, false), |word| (word, true));
        let (id, alias) = word.split_once('=').map_or((word, None), |(id, alias)| (id, Some(alias)));
        let mut model = Model { id: id.to_owned(), alias: alias.map(str::to_owned), ..Model::default() };
        model.capabilities.vision = vision;
        model
    });
    Provider { id, priority, enabled, models: models.collect(), ..Provider::default() }
}

fn config(providers: &[&str]) -> Config {
    Config { providers: providers.iter().map(|text| provider(text)).collect(), ..Config::default() }
}

fn sample() -> Config {
    config(&["B 2 on big=strong small", "a 1 on fast small eyes+vision", "off 0 no hidden=secret"])
}

fn chain(config: &Config, workspace: &WorkspaceConfig) -> Vec<String> {
    candidates(config, workspace, None, false).unwrap().iter().map(Candidate::reference).collect()
}

fn found(config: &Config, reference: &str) -> Option<String> {
    resolve(config, reference).map(|candidate| candidate.reference())
}

#[test]
fn references_are_resolved_in_any_case_and_only_if_unambiguous() {
    let config = sample();
    assert_eq!(found(&config, "b/BIG").as_deref(), Some("B/big"));
    assert_eq!(found(&config, "b/Strong").as_deref(), Some("B/big"));
    assert_eq!(found(&config, " STRONG ").as_deref(), Some("B/big"));
    assert_eq!(found(&config, "fast").as_deref(), Some("a/fast"));
    assert_eq!(found(&config, "small"), None, "two providers have it");
    assert_eq!(found(&config, "a/small").as_deref(), Some("a/small"));
    assert_eq!(found(&config, "secret").as_deref(), Some("off/hidden"));
    assert_eq!(found(&config, "nothing"), None);
    assert_eq!(found(&config, "builtin/offline"), None, "gone once a provider is enabled");
}

#[test]
fn model_ids_with_slashes_are_found_with_and_without_their_provider() {
    let config = config(&["router 0 on vendor/model"]);
    assert_eq!(found(&config, "router/vendor/model").as_deref(), Some("router/vendor/model"));
    assert_eq!(found(&config, "vendor/model").as_deref(), Some("router/vendor/model"));
}

#[test]
fn an_enabled_model_hides_a_disabled_one_of_the_same_id() {
    let config = config(&["old 0 no m", "new 0 on m"]);
    assert_eq!(found(&config, "m").as_deref(), Some("new/m"));
}

#[test]
fn without_routing_every_enabled_model_is_asked_by_priority() {
    let all = ["a/fast", "a/small", "a/eyes", "B/big", "B/small"];
    assert_eq!(chain(&sample(), &WorkspaceConfig::default()), all);
    assert_eq!(listed(&sample()).iter().map(Candidate::reference).collect::<Vec<_>>(), all);
    assert_eq!(catalog(&sample()).len(), 6);
}

#[test]
fn the_chain_is_workspace_profile_strategy_fallback() {
    let mut config = sample();
    let profile = Profile {
        provider: Some("b".to_owned()),
        model: Some("small".to_owned()),
        strategy: Some("mine".to_owned()),
        ..Profile::default()
    };
    config.profiles.insert("default".to_owned(), profile);
    let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    config.routing.strategies = BTreeMap::from([
        ("mine".to_owned(), list("strong off/hidden nothing b/small")),
        ("balanced".to_owned(), list("a/eyes")),
    ]);
    config.routing.fallback = list("a/small");
    let workspace = WorkspaceConfig { model: Some("fast".to_owned()), ..WorkspaceConfig::default() };
    assert_eq!(chain(&config, &workspace), ["a/fast", "B/small", "B/big", "a/small"]);

    let other = WorkspaceConfig { strategy: Some("Balanced".to_owned()), ..WorkspaceConfig::default() };
    assert_eq!(chain(&config, &other), ["B/small", "a/eyes", "a/small"]);
    config.routing.failover_enabled = false;
    assert_eq!(chain(&config, &other), ["B/small"]);
}

#[test]
fn a_provider_alone_means_its_first_model() {
    let workspace = WorkspaceConfig { provider: Some("b".to_owned()), ..WorkspaceConfig::default() };
    assert_eq!(chain(&sample(), &workspace), ["B/big"]);
}

#[test]
fn the_choice_of_a_turn_comes_first_and_must_exist() {
    let config = sample();
    let choose = |choice| candidates(&config, &WorkspaceConfig::default(), Some(choice), false);
    assert_eq!(choose("strong").unwrap().first().unwrap().reference(), "B/big");
    assert_eq!(choose("nope").unwrap_err().to_string(), "Unknown model nope");
    assert_eq!(choose("secret").unwrap_err().to_string(), "Model provider is disabled: off");
}

#[test]
fn images_need_a_model_that_sees() {
    let see = |config: &Config| candidates(config, &WorkspaceConfig::default(), None, true);
    assert_eq!(see(&sample()).unwrap().first().unwrap().reference(), "a/eyes");
    let blind = see(&config(&["a 0 on m"])).unwrap_err();
    assert_eq!(WireError::from(blind.clone()).code, ErrorCode::NoModel);
    let text = "The current routing profile has no model that supports image understanding.";
    assert_eq!(blind.to_string(), text);
}

#[test]
fn nothing_enabled_means_the_built_in_model_and_nothing_configured_is_said() {
    let off = config(&["off 0 no m"]);
    assert_eq!(chain(&off, &WorkspaceConfig::default()), ["builtin/offline"]);
    assert_eq!(found(&off, "Builtin/Offline").as_deref(), Some("builtin/offline"));
    let empty = candidates(&config(&["a 0 on"]), &WorkspaceConfig::default(), None, false);
    let error = empty.unwrap_err();
    assert!(error.to_string().starts_with("No models configured. "), "{error}");
    assert!(error.to_string().contains("seekclaw provider add") && error.to_string().contains("config.json"));
}

#[test]
fn the_optimisation_is_for_its_provider_only() {
    let mut config = config(&["deepseek 0 on chat", "a 1 on m"]);
    let optimized = |config: &Config, name| resolve(config, name).unwrap().deep_seek_optimized;
    assert!(!optimized(&config, "chat"));
    config.routing.deep_seek_optimization_enabled = true;
    assert!(optimized(&config, "chat") && !optimized(&config, "m"));
}

#[test]
fn a_candidate_in_a_log_shows_no_key() {
    let mut config = sample();
    for provider in &mut config.providers {
        provider.api_key = Some("sk-canary".to_owned());
    }
    let shown = format!("{:?}", listed(&config));
    assert!(shown.contains("a/fast") && !shown.contains("canary"), "{shown}");
}
