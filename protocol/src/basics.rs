//! `ping`, `protocol.info`, `shutdown`: what a client asks before anything else (contract 2.2).

use serde::Serialize;

use crate::method::Method;

/// Version of the contract that this crate speaks.
pub const PROTOCOL_VERSION: &str = "2.1";

/// Major version that a client must speak too (extensions 1).
pub const PROTOCOL_MAJOR: u64 = 2;

/// Result of `protocol.info`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtocolInfo {
    /// Version of the contract.
    pub version: &'static str,
    /// Name of the dialect.
    pub transport: &'static str,
    /// What a client can count on.
    pub capabilities: Vec<&'static str>,
    /// Every accepted method name, aliases included.
    pub methods: Vec<&'static str>,
}

impl ProtocolInfo {
    /// What this version offers.
    #[must_use]
    pub fn current() -> Self {
        Self {
            version: PROTOCOL_VERSION,
            transport: "jsonl",
            capabilities: Method::available_capabilities(),
            methods: Method::accepted_names().collect(),
        }
    }
}
