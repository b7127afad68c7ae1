//! The admin methods: one plain async function each, from typed parameters to a typed result. They own
//! nothing; all they change goes through the Config actor, and nothing waits for a network while it does.

pub mod doctor;
pub mod mode;
pub mod model;
pub mod provider;
pub mod workspace;

use seekclaw_protocol::{ErrorCode, WireError};

use crate::config::ConfigHandle;

/// What admin methods work with; cheap to clone.
#[derive(Clone)]
pub struct AdminContext {
    /// The configuration.
    pub config: ConfigHandle,
}

/// Whether two ids name the same thing: they are matched in any case (contract 2.8).
fn same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

/// Looks at files, off the runtime.
async fn look<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Result<T, WireError> {
    let failed = |_| WireError::new(ErrorCode::Internal, "The file system was not looked at");
    tokio::task::spawn_blocking(look).await.map_err(failed)
}

#[cfg(test)]
mod tests;
