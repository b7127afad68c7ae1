//! `session.*` (contract 2.12): parameters, headers without nulls, and the whole session with them.

use std::sync::Arc;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use crate::agent::ReasoningLevel;
use crate::chat::optional_level;
use crate::error::{ErrorCode, WireError};
use crate::ids::SessionId;
use crate::limits::MAX_TITLE_CHARS;
use crate::params::{Change, FromParams, Params};
use crate::scope::ScopeParams;
use crate::time::Timestamp;

/// Parameters of `session.list`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionList {
    /// Where to look.
    pub scope: ScopeParams,
    /// Whether archived sessions are listed too.
    pub include_archived: bool,
}

impl FromParams for SessionList {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let include_archived = params.bool("includeArchived")?.unwrap_or(false);
        Ok(Self { scope: ScopeParams::read(params)?, include_archived })
    }
}

/// Parameters of `session.get` and `session.delete`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionParams {
    /// Where to look.
    pub scope: ScopeParams,
    /// Which session.
    pub id: SessionId,
}

impl FromParams for SessionParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self { id: session_id(params)?, scope: ScopeParams::read(params)? })
    }
}

/// Parameters of `session.update`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionUpdate {
    /// Where to look.
    pub scope: ScopeParams,
    /// Which session.
    pub id: SessionId,
    /// The title.
    pub title: Change<String>,
    /// The level; an error in it is reported once the session is found.
    pub reasoning: Result<Option<ReasoningLevel>, WireError>,
    /// Whether web tools are offered; `None` leaves it.
    pub network: Option<bool>,
}

impl FromParams for SessionUpdate {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let id = session_id(params)?;
        let title = params.change_str("title")?;
        if matches!(&title, Change::Set(title) if title.chars().count() > MAX_TITLE_CHARS) {
            return Err(title_too_long());
        }
        let network = params.bool("networkEnabled")?;
        let restored = params.is_present("networkEnabled").then_some(true);
        let scope = ScopeParams::read(params)?;
        Ok(Self { scope, id, title, reasoning: optional_level(params), network: network.or(restored) })
    }
}

/// Parameters of `session.archive`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionArchive {
    /// Where to look.
    pub scope: ScopeParams,
    /// Which session.
    pub id: SessionId,
    /// Whether it is archived from now on.
    pub archived: bool,
}

impl FromParams for SessionArchive {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let id = session_id(params)?;
        let archived = params.bool("archived")?.unwrap_or(true);
        Ok(Self { scope: ScopeParams::read(params)?, id, archived })
    }
}

/// Parameters of `session.truncate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionTruncate {
    /// Where to look.
    pub scope: ScopeParams,
    /// Which session.
    pub id: SessionId,
    /// Stored messages to keep, from the beginning.
    pub keep: u64,
}

impl FromParams for SessionTruncate {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let id = session_id(params)?;
        let keep = params.get("keepCount").and_then(serde_json::Value::as_u64).ok_or_else(keep_required)?;
        Ok(Self { scope: ScopeParams::read(params)?, id, keep })
    }
}

/// Parameters of `session.resume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionResume {
    /// Where to look.
    pub scope: ScopeParams,
    /// Which session.
    pub id: SessionId,
}

impl FromParams for SessionResume {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let text = params.required_str("id")?;
        let id = SessionId::parse(text).ok_or_else(|| no_such_session(text))?;
        Ok(Self { id, scope: ScopeParams::read(params)? })
    }
}

/// Parameters of `session.new`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionNew {
    /// Where it will be found.
    pub scope: ScopeParams,
    /// Its level, else the global one; an error in it is reported once the scope is resolved.
    pub reasoning: Result<Option<ReasoningLevel>, WireError>,
    /// Whether web tools are offered.
    pub network: bool,
}

impl FromParams for SessionNew {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let scope = ScopeParams::read(params)?;
        let network = params.bool("networkEnabled")?.unwrap_or(true);
        Ok(Self { scope, reasoning: optional_level(params), network })
    }
}

fn title_too_long() -> WireError {
    WireError::new(
        ErrorCode::InvalidParams,
        format!("params.title must have at most {MAX_TITLE_CHARS} characters"),
    )
}

fn session_id(params: &Params) -> Result<SessionId, WireError> {
    SessionId::parse(params.required_str("id")?).ok_or_else(invalid_id)
}

