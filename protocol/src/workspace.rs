//! `workspace.*` (contract 2.4) and the errors of a scope that cannot be resolved (contract 2.1).

use serde::Serialize;

use crate::agent::Mode;
use crate::error::{ErrorCode, WireError};
use crate::params::{FromParams, Params};

/// Parameters of `workspace.open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceOpen {
    /// Directory to open; its project root may be an ancestor.
    pub path: String,
}

impl FromParams for WorkspaceOpen {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self { path: params.required_str("path")?.to_owned() })
    }
}

/// Result of `workspace.get` and `workspace.open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceView {
    /// Absolute root.
    pub path: String,
    /// Last segment of the path.
    pub name: String,
    /// What kinds of project it is, in the order of the contract.
    pub project_kinds: Vec<String>,
    /// Effective mode.
    pub mode: Mode,
}

/// Result of `workspace.init`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceInit {
    /// Absolute root.
    pub path: String,
    /// What was created, relative to the root.
    pub created: Vec<String>,
}

/// `Invalid workspace path: <reason>`.
#[must_use]
pub fn invalid_path(reason: &str) -> WireError {
    WireError::new(ErrorCode::InvalidParams, format!("Invalid workspace path: {reason}"))
}

/// `Workspace directory not found: <absolute path>`.
#[must_use]
pub fn directory_not_found(absolute: &str) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Workspace directory not found: {absolute}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn opening_needs_a_path_and_says_so_in_the_words_of_the_contract() {
        let open = |value| WorkspaceOpen::from_params(&Params::of(value));
        assert_eq!(open(json!({"path": " /w "})).unwrap().path, "/w");
        assert_eq!(open(json!({"path": "  "})).unwrap_err().message, "params.path is required");
        assert_eq!(
            open(json!({"path": 7})).unwrap_err().message,
            "Invalid request: params.path must be a string"
        );
        assert_eq!(invalid_path("no such drive").message, "Invalid workspace path: no such drive");
        assert_eq!(directory_not_found("/w").message, "Workspace directory not found: /w");
    }

    #[test]
    fn a_workspace_is_shown_in_camel_case() {
        let view = WorkspaceView {
            path: "/w".to_owned(),
            name: "w".to_owned(),
            project_kinds: vec!["git".to_owned()],
            mode: Mode::Readonly,
        };
        let expected = r#"{"path":"/w","name":"w","projectKinds":["git"],"mode":"readonly"}"#;
        assert_eq!(serde_json::to_string(&view).unwrap(), expected);
    }
}
