//! Identifiers as types: what has been validated at the edge keeps a type from then on.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The `id` of a request: a JSON integer that fits int64 (contract 1.3). 0 means unattributable.
pub type RequestId = i64;

/// Longest accepted session id, in characters (contract 2.3).
const MAX_SESSION_ID_CHARS: usize = 128;

/// A session id that could name a session: not blank, at most 128 characters, no path separator.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Accepts `text` if it has the shape of a session id; `None` is what the contract calls "not found".
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.trim().is_empty() && text.chars().count() <= MAX_SESSION_ID_CHARS;
        let plain = !text.contains(['/', '\\', '\0']) && text != "." && text != "..";
        (fits && plain).then(|| Self(text.into()))
    }

    /// The id as it is written on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One turn: 16 lower-case hex digits, unique in a home.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TurnId(Arc<str>);

impl TurnId {
    /// Makes an id from 64 random bits.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(format!("{bits:016x}").into())
    }

    /// Takes an id from the wire or the store as it is: an unknown one is simply not found.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as it is written on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The 8 hex digits that name this turn as owner of a file lock (contract 10).
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

macro_rules! text_like {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
text_like!(SessionId);
text_like!(TurnId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_is_bounded_in_characters_and_one_path_segment() {
        assert!(SessionId::parse(&"é".repeat(128)).is_some());
        for wrong in ["", " ", "a/b", "a\\b", "a\0", ".", "..", &"é".repeat(129)] {
            assert_eq!(SessionId::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_turn_id_has_sixteen_digits_and_a_short_form() {
        let id = TurnId::from_bits(0xab);
        assert_eq!((id.as_str(), id.short()), ("00000000000000ab", "00000000"));
        assert_eq!(TurnId::from_text("é").short(), "é");
    }
}
