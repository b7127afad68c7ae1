use serde_json::{Value, json};

use super::*;

fn chat(value: Value) -> Result<ChatParams, WireError> {
    ChatParams::from_params(&Params::of(value))
}

#[test]
fn the_message_may_come_as_prompt_but_only_if_it_is_absent() {
    assert_eq!(chat(json!({"prompt": "p"})).unwrap().message, "p");
    assert_eq!(chat(json!({"message": null, "prompt": "p"})).unwrap().message, "p");
    assert_eq!(chat(json!({"message": "m", "prompt": "p"})).unwrap().message, "m");
    assert_eq!(
        chat(json!({"message": " ", "prompt": "p"})).unwrap_err().message,
        "params.message or params.images is required"
    );
}

#[test]
fn an_image_alone_is_enough() {
    let image = json!({"name": "a.png", "mediaType": "image/png", "data": "AAEC"});
    let params = chat(json!({"images": [image]})).unwrap();
    assert_eq!((params.message.as_str(), params.images.len()), ("", 1));
}

#[test]
fn errors_come_in_the_order_of_the_contract() {
    let everything_wrong = json!({
        "images": 1, "message": 1, "global": 1, "sessionId": 1, "model": 1, "reasoningLevel": 1, "mode": 1,
    });
    let mut params = Params::of(everything_wrong);
    for (fixed, text) in [
        ("images", "params.images must be an array"),
        ("message", "Invalid request: params.message must be a string"),
        ("", "params.message or params.images is required"),
        ("global", "Invalid request: params.global must be a boolean"),
        ("sessionId", "Invalid request: params.sessionId must be a string"),
        ("model", "Invalid request: params.model must be a string"),
    ] {
        assert_eq!(ChatParams::from_params(&params).unwrap_err().message, text);
        if fixed.is_empty() {
            params.0.insert("message".to_owned(), json!("m"));
        } else {
            params.0.remove(fixed);
        }
    }
    let read = ChatParams::from_params(&params).unwrap();
    let level = read.reasoning.unwrap_err();
    assert_eq!(
        level.message,
        "params.reasoningLevel must be one of: none, low, medium, high, max, xhigh, ultra"
    );
    assert_eq!(read.mode.unwrap_err().message, "params.mode must be one of: plan, readonly, edit, auto");
}

#[test]
fn a_level_is_read_in_any_case_and_null_is_the_stored_one() {
    let level = |value: Value| chat(json!({"message": "m", "reasoningLevel": value})).unwrap().reasoning;
    assert_eq!(level(json!("XHigh")).unwrap(), Some(ReasoningLevel::Xhigh));
    assert_eq!(level(Value::Null).unwrap(), None);
    assert!(level(json!("much")).is_err());
    assert!(level(json!("")).is_err());
}

#[test]
fn a_turn_can_choose_its_mode_model_and_lifecycle() {
    let params =
        chat(json!({"message": "m", "mode": "plan", "model": "p/m", "lifecycle": "client_owned"})).unwrap();
    assert_eq!(params.mode, Ok(Some(Mode::Plan)));
    assert_eq!(params.model.as_deref(), Some("p/m"));
    assert_eq!(params.lifecycle, Some(Lifecycle::ClientOwned));
    assert_eq!(
        chat(json!({"message": "m", "lifecycle": "x"})).unwrap_err().message,
        "Invalid request: params.lifecycle must be client_owned or resident"
    );
}

#[test]
fn only_type_errors_of_chat_and_steer_name_the_session() {
    let params = Params::of(json!({"sessionId": "s", "message": "m", "global": 1}));
    let type_error = ChatParams::from_params(&params).unwrap_err();
    assert_eq!(session_of_refusal(Method::Chat, &params, &type_error), Some("s"));
    assert_eq!(session_of_refusal(Method::AgentCancel, &params, &type_error), None);
    assert_eq!(session_of_refusal(Method::Chat, &params, &nothing_to_say()), None);
    let unnamed = Params::of(json!({"sessionId": 5}));
    assert_eq!(session_of_refusal(Method::Chat, &unnamed, &type_error), None);
}

#[test]
fn steer_checks_what_is_said_before_whom_it_is_for() {
    let steer = |value| SteerParams::from_params(&Params::of(value));
    assert_eq!(
        steer(json!({"requestId": "x"})).unwrap_err().message,
        "params.message or params.images is required"
    );
    assert_eq!(
        steer(json!({"message": "m", "requestId": "x"})).unwrap_err().message,
        "Invalid request: params.requestId must be an integer"
    );
    let params = steer(json!({"message": "m", "requestId": -7, "sessionId": "s", "turnId": "t"})).unwrap();
    assert_eq!((params.request_id, params.session_id.as_deref()), (Some(-7), Some("s")));
    assert_eq!(params.turn_id.unwrap().as_str(), "t");
}

#[test]
fn cancel_may_name_nothing() {
    assert_eq!(CancelParams::from_params(&Params::default()).unwrap(), CancelParams::default());
}

#[test]
fn the_texts_are_those_of_the_contract() {
    let id = SessionId::parse("s1").unwrap();
    assert_eq!(cancel_requested(7), "cancellation requested for 7");
    assert_eq!(cancel_requested_for_all(2), "cancellation requested for 2 active turns");
    assert_eq!(cancel_requested_for_all(0), "no active turn");
    assert_eq!(no_turn_to_steer().message, "No active turn found for this session");
    assert_eq!(turn_is_finishing().message, "The active turn is already finishing");
    assert_eq!(guidance_queue_full().message, "The guidance queue is full");
    assert_eq!(guidance_queue_full().code, ErrorCode::QueueFull);
    assert_eq!(session_busy(&id).message, "Session s1 is busy: 16 messages are already waiting");
    assert_eq!(session_busy(&id).code, ErrorCode::QueueFull);
}
