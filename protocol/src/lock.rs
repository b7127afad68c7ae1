//! `lock.list` (contract 10).

use serde::Serialize;

use crate::time::Timestamp;

/// A held file lock; the answer is sorted by workspace, then file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockView {
    /// Workspace of the holder.
    pub workspace: String,
    /// Absolute path of the file.
    pub file: String,
    /// `<session id>/<8 hex digits of the turn>`.
    pub owner: String,
    /// When it was taken.
    pub acquired_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_shown_with_the_time_in_utc() {
        let view = LockView {
            workspace: "/w".to_owned(),
            file: "/w/a.txt".to_owned(),
            owner: "s/0123abcd".to_owned(),
            acquired_at: Timestamp(1_785_499_200_123),
        };
        let expected = r#"{"workspace":"/w","file":"/w/a.txt","owner":"s/0123abcd","acquiredAt":"2026-07-31T12:00:00.123Z"}"#;
        assert_eq!(serde_json::to_string(&view).unwrap(), expected);
    }
}
