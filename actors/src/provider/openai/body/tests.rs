use std::sync::Arc;

use seekclaw_storage::config::model::{Model, Provider};
use serde_json::json;

use super::*;
use crate::history::Call;
use crate::tools::ToolSpec;

fn candidate() -> Candidate {
    let provider = Provider { id: "p".to_owned(), ..Provider::default() };
    let model = Model { id: "m".to_owned(), ..Model::default() };
    Candidate { provider: Arc::new(provider), model: Arc::new(model), deep_seek_optimized: false }
}

fn with(change: impl FnOnce(&mut Provider, &mut Model)) -> Candidate {
    let mut candidate = candidate();
    change(Arc::make_mut(&mut candidate.provider), Arc::make_mut(&mut candidate.model));
    candidate
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        system: "be good".to_owned(),
        messages,
        tools: Vec::new(),
        max_output: 100,
        temperature: None,
        reasoning: ReasoningLevel::High,
    }
}

fn json_of(candidate: &Candidate, request: &Request) -> Value {
    serde_json::from_slice(&encode(candidate, request).json).unwrap()
}

fn calling(arguments: &str) -> Message {
    let call = Call { id: "c1".to_owned(), name: "x".to_owned(), arguments: arguments.to_owned() };
    Message { calls: vec![call], ..Message::new(Role::Assistant, "") }
}

#[test]
fn a_conversation_is_written_as_the_dialect_wants_it() {
    let result =
        Message { call_id: "c1".to_owned(), tool: "x".to_owned(), ..Message::new(Role::Tool, "out") };
    let mut request = request(vec![Message::new(Role::User, "hi"), calling("{\"a\":1}"), result]);
    request.temperature = Some(0.5);
    request.tools = vec![ToolSpec {
        name: "x".to_owned(),
        description: "does x".to_owned(),
        parameters: json!({ "type": "object" }),
        mutating: false,
    }];
    let expected = json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "be good" },
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "x", "arguments": "{\"a\":1}" } }
            ] },
            { "role": "tool", "content": "out", "tool_call_id": "c1" }
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 100,
        "temperature": 0.5,
        "tools": [{ "type": "function", "function": {
            "name": "x", "description": "does x", "parameters": { "type": "object" }
        } }]
    });
    assert_eq!(json_of(&candidate(), &request), expected);
    let no_tools = with(|_, model| model.capabilities.tool_calling = false);
    assert_eq!(json_of(&no_tools, &request).get("tools"), None);
}

#[test]
fn arguments_that_are_no_json_go_back_as_json() {
    for (written, sent) in [
        ("{\"a\": 1}", json!({ "a": 1 })),
        ("", json!({})),
        ("null", json!({})),
        ("{\"a\": \"", json!({ "a": "" })),
        ("[1]", json!({ "unreadable_arguments": "[1]" })),
    ] {
        let body = json_of(&candidate(), &request(vec![calling(written)]));
        let text = body.pointer("/messages/1/tool_calls/0/function/arguments").unwrap().as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), sent, "{written}");
    }
}

#[test]
fn an_assistant_message_without_content_is_left_out() {
    let thought = Message { thinking: "hm".to_owned(), ..Message::new(Role::Assistant, "") };
    let body = json_of(&candidate(), &request(vec![Message::new(Role::User, "a"), thought]));
    assert_eq!(body.get("messages").unwrap().as_array().unwrap().len(), 2);
}

fn image(bytes: Option<&[u8]>) -> Image {
    Image {
        id: "i".to_owned(),
        name: "i.png".to_owned(),
        media_type: "image/png".to_owned(),
        size: 3,
        bytes: bytes.map(|bytes| Arc::new(bytes.to_vec())),
    }
}

