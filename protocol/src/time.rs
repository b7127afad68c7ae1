//! Instants on the wire: ISO 8601 UTC text; inside the daemon, milliseconds since the epoch.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z. Prints as `2026-07-31T12:00:00.123Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: DateTime<Utc> = DateTime::from_timestamp_millis(self.0).unwrap_or_default();
        f.write_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
