//! What methods refuse, in the words of the contract.

use serde_json::{Map, Value, json};

use crate::kit::{Client, Daemon, Home};

/// Sends what must be refused: method, params, text, code.
fn expect_refusals(client: &mut Client, refusals: &[(&str, Value, &str, &str)]) {
    for (method, params, said, code) in refusals {
        let answer = client.call(method, params.clone());
        assert_eq!(answer["event"], "error", "{method} {params}: {answer}");
        assert_eq!(answer["data"], *said, "{method} {params}");
        assert_eq!(answer["details"]["code"], *code, "{method} {params}");
        let names_session = matches!(*method, "chat" | "agent.steer");
        assert!(names_session || answer.get("sessionId").is_none(), "{method} {params}: {answer}");
    }
}

/// What is said where there is neither text nor image.
const NOTHING: &str = "params.message or params.images is required";

#[test]
fn prompts_are_refused_with_the_texts_of_the_contract() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let image = |media: &str, data: &str| json!({"name": "i.png", "mediaType": media, "data": data});
    let many = vec![image("image/png", "aGk="); 11];
    let of_images = [
        (json!(7), "params.images must be an array"),
        (json!(many), "A turn supports at most 10 images"),
        (json!([7]), "Each params.images item must be an object"),
        (json!([image("image/png", " ")]), "Each image requires name and base64 data"),
        (json!([{"mediaType": "image/png", "data": "aGk="}]), "Each image requires name and base64 data"),
        (json!([image("image/svg+xml", "aGk=")]), "Unsupported image type for i.png: image/svg+xml"),
        (json!([{"name": "i", "data": "aGk="}]), "Unsupported image type for i: unknown"),
        (json!([image("image/png", "%%")]), "Image i.png contains invalid base64 data"),
    ];
    for method in ["chat", "agent.runTurn", "agent/runTurn", "agent.steer"] {
        for params in [json!({}), json!([]), json!({"message": " \n"}), json!({"message": "", "images": []})]
        {
            expect_refusals(&mut client, &[(method, params, NOTHING, "invalid_params")]);
        }
        for (images, said) in &of_images {
            let params = json!({"message": "a", "images": images});
            expect_refusals(&mut client, &[(method, params, said, "invalid_params")]);
        }
    }
}

#[test]
fn a_chat_for_nowhere_or_with_wrong_wishes_is_refused() {
    let home = Home::new();
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let session = client.ok("session.new", json!({ "workspace": workspace }));
    let with = |name: &str, value: Value| {
        let mut params = json!({"message": "a", "sessionId": session, "workspace": workspace});
        params[name] = value;
        params
    };
    let elsewhere = format!("Session {session} not found");
    let level = "params.reasoningLevel must be one of: none, low, medium, high, max, xhigh, ultra";
    let mode = "params.mode must be one of: plan, readonly, edit, auto";
    let nowhere = "Workspace directory not found: /no/such/place";
    let no_turn = "No active turn found for this session";
    expect_refusals(
        &mut client,
        &[
            ("chat", with("workspace", json!("/no/such/place")), nowhere, "not_found"),
            ("chat", with("sessionId", json!("nope")), "Session nope not found", "not_found"),
            ("chat", with("sessionId", json!("../x")), "Session ../x not found", "not_found"),
            ("chat", with("sessionId", json!("")), "Session  not found", "not_found"),
            ("chat", with("global", json!(true)), &elsewhere, "not_found"),
            ("chat", with("reasoningLevel", json!("huge")), level, "invalid_params"),
            ("chat", with("reasoningLevel", json!(3)), level, "invalid_params"),
            ("chat", with("mode", json!("root")), mode, "invalid_params"),
            ("chat", with("model", json!("none")), "Unknown model none", "not_found"),
            ("agent.steer", json!({"message": "a"}), no_turn, "not_found"),
            ("agent.steer", json!({"message": "a", "sessionId": session}), no_turn, "not_found"),
            ("agent.steer", json!({"message": "a", "requestId": 99}), no_turn, "not_found"),
        ],
    );
}

#[test]
fn session_ids_appear_only_where_the_desktop_expects_them() {
    let home = Home::new();
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let session = client.ok("session.new", json!({ "workspace": workspace }));
    let named = |message: &str| json!({"message": message, "sessionId": "nope", "workspace": workspace});
    assert_eq!(client.call("chat", named("a"))["sessionId"], "nope");
    assert!(client.call("chat", named(" ")).get("sessionId").is_none());
    assert_eq!(client.call("agent.steer", named("a"))["sessionId"], "nope");
    assert!(client.call("agent.steer", named("")).get("sessionId").is_none());
    assert!(client.call("agent.steer", json!({"message": "a"})).get("sessionId").is_none());
    for (method, params) in [
        ("session.get", json!({"id": session, "workspace": workspace})),
        ("session.get", json!({"id": "nope", "workspace": workspace})),
        ("session.update", json!({"id": session, "title": "t", "workspace": workspace})),
        ("session.list", json!({ "workspace": workspace })),
        ("session.resume", json!({"id": session, "workspace": workspace})),
        ("session.archive", json!({"id": session, "workspace": workspace})),
        ("agent.cancel", json!({})),
        ("workspace.get", json!({})),
        ("session.delete", json!({"id": session, "workspace": workspace})),
    ] {
        let answer = client.call(method, params);
        assert!(answer.get("sessionId").is_none(), "{method}: {answer}");
        assert!(answer["data"].is_string(), "{method}: {answer}");
    }
}

