use seekclaw_storage::config::model::Provider;

use super::*;

fn config(enabled: &[bool]) -> Config {
    let provider = |enabled: &bool| Provider { enabled: *enabled, ..Provider::default() };
    Config { providers: enabled.iter().map(provider).collect(), ..Config::default() }
}

#[test]
fn the_provider_row_counts_and_names_the_profile() {
    let line = |enabled: &[bool]| providers(&config(enabled), &[]).line();
    assert_eq!(line(&[true]), "[OK] Provider Config: 1 provider, active profile default");
    assert_eq!(
        line(&[true, false, true]),
        "[OK] Provider Config: 3 providers, 1 disabled, active profile default"
    );
    assert_eq!(
        line(&[false, false]),
        "[FAIL] Provider Config: none of 2 providers is enabled, so that builtin/offline answers"
    );
}

#[test]
fn without_a_provider_the_row_says_how_to_add_one() {
    let line = providers(&config(&[]), &[]).line();
    let expected = "[FAIL] Provider Config: no provider is configured, so that builtin/offline answers; \
        add one with `seekclaw provider add ID --base-url URL --model MODEL`";
    assert_eq!(line, expected);
}

#[test]
fn a_server_on_this_machine_is_offered_by_name() {
    let server = |name: &str, models: &[&str]| LocalServer {
        name: name.to_owned(),
        base_url: "http://127.0.0.1:1/v1".to_owned(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
    };
    let line =
        providers(&config(&[]), &[server("LM Studio", &["tiny", "big"]), server("Ollama", &[])]).line();
    let expected = "[FAIL] Provider Config: no provider is configured, so that builtin/offline answers; \
        LM Studio answers at http://127.0.0.1:1/v1: add it with \
        `seekclaw provider add lm-studio --base-url http://127.0.0.1:1/v1 --model tiny`; \
        Ollama answers at http://127.0.0.1:1/v1: add it with \
        `seekclaw provider add ollama --base-url http://127.0.0.1:1/v1 --model MODEL`";
    assert_eq!(line, expected);
}
