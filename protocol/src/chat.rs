//! `chat`, `agent.steer` and `agent.cancel` (contract 2.3): starting, guiding and ending turns.

use crate::agent::{Mode, ReasoningLevel};
use crate::error::{ErrorCode, WireError};
use crate::ids::{RequestId, SessionId, TurnId};
use crate::limits::{MAX_MESSAGE_BYTES, MAX_QUEUED_PROMPTS};
use crate::method::Method;
use crate::mode;
use crate::params::{FromParams, Params, wrong_type};
use crate::scope::ScopeParams;

mod image;

pub use image::Image;

/// Whom a turn lives for (extensions 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// It ends with its client.
    ClientOwned,
    /// It goes on whoever leaves.
    Resident,
}

/// Parameters of `chat`. The caller checks, in this order: the scope, the session, [`Self::reasoning`],
/// [`Self::mode`], the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatParams {
    /// The user's text; may be empty if there are images.
    pub message: String,
    /// The user's images, decoded.
    pub images: Vec<Image>,
    /// The session as the client named it; an ill-formed id is a session that is not found.
    pub session_id: Option<String>,
    /// Where the session is.
    pub scope: ScopeParams,
    /// The level from now on; an error in it is reported once the session is found.
    pub reasoning: Result<Option<ReasoningLevel>, WireError>,
    /// Mode of this turn alone (ruling 14); an error in it comes after that of the level.
    pub mode: Result<Option<Mode>, WireError>,
    /// Model of this turn alone (ruling 14).
    pub model: Option<String>,
    /// Whom the turn lives for, if the client says so.
    pub lifecycle: Option<Lifecycle>,
}

impl FromParams for ChatParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let (message, images) = prompt(params)?;
        Ok(Self {
            message,
            images,
            scope: ScopeParams::read(params)?,
            session_id: params.str("sessionId")?.map(str::to_owned),
            reasoning: optional_level(params),
            mode: mode::optional(params),
            model: params.filled_str("model")?,
            lifecycle: lifecycle(params)?,
        })
    }
}

/// Parameters of `agent.steer`.
#[derive(Clone, Debug, PartialEq)]
pub struct SteerParams {
    /// The guidance; may be empty if there are images.
    pub message: String,
    /// Its images, decoded.
    pub images: Vec<Image>,
    /// The turn by the id of its `chat` on this connection; wins over the session.
    pub request_id: Option<RequestId>,
    /// The turn by its session, in any case.
    pub session_id: Option<String>,
    /// The turn itself (extensions 4).
    pub turn_id: Option<TurnId>,
}

impl FromParams for SteerParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let (message, images) = prompt(params)?;
        let CancelParams { request_id, session_id, turn_id } = CancelParams::from_params(params)?;
        Ok(Self { message, images, request_id, session_id, turn_id })
    }
}

/// Parameters of `agent.cancel`; all turns of the connection if nothing is named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CancelParams {
    /// The turn by the id of its `chat` on this connection.
    pub request_id: Option<RequestId>,
    /// The turns of a session (extensions 4).
    pub session_id: Option<String>,
    /// The turn itself (extensions 4).
    pub turn_id: Option<TurnId>,
}

impl FromParams for CancelParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self {
            request_id: params.int("requestId")?,
            session_id: params.str("sessionId")?.map(str::to_owned),
            turn_id: params.str("turnId")?.map(TurnId::from_text),
        })
    }
}

/// Steps 1 and 2 of the contract: images first, then whether there is anything at all.
fn prompt(params: &Params) -> Result<(String, Vec<Image>), WireError> {
    let images = image::read(params)?;
    let message = match params.str("message")? {
        Some(text) => text,
        None => params.str("prompt")?.unwrap_or_default(),
    };
    if images.is_empty() && message.trim().is_empty() {
        return Err(nothing_to_say());
    }
    if message.len() > MAX_MESSAGE_BYTES {
        return Err(message_too_long());
    }
    Ok((message.to_owned(), images))
}

/// `reasoningLevel` where it may be absent.
pub(crate) fn optional_level(params: &Params) -> Result<Option<ReasoningLevel>, WireError> {
    let Some(value) = params.get("reasoningLevel") else { return Ok(None) };
    value.as_str().and_then(ReasoningLevel::parse).map(Some).ok_or_else(unknown_level)
}

fn lifecycle(params: &Params) -> Result<Option<Lifecycle>, WireError> {
    match params.str("lifecycle")? {
        None => Ok(None),
        Some("client_owned") => Ok(Some(Lifecycle::ClientOwned)),
        Some("resident") => Ok(Some(Lifecycle::Resident)),
        Some(_) => Err(wrong_type("lifecycle", "client_owned or resident")),
    }
}

/// The session that an error of [`FromParams`] is reported for: only `chat` and `agent.steer` name one,
/// and not in their errors about images and message (contract 1.4, ruling 21).
#[must_use]
pub fn session_of_refusal<'a>(method: Method, params: &'a Params, error: &WireError) -> Option<&'a str> {
    let names_session = matches!(method, Method::Chat | Method::AgentSteer);
    if !names_session || error.code != ErrorCode::InvalidRequest {
        return None;
    }
    params.get("sessionId").and_then(serde_json::Value::as_str)
}

/// Text of `agent.steer` when the guidance is accepted.
pub const GUIDANCE_QUEUED: &str = "guidance queued";

/// Text of `agent.cancel` when there is nothing to cancel.
pub const NO_ACTIVE_TURN: &str = "no active turn";

/// Text of `agent.cancel` for one turn.
#[must_use]
pub fn cancel_requested(request: RequestId) -> String {
    format!("cancellation requested for {request}")
}

/// Text of `agent.cancel` for all turns of a connection.
#[must_use]
pub fn cancel_requested_for_all(turns: usize) -> String {
    if turns == 0 {
        return NO_ACTIVE_TURN.to_owned();
    }
    format!("cancellation requested for {turns} active turns")
}

/// `No active turn found for this session`: guidance for nobody.
#[must_use]
pub fn no_turn_to_steer() -> WireError {
    WireError::new(ErrorCode::NotFound, "No active turn found for this session")
}

/// `The active turn is already finishing`: guidance that comes too late.
#[must_use]
pub fn turn_is_finishing() -> WireError {
    WireError::new(ErrorCode::Conflict, "The active turn is already finishing")
}

/// `The guidance queue is full` (ruling 9).
#[must_use]
pub fn guidance_queue_full() -> WireError {
    WireError::new(ErrorCode::QueueFull, "The guidance queue is full")
}

/// `Session <id> is busy: 16 messages are already waiting` (ruling 8).
#[must_use]
pub fn session_busy(id: &SessionId) -> WireError {
    let text = format!("Session {id} is busy: {MAX_QUEUED_PROMPTS} messages are already waiting");
    WireError::new(ErrorCode::QueueFull, text)
}

/// `params.reasoningLevel must be one of: …`.
#[must_use]
pub fn unknown_level() -> WireError {
    let text = "params.reasoningLevel must be one of: none, low, medium, high, max, xhigh, ultra";
    WireError::new(ErrorCode::InvalidParams, text)
}

fn message_too_long() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "params.message exceeds the 8 MB limit")
}

fn nothing_to_say() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "params.message or params.images is required")
}

#[cfg(test)]
mod tests;