#[test]
fn session_methods_are_refused_with_the_texts_of_the_contract() {
    let home = Home::new();
    let workspace = home.workspace("w");
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let session = client.ok("session.new", json!({ "workspace": workspace }));
    let with = |more: Value| {
        let mut params: Map<String, Value> = more.as_object().unwrap().clone();
        params.insert("workspace".to_owned(), json!(workspace));
        Value::Object(params)
    };
    let level = "params.reasoningLevel must be one of: none, low, medium, high, max, xhigh, ultra";
    let invalid = "Invalid session id. (Parameter 'sessionId')";
    let keep = "params.keepCount is required (>= 0)";
    expect_refusals(
        &mut client,
        &[
            ("session.get", with(json!({})), "params.id is required", "invalid_params"),
            ("session.get", with(json!({"id": " "})), "params.id is required", "invalid_params"),
            (
                "session.get",
                with(json!({"id": 7})),
                "Invalid request: params.id must be a string",
                "invalid_request",
            ),
            ("session.get", with(json!({"id": "a/b"})), invalid, "invalid_params"),
            ("session.get", with(json!({"id": "a\\b"})), invalid, "invalid_params"),
            ("session.get", with(json!({"id": "x".repeat(129)})), invalid, "invalid_params"),
            ("session.get", with(json!({"id": "nope"})), "Session not found: nope", "not_found"),
            ("session.update", with(json!({"id": "nope"})), "Session not found: nope", "not_found"),
            (
                "session.update",
                with(json!({"id": session, "reasoningLevel": "huge"})),
                level,
                "invalid_params",
            ),
            ("session.archive", with(json!({"id": "nope"})), "Session not found: nope", "not_found"),
            ("session.delete", with(json!({"id": "nope"})), "Session not found: nope", "not_found"),
            ("session.delete", with(json!({"id": "a/b"})), invalid, "invalid_params"),
            ("session.truncate", with(json!({"id": session})), keep, "invalid_params"),
            ("session.truncate", with(json!({"id": session, "keepCount": -1})), keep, "invalid_params"),
            ("session.truncate", with(json!({"id": session, "keepCount": "2"})), keep, "invalid_params"),
            ("session.resume", with(json!({})), "params.id is required", "invalid_params"),
            ("session.resume", with(json!({"id": "nope"})), "Session nope not found", "not_found"),
            ("session.resume", with(json!({"id": "a/b"})), "Session a/b not found", "not_found"),
            ("session.new", with(json!({"reasoningLevel": "huge"})), level, "invalid_params"),
            (
                "session.new",
                json!({"workspace": "/no/such/place"}),
                "Workspace directory not found: /no/such/place",
                "not_found",
            ),
            (
                "session.list",
                json!({"workspace": 7}),
                "Invalid request: params.workspace must be a string",
                "invalid_request",
            ),
            (
                "session.list",
                json!({"global": "yes"}),
                "Invalid request: params.global must be a boolean",
                "invalid_request",
            ),
        ],
    );
    assert_eq!(client.ok("session.truncate", with(json!({"id": "nope", "keepCount": 3}))), "0");
}

#[test]
fn settings_are_refused_with_the_texts_of_the_contract() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let mode = "params.mode must be one of: plan, readonly, edit, auto";
    expect_refusals(
        &mut client,
        &[
            ("agent.mode.switch", json!({}), mode, "invalid_params"),
            ("agent.mode.switch", json!({"mode": "root"}), mode, "invalid_params"),
            ("workspace.open", json!({}), "params.path is required", "invalid_params"),
            (
                "workspace.open",
                json!({"path": 7}),
                "Invalid request: params.path must be a string",
                "invalid_request",
            ),
            (
                "workspace.open",
                json!({"path": "/no/such/place"}),
                "Workspace directory not found: /no/such/place",
                "not_found",
            ),
            ("model.switch", json!({}), "params.model is required", "invalid_params"),
            ("model.switch", json!({"model": "none"}), "Unknown model none", "not_found"),
            ("model.test", json!({"model": "none"}), "Model not found: none", "not_found"),
            ("provider.upsert", json!({}), "params.id is required", "invalid_params"),
            (
                "provider.upsert",
                json!({"id": "x", "kind": "other"}),
                "Provider kind must be openai or anthropic",
                "invalid_params",
            ),
            ("provider.upsert", json!({"id": "x"}), "Provider baseUrl is required", "invalid_params"),
            (
                "provider.upsert",
                json!({"id": "x", "baseUrl": "http://127.0.0.1:1"}),
                "At least one model is required",
                "invalid_params",
            ),
            (
                "provider.upsert",
                json!({"id": "a/b", "baseUrl": "http://x/v1", "models": ["m"]}),
                "Provider id must not contain slashes or blanks",
                "invalid_params",
            ),
            (
                "provider.upsert",
                json!({"id": "a", "baseUrl": "127.0.0.1:1/v1", "models": ["m"]}),
                "Provider baseUrl must be an http or https URL",
                "invalid_params",
            ),
            ("provider.use", json!({"id": "none"}), "Provider not found: none", "not_found"),
            ("provider.remove", json!({"id": "none"}), "Provider not found: none", "not_found"),
            ("provider.test", json!({"id": "none"}), "No matching providers", "not_found"),
        ],
    );
    assert_eq!(client.json("provider.list", json!({})), json!([]));
}

#[test]
fn images_are_bounded_one_by_one_and_together() {
    const MIB: usize = 1024 * 1024;
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    // Four characters stand for three bytes.
    let image = |bytes: usize| json!({"name": "i.png", "mediaType": "image/png", "data": "AAAA".repeat(bytes / 3 + 1)});
    let one = json!({"images": [image(10 * MIB)]});
    let all = json!({"images": vec![image(9 * MIB); 5]});
    expect_refusals(
        &mut client,
        &[
            ("chat", one, "Image i.png exceeds the 10 MB limit", "invalid_params"),
            ("chat", all, "Images exceed the 40 MB total limit", "invalid_params"),
        ],
    );
}