#[test]
fn images_are_data_urls_after_the_text_and_stop_the_streaming() {
    let seeing = with(|_, model| model.capabilities.vision = true);
    let images = vec![image(Some(b"abc")), image(None)];
    let request = request(vec![Message { images, ..Message::new(Role::User, "look") }]);
    let body = json_of(&seeing, &request);
    assert_eq!(body.get("stream"), Some(&json!(false)));
    assert_eq!(body.get("stream_options"), None);
    let url = "data:image/png;base64,YWJj";
    let expected = json!([
        { "type": "text", "text": "look" },
        { "type": "image_url", "image_url": { "url": url, "detail": "auto" } },
        { "type": "text", "text": "[image i.png cannot be shown]" }
    ]);
    assert_eq!(body.pointer("/messages/1/content"), Some(&expected));
    let blind = json_of(&candidate(), &request);
    assert_eq!(blind.get("stream"), Some(&json!(true)));
    assert!(!blind.to_string().contains("base64"));
}

#[test]
fn reasoning_models_take_the_newer_cap_and_a_level() {
    let reasoning = with(|_, model| model.capabilities.reasoning = true);
    let body = json_of(&reasoning, &request(Vec::new()));
    assert_eq!(body.get("max_completion_tokens"), Some(&json!(100)));
    assert_eq!((body.get("max_tokens"), body.get("reasoning_effort")), (None, Some(&json!("high"))));
    let mut none = request(Vec::new());
    none.reasoning = ReasoningLevel::None;
    assert_eq!(json_of(&reasoning, &none).get("reasoning_effort"), None);
}

#[test]
fn the_level_is_what_the_model_can_in_the_words_of_the_provider() {
    let effort = |candidate: &Candidate, level| {
        let request = Request { reasoning: level, ..request(Vec::new()) };
        json_of(candidate, &request).get("reasoning_effort").and_then(|text| text.as_str().map(str::to_owned))
    };
    assert_eq!(effort(&candidate(), ReasoningLevel::High), None, "it cannot think");
    let limited = with(|_, model| {
        model.capabilities.thinking = true;
        model.capabilities.max_reasoning_level = ReasoningLevel::Medium;
    });
    assert_eq!(effort(&limited, ReasoningLevel::Ultra).as_deref(), Some("medium"));
    let mapped = with(|provider, _| {
        provider.reasoning_effort_map =
            [("High", "hard"), ("low", " ")].map(|(a, b)| (a.to_owned(), b.to_owned())).into();
    });
    assert_eq!(effort(&mapped, ReasoningLevel::High).as_deref(), Some("hard"));
    assert_eq!(effort(&mapped, ReasoningLevel::Low).as_deref(), Some("low"));
    let deep_seek = with(|_, model| model.id = "DeepSeek-chat".to_owned());
    for (level, name) in [
        (ReasoningLevel::Low, "low"),
        (ReasoningLevel::Medium, "high"),
        (ReasoningLevel::Max, "max"),
        (ReasoningLevel::Ultra, "max"),
    ] {
        assert_eq!(effort(&deep_seek, level).as_deref(), Some(name));
    }
}

#[test]
fn deepseek_gets_its_thinking_back_and_optimised_a_switch_and_no_blank_results() {
    let mut deep_seek = with(|provider, model| {
        provider.id = "deepseek".to_owned();
        model.capabilities.reasoning = true;
    });
    let thought = Message { thinking: "hm".to_owned(), ..calling("{}") };
    let blank = Message { call_id: "c1".to_owned(), ..Message::new(Role::Tool, " \n") };
    let request = request(vec![thought, blank]);
    let body = json_of(&deep_seek, &request);
    assert_eq!(body.pointer("/messages/1/reasoning_content"), Some(&json!("hm")));
    assert_eq!((body.get("max_tokens"), body.get("thinking")), (Some(&json!(100)), None));
    assert_eq!(body.pointer("/messages/2/content"), Some(&json!(" \n")));
    assert_eq!(json_of(&candidate(), &request).pointer("/messages/1/reasoning_content"), None);

    deep_seek.deep_seek_optimized = true;
    let body = json_of(&deep_seek, &request);
    assert_eq!(body.pointer("/thinking/type"), Some(&json!("enabled")));
    assert_eq!(body.pointer("/messages/2/content"), Some(&json!("(no output)")));
}
