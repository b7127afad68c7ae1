//! Where a request's session lives (contract 2.1).

use std::path::PathBuf;
use std::sync::Arc;

use seekclaw_protocol::WireError;
use seekclaw_protocol::scope::ScopeParams;
use seekclaw_storage::record::session::SessionKey;

use crate::services::Services;
use crate::workspace::{GLOBAL_SCOPE, Workspace};

/// A scope that exists.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    Global,
    Workspace(Arc<Workspace>),
}

impl Scope {
    /// Finds what the client named.
    ///
    /// # Errors
    /// The texts of contract 2.1.
    pub(super) async fn find(services: &Services, params: ScopeParams) -> Result<Self, WireError> {
        match params {
            ScopeParams::Global => Ok(Self::Global),
            ScopeParams::Workspace(path) => {
                services.config.find_workspace(path).await.map(|found| Self::Workspace(Arc::new(found)))
            }
            ScopeParams::Current => Ok(Self::Workspace(Arc::clone(&services.config.current().workspace))),
        }
    }

    /// Key of its sessions.
    pub(super) fn key(&self) -> String {
        match self {
            Self::Global => GLOBAL_SCOPE.to_owned(),
            Self::Workspace(workspace) => workspace.scope(),
        }
    }

    /// Key of one of its sessions.
    pub(super) fn session(&self, id: &str) -> SessionKey {
        SessionKey { scope: self.key(), id: id.to_owned() }
    }

    /// The workspace as its client spells it; empty in the global scope.
    pub(super) fn shown(&self) -> PathBuf {
        match self {
            Self::Global => PathBuf::new(),
            Self::Workspace(workspace) => workspace.shown.clone(),
        }
    }
}
