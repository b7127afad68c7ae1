//! Errors as a client sees them: a readable text and a stable code (extensions 2).

use serde_json::{Map, Value};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, retryable: $retryable:literal;)+) => {
        /// Stable error codes: `details.code` of every `error` line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* $name,)+ }

        impl ErrorCode {
            /// Every code, in the order of the contract.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// The code as it is written on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// Whether the same request may succeed later without a change.
            #[must_use]
            pub fn retryable(self) -> bool {
                match self { $(Self::$name => $retryable,)+ }
            }
        }
    };
}

error_codes! {
    /// The line is not a JSON object.
    InvalidJson = "invalid_json", retryable: false;
    /// The envelope or a parameter has the wrong shape.
    InvalidRequest = "invalid_request", retryable: false;
    /// No such method.
    UnknownMethod = "unknown_method", retryable: false;
    /// A parameter is missing or has a wrong value.
    InvalidParams = "invalid_params", retryable: false;
    /// The named thing does not exist.
    NotFound = "not_found", retryable: false;
    /// The request contradicts the present state.
    Conflict = "conflict", retryable: false;
    /// The session runs a turn and the request needs it idle.
    SessionBusy = "session_busy", retryable: true;
    /// The session is already active elsewhere.
    SessionAlreadyActive = "session_already_active", retryable: false;
    /// A bounded queue has no room.
    QueueFull = "queue_full", retryable: true;
    /// The daemon has too much to do.
    Overloaded = "overloaded", retryable: true;
    /// A line exceeds the cap.
    LineTooLong = "line_too_long", retryable: false;
    /// The mode forbids the tool.
    ModeDenied = "mode_denied", retryable: false;
    /// The path is outside of what may be touched.
    PathDenied = "path_denied", retryable: false;
    /// A file lock was not free in time.
    LockTimeout = "lock_timeout", retryable: true;
    /// The file is not what the session last saw.
    StaleWrite = "stale_write", retryable: false;
    /// Whether it happened cannot be known.
    Uncertain = "uncertain", retryable: false;
    /// The same command id came with another request.
    CommandConflict = "command_conflict", retryable: false;
    /// The provider refused the key.
    ProviderAuth = "provider_auth", retryable: false;
    /// The provider asks to slow down.
    ProviderRateLimited = "provider_rate_limited", retryable: true;
    /// The provider cannot be reached or is failing.
    ProviderUnavailable = "provider_unavailable", retryable: true;
    /// The provider rejected the request.
    ProviderRejected = "provider_rejected", retryable: false;
    /// The conversation does not fit the model.
    ContextOverflow = "context_overflow", retryable: false;
    /// No model is configured, or none suits.
    NoModel = "no_model", retryable: false;
    /// The turn failed after its last restart.
    TurnFailed = "turn_failed", retryable: true;
    /// The turn used up its steps.
    StepLimit = "step_limit", retryable: false;
    /// Something took longer than allowed.
    Timeout = "timeout", retryable: true;
    /// The daemon is stopping.
    ShuttingDown = "shutting_down", retryable: true;
    /// The disk is full.
    StorageFull = "storage_full", retryable: true;
    /// The store is damaged.
    StorageCorrupt = "storage_corrupt", retryable: false;
    /// The client speaks another major version.
    ProtocolIncompatible = "protocol_incompatible", retryable: false;
    /// A known method that this version does not offer yet.
    Unavailable = "unavailable", retryable: false;
    /// A defect of the daemon.
    Internal = "internal", retryable: false;
}

impl ErrorCode {
    /// Reads a stored or received code; an unknown one is `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text)
    }
}

/// One `error` line: its text, its code, and what else helps (extensions 2).
#[derive(Clone, Debug, PartialEq)]
pub struct WireError {
    /// Stable code.
    pub code: ErrorCode,
    /// Text for people: the contract's own wording where it has one.
    pub message: String,
    /// When to try again, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// Further members of `details`.
    pub context: Map<String, Value>,
}

impl WireError {
    /// An error with a code and a text.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_ms: None, context: Map::new() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_is_unique_and_read_back() {
        let texts: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(texts.len(), ErrorCode::ALL.len());
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
        }
        assert_eq!(ErrorCode::parse("no_such_code"), None);
    }
}
