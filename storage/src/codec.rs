//! Stored records as bytes: one version byte, then bincode. Nothing else uses bincode, so that it can
//! be replaced here.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest record, version byte included: a corrupt row must not make the daemon allocate without end.
pub const MAX_RECORD_BYTES: usize = 16 * 1024 * 1024;

/// bincode counts a number with its full width, however few bytes it took; the widest takes 8 for 1.
/// Smaller and a record that was written could not be read back.
const MAX_CLAIMED_BYTES: usize = 8 * MAX_RECORD_BYTES;

/// Why a value could not become bytes, or bytes a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The encoded record would be longer than any reader accepts.
    #[error("record of {bytes} bytes exceeds the limit of {MAX_RECORD_BYTES}")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
    /// The record has no version byte.
    #[error("empty record")]
    Empty,
    /// The record has a version that this program does not know.
    #[error("record version {found} is not supported")]
    UnknownVersion {
        /// The version byte.
        found: u8,
    },
    /// The record goes on after its value.
    #[error("{bytes} unread bytes after the record")]
    TrailingBytes {
        /// How many.
        bytes: usize,
    },
    /// The bytes are not such a value.
    #[error("malformed record: {reason}")]
    Malformed {
        /// What the decoder says.
        reason: String,
    },
}

fn settings() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MAX_CLAIMED_BYTES>()
}

/// Encodes `value` behind its version byte.
///
/// # Errors
/// A record that no reader would accept.
pub fn encode<T: Serialize>(version: u8, value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![version];
    bincode::serde::encode_into_std_write(value, &mut bytes, settings())
        .map_err(|error| CodecError::Malformed { reason: error.to_string() })?;
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(CodecError::TooLarge { bytes: bytes.len() });
    }
    Ok(bytes)
}

/// The version byte of a record.
///
/// # Errors
/// There is none.
pub fn version_of(record: &[u8]) -> Result<u8, CodecError> {
    record.first().copied().ok_or(CodecError::Empty)
}

/// Decodes a record of exactly `version`; all of its bytes must belong to the value.
///
/// # Errors
/// Anything else.
pub fn decode<T: DeserializeOwned>(version: u8, record: &[u8]) -> Result<T, CodecError> {
    if record.len() > MAX_RECORD_BYTES {
        return Err(CodecError::TooLarge { bytes: record.len() });
    }
    let (found, body) = record.split_first().ok_or(CodecError::Empty)?;
    if *found != version {
        return Err(CodecError::UnknownVersion { found: *found });
    }
    let (value, read) = bincode::serde::decode_from_slice(body, settings())
        .map_err(|error| CodecError::Malformed { reason: error.to_string() })?;
    match body.len() - read {
        0 => Ok(value),
        bytes => Err(CodecError::TrailingBytes { bytes }),
    }
}

#[cfg(test)]
mod tests;
