use serde_json::{Value, json};

use super::*;

fn read<T: FromParams>(value: Value) -> Result<T, WireError> {
    T::from_params(&Params::of(value))
}

fn facts() -> SessionFacts {
    SessionFacts {
        archived: false,
        reasoning_level: ReasoningLevel::Xhigh,
        network_enabled: true,
        llm_rounds: 1,
        execution_steps: 2,
        input_tokens: 3,
        total_input_tokens: 4,
        cached_input_tokens: 5,
        output_tokens: 6,
        output_elapsed_ms: 7,
        created_at: Timestamp(0),
        updated_at: Timestamp(1),
    }
}

fn header() -> SessionHeader {
    SessionHeader { id: "s".to_owned(), title: None, workspace: None, facts: facts() }
}

#[test]
fn an_id_is_required_and_an_ill_formed_one_has_its_own_text() {
    assert_eq!(read::<SessionParams>(json!({})).unwrap_err().message, "params.id is required");
    assert_eq!(read::<SessionResume>(json!({"id": " "})).unwrap_err().message, "params.id is required");
    let type_error = "Invalid request: params.id must be a string";
    assert_eq!(read::<SessionParams>(json!({"id": 1})).unwrap_err().message, type_error);
    for id in ["a/b", "a\\b", "..", &"x".repeat(129)] {
        let invalid = "Invalid session id. (Parameter 'sessionId')";
        assert_eq!(read::<SessionParams>(json!({"id": id})).unwrap_err().message, invalid);
        assert_eq!(read::<SessionArchive>(json!({"id": id})).unwrap_err().message, invalid);
        assert_eq!(read::<SessionUpdate>(json!({"id": id})).unwrap_err().message, invalid);
        assert_eq!(read::<SessionTruncate>(json!({"id": id})).unwrap_err().message, invalid);
        let resume = read::<SessionResume>(json!({"id": id})).unwrap_err();
        assert_eq!(resume.message, format!("Session {id} not found"));
        assert_eq!(resume.code, ErrorCode::NotFound);
    }
}

#[test]
fn truncating_needs_a_count_that_is_not_negative() {
    for wrong in [json!(null), json!(-1), json!("3"), json!(1.5)] {
        let error = read::<SessionTruncate>(json!({"id": "s", "keepCount": wrong})).unwrap_err();
        assert_eq!(error.message, "params.keepCount is required (>= 0)");
    }
    assert_eq!(read::<SessionTruncate>(json!({"id": "s", "keepCount": 0})).unwrap().keep, 0);
}

#[test]
fn an_update_tells_absent_from_null() {
    let update = |value| read::<SessionUpdate>(value).unwrap();
    let nothing = update(json!({"id": "s"}));
    assert_eq!((nothing.title, nothing.network, nothing.reasoning), (Change::Keep, None, Ok(None)));
    let nulls = update(json!({"id": "s", "title": null, "networkEnabled": null, "reasoningLevel": null}));
    assert_eq!((nulls.title, nulls.network, nulls.reasoning), (Change::Clear, Some(true), Ok(None)));
    let values =
        update(json!({"id": "s", "title": " T ", "networkEnabled": false, "reasoningLevel": "ultra"}));
    assert_eq!(values.title, Change::Set("T".to_owned()));
    assert_eq!((values.network, values.reasoning), (Some(false), Ok(Some(ReasoningLevel::Ultra))));
    assert_eq!(update(json!({"id": "s", "title": " "})).title, Change::Clear);
}

#[test]
fn a_wrong_level_is_kept_until_scope_and_session_are_known() {
    let new = read::<SessionNew>(json!({"reasoningLevel": "x"})).unwrap();
    assert!(new.reasoning.unwrap_err().message.starts_with("params.reasoningLevel must be one of: none, "));
    let update = read::<SessionUpdate>(json!({"id": "s", "reasoningLevel": 1})).unwrap();
    assert!(update.reasoning.is_err());
}

#[test]
fn defaults_are_those_of_the_contract() {
    assert!(!read::<SessionList>(json!({})).unwrap().include_archived);
    assert!(read::<SessionArchive>(json!({"id": "s"})).unwrap().archived);
    assert!(read::<SessionNew>(json!({})).unwrap().network);
    assert_eq!(
        read::<SessionNew>(json!({"global": true, "workspace": "/w"})).unwrap().scope,
        ScopeParams::Global
    );
    let scope = read::<SessionParams>(json!({"id": "s", "workspace": "/w"})).unwrap().scope;
    assert_eq!(scope, ScopeParams::Workspace("/w".to_owned()));
}

#[test]
fn a_header_omits_what_is_absent() {
    let shown = serde_json::to_value(header()).unwrap();
    let expected = json!({
        "id": "s", "archived": false, "reasoningLevel": "xhigh", "networkEnabled": true, "llmRounds": 1,
        "executionSteps": 2, "inputTokens": 3, "totalInputTokens": 4, "cachedInputTokens": 5, "outputTokens": 6,
        "outputElapsedMs": 7, "createdAt": "1970-01-01T00:00:00.000Z", "updatedAt": "1970-01-01T00:00:00.001Z",
    });
    assert_eq!(shown, expected);
}

#[test]
fn a_whole_session_shows_nulls_and_its_images() {
    let mut message = MessageView::new(Role::User, "");
    message.images.push(ImageView {
        id: "i".to_owned(),
        name: "a.png".to_owned(),
        media_type: "image/png".to_owned(),
        data: Arc::new(vec![0, 1, 2, 3]),
        size_bytes: 4,
    });
    let shown = serde_json::to_value(header().with_messages(vec![message])).unwrap();
    assert_eq!((&shown["title"], &shown["workspace"]), (&Value::Null, &Value::Null));
    assert!(shown.as_object().unwrap().contains_key("title"));
    assert_eq!(shown["llmRounds"], 1);
    let expected = json!({
        "role": "user", "text": "", "thinking": null, "modelRef": null, "viewedImages": [], "toolCalls": [],
        "toolCallId": null, "toolName": null, "toolSuccess": true, "toolDiff": null, "toolFilePath": null,
        "images": [{"id": "i", "name": "a.png", "mediaType": "image/png", "data": "AAECAw==", "sizeBytes": 4}],
    });
    assert_eq!(shown["messages"], json!([expected]));
}

#[test]
fn the_two_texts_for_a_missing_session_differ() {
    let id = SessionId::parse("s").unwrap();
    assert_eq!(session_not_found(&id).message, "Session not found: s");
    assert_eq!(no_such_session("s").message, "Session s not found");
    assert_eq!(resumed(&id), "resumed s");
}
