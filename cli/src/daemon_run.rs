//! The one place where the command line becomes the daemon.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use seekclaw_actors::daemon::{self, DaemonOptions};
use seekclaw_storage::lock::LockError;
use tokio::sync::Notify;

use crate::place::Place;

pub(crate) use seekclaw_actors::daemon::Ready;

/// Why the daemon could not start, or ended.
#[derive(Debug)]
pub(crate) enum DaemonError {
    /// Another daemon owns the home; the text names it.
    AlreadyRunning(String),
    /// Anything else.
    Failed(anyhow::Error),
}

/// Runs the daemon of `place` until `stop` ends. `reload` is notified when the configuration should be read again.
pub(crate) async fn serve(
    place: &Place,
    cwd: PathBuf,
    ready: impl FnOnce(Ready),
    stop: impl Future<Output = ()>,
    reload: Arc<Notify>,
) -> Result<(), DaemonError> {
    let options = DaemonOptions { home: place.storage().clone(), cwd, reload };
    daemon::run(options, ready, stop).await.map_err(|error| {
        if let daemon::DaemonError::Lock(owned @ LockError::AlreadyRunning { .. }) = &error {
            return DaemonError::AlreadyRunning(owned.to_string());
        }
        DaemonError::Failed(error.into())
    })
}
