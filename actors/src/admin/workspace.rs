//! `workspace.*` (contract 2.4).

use std::sync::Arc;

use seekclaw_protocol::WireError;
use seekclaw_protocol::workspace::{WorkspaceInit, WorkspaceOpen, WorkspaceView};

use super::{AdminContext, look};
use crate::config::Settings;
use crate::workspace;

/// `workspace.get`: the current workspace.
///
/// # Errors
/// None at present.
pub async fn get(context: &AdminContext) -> Result<WorkspaceView, WireError> {
    Ok(view(&*context.config.fresh().await))
}

/// `workspace.open`: moves the default scope of the whole process.
///
/// # Errors
/// The texts of contract 2.1.
pub async fn open(params: WorkspaceOpen, context: &AdminContext) -> Result<WorkspaceView, WireError> {
    Ok(view(&*context.config.open_workspace(params.path).await?))
}

/// `workspace.init`: makes the folders of ours in the current workspace.
///
/// # Errors
/// Something is in the way, or cannot be written.
pub async fn init(context: &AdminContext) -> Result<WorkspaceInit, WireError> {
    let workspace = Arc::clone(&context.config.current().workspace);
    let path = workspace.shown.display().to_string();
    let created = look(move || workspace::init(&workspace)).await??;
    Ok(WorkspaceInit { path, created })
}

fn view(settings: &Settings) -> WorkspaceView {
    let workspace = &settings.workspace;
    WorkspaceView {
        path: workspace.shown.display().to_string(),
        name: workspace.name.clone(),
        project_kinds: workspace.kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        mode: settings.mode(),
    }
}
