//! The body of a chat completions request (contract 6.2), written straight from the conversation.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seekclaw_protocol::ReasoningLevel;
use serde::Serialize;
use serde_json::Value;

use crate::agent::arguments::as_valid_json;
use crate::history::{Image, Message, Role};
use crate::provider::{Candidate, Request};

/// A body ready to be sent.
pub(super) struct Encoded {
    pub(super) json: Vec<u8>,
    /// Whether a stream was asked for; not with images (contract 6.2).
    pub(super) streaming: bool,
}

/// Writes the body.
pub(super) fn encode(candidate: &Candidate, request: &Request) -> Encoded {
    let model = &candidate.model;
    let streaming = !request.messages.iter().any(|message| shows_images(candidate, message));
    let level = effective(candidate, request.reasoning);
    let newer_cap = model.capabilities.reasoning && !candidate.is_deep_seek();
    let cap = (request.max_output > 0).then_some(request.max_output);
    let body = Body {
        model: &model.id,
        messages: messages(candidate, request),
        stream: streaming,
        stream_options: streaming.then_some(StreamOptions { include_usage: true }),
        max_tokens: cap.filter(|_| !newer_cap),
        max_completion_tokens: cap.filter(|_| newer_cap),
        temperature: request.temperature,
        reasoning_effort: effort(candidate, level),
        thinking: candidate.deep_seek_optimized.then(|| Thinking::of(level)),
        tools: tools(candidate, request),
    };
    // Only texts, numbers and JSON values: writing them into memory cannot fail.
    let json = serde_json::to_vec(&body).unwrap_or_default();
    Encoded { json, streaming }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Thinking {
    r#type: &'static str,
}

impl Thinking {
    fn of(level: ReasoningLevel) -> Self {
        Self { r#type: if level == ReasoningLevel::None { "disabled" } else { "enabled" } }
    }
}

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Nothing,
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: std::borrow::Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
    detail: &'static str,
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: std::borrow::Cow<'a, str>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

fn tools<'a>(candidate: &Candidate, request: &'a Request) -> Vec<Tool<'a>> {
    let offered = request.tools.iter().filter(|_| candidate.model.capabilities.tool_calling);
    let wire = offered.map(|tool| Tool {
        r#type: "function",
        function: ToolFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
        },
    });
    wire.collect()
}

fn messages<'a>(candidate: &Candidate, request: &'a Request) -> Vec<Wire<'a>> {
    let system = (!request.system.is_empty()).then(|| plain("system", Content::Text(&request.system)));
    let said = request.messages.iter().filter_map(|message| wire(candidate, message));
    system.into_iter().chain(said).collect()
}

fn plain<'a>(role: &'static str, content: Content<'a>) -> Wire<'a> {
    Wire { role, content, reasoning_content: None, tool_calls: Vec::new(), tool_call_id: None }
}

/// One message; an assistant message without anything is left out, since servers refuse it.
fn wire<'a>(candidate: &Candidate, message: &'a Message) -> Option<Wire<'a>> {
    match message.role {
        Role::User => Some(plain("user", content(candidate, message))),
        Role::Tool => {
            let blank = message.images.is_empty() && message.text.trim().is_empty();
            let content = if blank && candidate.deep_seek_optimized {
                Content::Text("(no output)")
            } else {
                content(candidate, message)
            };
            Some(Wire { tool_call_id: Some(&message.call_id), ..plain("tool", content) })
        }
        Role::Assistant => assistant(candidate, message),
    }
}

fn assistant<'a>(candidate: &Candidate, message: &'a Message) -> Option<Wire<'a>> {
    if message.text.is_empty() && message.calls.is_empty() {
        return None;
    }
    let content = if message.text.is_empty() { Content::Nothing } else { Content::Text(&message.text) };
    let calls = message.calls.iter().map(|call| WireCall {
        id: &call.id,
        r#type: "function",
        function: WireFunction { name: &call.name, arguments: as_valid_json(&call.arguments) },
    });
    let thinking = Some(message.thinking.as_str());
    Some(Wire {
        reasoning_content: thinking.filter(|text| candidate.is_deep_seek() && !text.is_empty()),
        tool_calls: calls.collect(),
        ..plain("assistant", content)
    })
}

fn shows_images(candidate: &Candidate, message: &Message) -> bool {
    candidate.model.capabilities.vision
        && message.role != Role::Assistant
        && message.images.iter().any(|image| image.bytes.is_some())
}

/// Text first, then the images as data URLs; one that cannot be shown is named.
fn content<'a>(candidate: &Candidate, message: &'a Message) -> Content<'a> {
    if message.images.is_empty() {
        return Content::Text(&message.text);
    }
    let text = (!message.text.is_empty()).then(|| Part::Text { text: message.text.as_str().into() });
    let images = message.images.iter().map(|image| picture(candidate, image));
    Content::Parts(text.into_iter().chain(images).collect())
}

fn picture<'a>(candidate: &Candidate, image: &Image) -> Part<'a> {
    match &image.bytes {
        Some(bytes) if candidate.model.capabilities.vision => {
            let url = format!("data:{};base64,{}", image.media_type, STANDARD.encode(bytes.as_slice()));
            Part::ImageUrl { image_url: ImageUrl { url, detail: "auto" } }
        }
        _ => Part::Text { text: format!("[image {} cannot be shown]", image.name).into() },
    }
}

/// The level that the model takes (contract 5.8, 1).
fn effective(candidate: &Candidate, asked: ReasoningLevel) -> ReasoningLevel {
    let capabilities = &candidate.model.capabilities;
    let deep_seek = candidate.is_deep_seek();
    let can = capabilities.thinking || capabilities.reasoning || deep_seek;
    if !can && candidate.provider.reasoning_effort_map.is_empty() {
        return ReasoningLevel::None;
    }
    let most = capabilities.max_reasoning_level;
    asked.min(if deep_seek { most.min(ReasoningLevel::Max) } else { most })
}

/// What the provider calls it (contract 5.8, 2).
fn effort(candidate: &Candidate, level: ReasoningLevel) -> Option<&str> {
    if level == ReasoningLevel::None {
        return None;
    }
    let map = &candidate.provider.reasoning_effort_map;
    let mapped = map.iter().find(|(name, _)| ReasoningLevel::parse(name) == Some(level));
    if let Some((_, name)) = mapped.filter(|(_, name)| !name.trim().is_empty()) {
        return Some(name.trim());
    }
    if !candidate.is_deep_seek() {
        return Some(level.as_str());
    }
    match level {
        ReasoningLevel::None => None,
        ReasoningLevel::Low => Some("low"),
        ReasoningLevel::Medium | ReasoningLevel::High => Some("high"),
        ReasoningLevel::Max | ReasoningLevel::Xhigh | ReasoningLevel::Ultra => Some("max"),
    }
}

#[cfg(test)]
mod tests;