/// What headers and whole sessions share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFacts {
    /// Hidden from lists unless asked for.
    pub archived: bool,
    /// Level of its turns.
    pub reasoning_level: ReasoningLevel,
    /// Whether web tools are offered.
    pub network_enabled: bool,
    /// Model calls so far.
    pub llm_rounds: u64,
    /// Workflow steps so far.
    pub execution_steps: u64,
    /// Input tokens so far.
    pub input_tokens: u64,
    /// Input tokens with cache so far.
    pub total_input_tokens: u64,
    /// Cache reads so far.
    pub cached_input_tokens: u64,
    /// Output tokens so far.
    pub output_tokens: u64,
    /// Time of model calls so far.
    pub output_elapsed_ms: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed; orders the lists.
    pub updated_at: Timestamp,
}

/// A session in a list; absent values are omitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// Session id.
    pub id: String,
    /// Title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Workspace root; none in the global scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub facts: SessionFacts,
}

impl SessionHeader {
    /// The answer of `session.get`.
    #[must_use]
    pub fn with_messages(self, messages: Vec<MessageView>) -> SessionView {
        let Self { id, title, workspace, facts } = self;
        SessionView { id, title, workspace, facts, messages }
    }
}

/// Result of `session.get`; absent values are `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// Session id.
    pub id: String,
    /// Title.
    pub title: Option<String>,
    /// Workspace root; none in the global scope.
    pub workspace: Option<String>,
    /// The rest.
    #[serde(flatten)]
    pub facts: SessionFacts,
    /// The stored messages, tool results included.
    pub messages: Vec<MessageView>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
}

/// One message of `session.get`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageView {
    /// Who speaks.
    pub role: Role,
    /// The text, never null.
    pub text: String,
    /// Attached images.
    pub images: Vec<ImageView>,
    /// Assistant: reasoning.
    pub thinking: Option<String>,
    /// Assistant: `provider/model` that answered; the desktop's buttons need it.
    pub model_ref: Option<String>,
    /// Assistant: images that the model was shown in this step.
    pub viewed_images: Vec<ViewedImage>,
    /// Assistant: calls asked for.
    pub tool_calls: Vec<ToolCallView>,
    /// Tool: the call that this answers.
    pub tool_call_id: Option<String>,
    /// Tool: its name.
    pub tool_name: Option<String>,
    /// Tool: whether it did what was asked; true for other roles.
    pub tool_success: bool,
    /// Tool: unified diff of the file it changed.
    pub tool_diff: Option<String>,
    /// Tool: workspace-relative path of that file.
    pub tool_file_path: Option<String>,
}

impl MessageView {
    /// A message with nothing but text.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            text: text.into(),
            images: Vec::new(),
            thinking: None,
            model_ref: None,
            viewed_images: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            tool_name: None,
            tool_success: true,
            tool_diff: None,
            tool_file_path: None,
        }
    }
}

/// An image of a message, with its bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageView {
    /// Id within the session.
    pub id: String,
    /// Stored name.
    pub name: String,
    /// MIME type.
    pub media_type: String,
    /// The bytes.
    #[serde(serialize_with = "as_base64")]
    pub data: Arc<Vec<u8>>,
    /// Decoded size.
    pub size_bytes: u64,
}

/// An image that the model was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewedImage {
    /// Id within the session.
    pub id: String,
    /// Stored name.
    pub name: String,
}

/// A call without its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallView {
    /// Id of the call.
    pub id: String,
    /// Tool name.
    pub name: String,
}

fn as_base64<S: Serializer>(bytes: &Arc<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(bytes, &STANDARD))
}

/// Text of `session.resume` when it is done.
#[must_use]
pub fn resumed(id: &SessionId) -> String {
    format!("resumed {id}")
}

/// `Session not found: <id>`: what all `session.*` but `session.resume` answer.
#[must_use]
pub fn session_not_found(id: &SessionId) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Session not found: {id}"))
}

/// `Session <id> not found`: what `chat` and `session.resume` answer, for ill-formed ids too.
#[must_use]
pub fn no_such_session(id: &str) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Session {id} not found"))
}

fn invalid_id() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "Invalid session id. (Parameter 'sessionId')")
}

fn keep_required() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "params.keepCount is required (>= 0)")
}

#[cfg(test)]
mod tests;
