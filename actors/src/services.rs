//! What the whole tree shares: handles that survive the restart of what they point to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use seekclaw_storage::home::Home;
use tokio_util::sync::CancellationToken;

use crate::admin::AdminContext;
use crate::config::ConfigHandle;
use crate::daemon::DaemonMsg;
use crate::listener::ListenerMsg;
use crate::locks::Locks;
use crate::sessions::SessionsMsg;
use crate::store::Store;
use crate::supervision::Slot;

/// Handles to the services; cheap to clone.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) home: Arc<Home>,
    pub(crate) store: Store,
    pub(crate) config: ConfigHandle,
    pub(crate) locks: Locks,
    pub(crate) sessions: Slot<SessionsMsg>,
    pub(crate) listener: Slot<ListenerMsg>,
    pub(crate) daemon: Slot<DaemonMsg>,
    /// Fires once nothing runs any more that an earlier daemon left: until then no open turn goes on.
    pub(crate) orphans_gone: CancellationToken,
    /// Set once the daemon takes no new work.
    pub(crate) stopping: Arc<AtomicBool>,
    /// The daemon's working directory.
    pub(crate) cwd: Arc<PathBuf>,
}

impl Services {
    /// What admin methods work with.
    pub(crate) fn admin(&self) -> AdminContext {
        AdminContext { config: self.config.clone() }
    }
}
