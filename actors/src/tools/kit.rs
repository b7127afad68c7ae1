//! What the tests of the searching and running tools need beside the kit of the file tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seekclaw_storage::record::log::Effect;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{NotRecorded, ToolContext, ToolReport, files_kit, registry};

/// A workspace, and the means to call every tool by its name in it.
pub(super) struct Kit {
    files: files_kit::Kit,
    /// Context of the calls.
    pub(super) ctx: ToolContext,
    /// Intents that were declared.
    pub(super) declared: Arc<Mutex<Vec<Effect>>>,
    /// Ends the calls.
    pub(super) cancel: CancellationToken,
}

impl Kit {
    pub(super) async fn new() -> Self {
        let files = files_kit::Kit::new().await;
        let mut ctx = files.ctx.clone();
        ctx.limits.output_chars = 60_000;
        ctx.limits.bash_timeout = Duration::from_secs(60);
        let (declared, cancel) = (files.intents.clone(), ctx.cancel.clone());
        Self { files, ctx, declared, cancel }
    }

    /// Makes every intent impossible to record.
    pub(super) fn record_nothing(&self) {
        self.files.on_declare(|| Err(NotRecorded));
    }

    /// Holds the workspace, the home and a folder outside of both.
    pub(super) fn top(&self) -> &Path {
        &self.files.top
    }

    /// The workspace.
    pub(super) fn root(&self) -> &Path {
        &self.ctx.reach.root
    }

    /// Writes a file of the workspace, with its directories.
    pub(super) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Calls a tool.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> ToolReport {
        registry::run(tool, arguments.as_object().unwrap(), &self.ctx).await
    }
}
