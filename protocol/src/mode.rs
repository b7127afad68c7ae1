//! `agent.mode.*` (contract 2.5); both answer with the bare name of the mode.

use crate::agent::Mode;
use crate::error::{ErrorCode, WireError};
use crate::params::{FromParams, Params};

/// Parameters of `agent.mode.switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeSwitch {
    /// The mode from now on.
    pub mode: Mode,
}

impl FromParams for ModeSwitch {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        let mode = optional(params)?.ok_or_else(unknown_mode)?;
        Ok(Self { mode })
    }
}

/// `mode` where it may be absent; anything but the four names is refused (ruling 36).
pub(crate) fn optional(params: &Params) -> Result<Option<Mode>, WireError> {
    let Some(value) = params.get("mode") else { return Ok(None) };
    value.as_str().and_then(Mode::parse).map(Some).ok_or_else(unknown_mode)
}

/// `params.mode must be one of: …`.
#[must_use]
pub fn unknown_mode() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "params.mode must be one of: plan, readonly, edit, auto")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_four_names_are_taken_in_any_case_and_nothing_else() {
        let switch = |value| ModeSwitch::from_params(&Params::of(value));
        assert_eq!(switch(json!({"mode": " PLAN "})).unwrap().mode, Mode::Plan);
        for wrong in [json!({}), json!({"mode": null}), json!({"mode": 1}), json!({"mode": "read-only"})] {
            let error = switch(wrong).unwrap_err();
            assert_eq!(error.message, "params.mode must be one of: plan, readonly, edit, auto");
            assert_eq!(error.code, ErrorCode::InvalidParams);
        }
    }
}
