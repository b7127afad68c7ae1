//! Scope parameters of `chat` and every `session.*` (contract 2.1).

use crate::error::WireError;
use crate::params::Params;

/// Where a session lives, as the client named it; resolving it needs the file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScopeParams {
    /// The directory-free scope.
    Global,
    /// A directory, walked up to its project root.
    Workspace(String),
    /// The daemon's current workspace.
    #[default]
    Current,
}

impl ScopeParams {
    /// Reads `global` and `workspace`; `global: true` wins.
    ///
    /// # Errors
    /// A wrong type of either.
    pub fn read(params: &Params) -> Result<Self, WireError> {
        if params.bool("global")? == Some(true) {
            return Ok(Self::Global);
        }
        Ok(params.str("workspace")?.map_or(Self::Current, |path| Self::Workspace(path.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn global_wins_over_a_workspace_and_neither_is_the_current_one() {
        let read = |value| ScopeParams::read(&Params::of(value)).unwrap();
        assert_eq!(read(json!({"global": true, "workspace": 5})), ScopeParams::Global);
        assert_eq!(
            read(json!({"global": false, "workspace": "/w"})),
            ScopeParams::Workspace("/w".to_owned())
        );
        assert_eq!(read(json!({"global": null})), ScopeParams::Current);
    }
}
