//! Stored records. Each version is a frozen struct; the newest one is what the daemon works with.
//! A changed record is a new version plus `From<old>`; variants are only ever appended.

use crate::codec::{self, CodecError};

pub mod log;
pub mod session;
pub mod turn;

/// A value that has a stored form: written in its newest version, read from any.
pub trait Record: Sized {
    /// Encodes the newest version.
    ///
    /// # Errors
    /// A record over the size limit.
    fn to_bytes(&self) -> Result<Vec<u8>, CodecError>;

    /// Decodes any version that was ever written.
    ///
    /// # Errors
    /// Bytes that are no such record.
    fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError>;
}

/// A record that has had one version so far; the second one writes its own `from_bytes`.
macro_rules! first_version {
    ($name:ty) => {
        impl Record for $name {
            fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
                codec::encode(1, self)
            }

            fn from_bytes(bytes: &[u8]) -> Result<Self, CodecError> {
                match codec::version_of(bytes)? {
                    1 => codec::decode(1, bytes),
                    found => Err(CodecError::UnknownVersion { found }),
                }
            }
        }
    };
}
first_version!(log::Entry);
first_version!(session::SessionRow);
first_version!(turn::TurnRow);
