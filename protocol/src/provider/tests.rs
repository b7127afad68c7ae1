use serde_json::{Value, json};

use super::*;

fn upsert(value: Value) -> Result<ProviderUpsert, WireError> {
    ProviderUpsert::from_params(&Params::of(value))
}

#[test]
fn absent_and_blank_texts_keep_what_is_stored() {
    let absent = upsert(json!({"id": " P "})).unwrap();
    let blank =
        upsert(json!({"id": "P", "kind": "", "name": " ", "baseUrl": "", "proxy": null, "apiKey": " "}))
            .unwrap();
    assert_eq!(absent, blank);
    assert_eq!((absent.kind, absent.name, absent.base_url, absent.proxy), (None, None, None, None));
    assert_eq!((absent.api_key, absent.models), (Change::Keep, None));
}

#[test]
fn a_list_url_is_cleared_by_a_present_blank() {
    let url = |value: Value| upsert(json!({"id": "p", "modelListUrl": value})).unwrap().model_list_url;
    assert_eq!(url(json!("")), Change::Clear);
    assert_eq!(url(Value::Null), Change::Clear);
    assert_eq!(url(json!("http://x")), Change::Set("http://x".to_owned()));
    assert_eq!(upsert(json!({"id": "p"})).unwrap().model_list_url, Change::Keep);
}

#[test]
fn clearing_a_key_wins_over_setting_it() {
    let key = |value| upsert(value).unwrap().api_key;
    assert_eq!(key(json!({"id": "p", "apiKey": "k"})), Change::Set(ApiKey("k".to_owned())));
    assert_eq!(key(json!({"id": "p", "apiKey": "k", "clearApiKey": true})), Change::Clear);
    assert_eq!(key(json!({"id": "p", "clearApiKey": false})), Change::Keep);
}

#[test]
fn a_model_list_is_trimmed_without_blanks_and_doubles() {
    let models = upsert(json!({"id": "p", "models": [" a ", "", "b", "a"]})).unwrap().models;
    assert_eq!(models, Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(upsert(json!({"id": "p", "models": []})).unwrap().models, Some(Vec::new()));
}

#[test]
fn each_refusal_has_its_text() {
    for (value, text) in [
        (json!({}), "params.id is required"),
        (json!({"id": "p", "kind": "grpc"}), "Provider kind must be openai or anthropic"),
        (json!({"id": "p", "kind": 1}), "Provider kind must be openai or anthropic"),
        (json!({"id": "p", "name": 1}), "Invalid request: params.name must be a string"),
        (json!({"id": "p", "enabled": "yes"}), "Invalid request: params.enabled must be a boolean"),
        (json!({"id": "p", "priority": 1.5}), "Invalid request: params.priority must be an integer"),
        (
            json!({"id": "p", "timeoutSeconds": 0}),
            "Invalid request: params.timeoutSeconds must be a positive integer",
        ),
        (json!({"id": "p", "models": "a"}), "Invalid request: params.models must be an array of strings"),
    ] {
        assert_eq!(upsert(value).unwrap_err().message, text);
    }
    assert_eq!(base_url_required().message, "Provider baseUrl is required");
    assert_eq!(model_required().message, "At least one model is required");
    assert_eq!(provider_not_found("p").message, "Provider not found: p");
    assert_eq!(no_matching_providers().message, "No matching providers");
}

#[test]
fn testing_names_one_provider_or_none() {
    let test = |value| ProviderTest::from_params(&Params::of(value)).unwrap().id;
    assert_eq!(test(json!({"id": "p"})).as_deref(), Some("p"));
    assert_eq!(test(json!({"id": " "})), None);
}

#[test]
fn a_provider_is_shown_whole_and_its_key_is_never_printed() {
    let view = ProviderView {
        id: "p".to_owned(),
        name: "P".to_owned(),
        kind: ProviderKind::Openai,
        base_url: "http://x".to_owned(),
        api_key: Some(ApiKey("sk-secret".to_owned())),
        api_key_configured: true,
        models: vec!["m".to_owned()],
        enabled: true,
        priority: 1,
        timeout_seconds: 120,
        model_list_url: None,
        prompt_caching: true,
        proxy: None,
        active: false,
    };
    assert!(!format!("{view:?}").contains("sk-secret"));
    let expected = json!({
        "id": "p", "name": "P", "kind": "openai", "baseUrl": "http://x", "apiKey": "sk-secret",
        "apiKeyConfigured": true, "models": ["m"], "enabled": true, "priority": 1, "timeoutSeconds": 120,
        "modelListUrl": null, "promptCaching": true, "proxy": null, "active": false,
    });
    assert_eq!(serde_json::to_value(view).unwrap(), expected);
}
