//! `client.hello` (extensions 1): who is there, and every bound it can meet.

use serde::Serialize;

use crate::basics::{PROTOCOL_MAJOR, PROTOCOL_VERSION};
use crate::error::{ErrorCode, WireError};
use crate::limits;
use crate::method::Method;
use crate::params::{FromParams, Params};

/// Longest client id, in characters (extensions 1).
pub const MAX_CLIENT_ID_CHARS: usize = 128;

/// Parameters of `client.hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelloParams {
    /// Stable per installation of the client.
    pub client_id: String,
    /// Version of the client, for the log.
    pub client_version: Option<String>,
    /// What the client can do.
    pub capabilities: Vec<String>,
}

impl FromParams for HelloParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let client_id = params.required_str("clientId")?;
        if client_id.chars().count() > MAX_CLIENT_ID_CHARS {
            return Err(client_id_too_long());
        }
        let client_version = params.filled_str("clientVersion")?;
        let protocol = params.filled_str("protocol")?;
        let capabilities = params.strings("capabilities")?.unwrap_or_default();
        match protocol {
            Some(version) if major(&version) != Some(PROTOCOL_MAJOR) => Err(incompatible(&version)),
            _ => Ok(Self { client_id: client_id.to_owned(), client_version, capabilities }),
        }
    }
}

fn major(version: &str) -> Option<u64> {
    version.split('.').next()?.parse().ok()
}

/// Result of `client.hello`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloResult {
    /// Names this connection.
    pub connection_id: String,
    /// Version of the daemon.
    pub server_version: String,
    /// Version of the contract.
    pub protocol: &'static str,
    /// Changes when a method or an event is added or removed.
    pub schema_hash: String,
    /// What a client can count on.
    pub capabilities: Vec<&'static str>,
    /// Every accepted method name, aliases included.
    pub methods: Vec<&'static str>,
    /// Every bound a client can meet.
    pub limits: Limits,
}

impl HelloResult {
    /// What this version answers on connection `connection_id`.
    pub fn current(connection_id: impl Into<String>, server_version: impl Into<String>) -> Self {
        Self {
            connection_id: connection_id.into(),
            server_version: server_version.into(),
            protocol: PROTOCOL_VERSION,
            schema_hash: crate::jsonl::schema_hash(),
            capabilities: Method::available_capabilities(),
            methods: Method::accepted_names().collect(),
            limits: Limits::current(),
        }
    }
}

/// The bounds of [`limits`] that a client can meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Bytes of one incoming line.
    pub line_bytes: usize,
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Characters of a title.
    pub title_chars: usize,
    /// Images of one turn.
    pub images: usize,
    /// Decoded bytes of one image.
    pub image_bytes: usize,
    /// Decoded bytes of all images of one turn.
    pub images_total_bytes: usize,
    /// Prompts that may wait behind a running turn.
    pub queued_prompts: usize,
    /// Guidance that may wait in a turn.
    pub queued_guidance: usize,
    /// Requests of one connection in work at once.
    pub requests_in_flight: usize,
    /// Clients connected at once.
    pub connections: usize,
    /// Events of a session kept for slow readers.
    pub retained_events: usize,
    /// Bytes of a session's events kept for slow readers.
    pub retained_bytes: usize,
    /// Characters of a client id.
    pub client_id_chars: usize,
}

impl Limits {
    /// The bounds of this version.
    #[must_use]
    pub fn current() -> Self {
        Self {
            line_bytes: limits::MAX_LINE_BYTES,
            message_bytes: limits::MAX_MESSAGE_BYTES,
            title_chars: limits::MAX_TITLE_CHARS,
            images: limits::MAX_IMAGES,
            image_bytes: limits::MAX_IMAGE_BYTES,
            images_total_bytes: limits::MAX_IMAGES_TOTAL_BYTES,
            queued_prompts: limits::MAX_QUEUED_PROMPTS,
            queued_guidance: limits::MAX_QUEUED_GUIDANCE,
            requests_in_flight: limits::MAX_REQUESTS_IN_FLIGHT,
            connections: limits::MAX_CONNECTIONS,
            retained_events: limits::RING_EVENTS,
            retained_bytes: limits::RING_BYTES,
            client_id_chars: MAX_CLIENT_ID_CHARS,
        }
    }
}

fn client_id_too_long() -> WireError {
    let text = format!("params.clientId must have at most {MAX_CLIENT_ID_CHARS} characters");
    WireError::new(ErrorCode::InvalidParams, text)
}

fn incompatible(version: &str) -> WireError {
    let text = format!("Protocol {version} is not supported: this daemon speaks {PROTOCOL_VERSION}");
    WireError::new(ErrorCode::ProtocolIncompatible, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hello(value: serde_json::Value) -> Result<HelloParams, WireError> {
        HelloParams::from_params(&Params::of(value))
    }

    #[test]
    fn a_client_needs_an_id_of_bounded_length() {
        assert_eq!(hello(json!({})).unwrap_err().message, "params.clientId is required");
        assert_eq!(hello(json!({"clientId": "é".repeat(128)})).unwrap().client_id.chars().count(), 128);
        let error = hello(json!({"clientId": "é".repeat(129)})).unwrap_err();
        assert_eq!(error.message, "params.clientId must have at most 128 characters");
    }

    #[test]
    fn another_major_version_is_incompatible() {
        assert!(hello(json!({"clientId": "c", "protocol": "2.9"})).is_ok());
        for version in ["1.0", "3", "two", "20.1"] {
            let error = hello(json!({"clientId": "c", "protocol": version})).unwrap_err();
            assert_eq!(error.code, ErrorCode::ProtocolIncompatible, "{version}");
            assert_eq!(error.message, format!("Protocol {version} is not supported: this daemon speaks 2.1"));
        }
    }

    #[test]
    fn the_result_names_the_bounds() {
        let result = serde_json::to_value(HelloResult::current("c1", "0.1.0")).unwrap();
        assert_eq!(result["limits"]["lineBytes"], 64 * 1024 * 1024);
        assert_eq!(result["limits"]["queuedPrompts"], 16);
        assert_eq!(result["connectionId"], "c1");
        assert_eq!(result["schemaHash"].as_str().unwrap().len(), 16);
    }
}
