//! `agent.mode.*` (contract 2.5).

use seekclaw_protocol::mode::ModeSwitch;
use seekclaw_protocol::{Mode, WireError};

use super::AdminContext;

/// `agent.mode.get`: the effective mode in the current workspace.
///
/// # Errors
/// None at present.
pub async fn get(context: &AdminContext) -> Result<Mode, WireError> {
    Ok(context.config.fresh().await.mode())
}

/// `agent.mode.switch`: writes the mode wherever something could keep the old one in effect.
///
/// # Errors
/// A file that does not parse or cannot be written.
pub async fn switch(params: ModeSwitch, context: &AdminContext) -> Result<Mode, WireError> {
    context.config.switch_mode(params.mode).await?;
    Ok(params.mode)
}
