//! `doctor` (contract 2.2, rulings 23 and 41): checks that need nothing but this machine.

use std::path::Path;
use std::sync::Arc;

use seekclaw_protocol::WireError;
use seekclaw_protocol::doctor::DoctorCheck;
use seekclaw_storage::config::model::Config;

use super::{AdminContext, look};
use crate::config::Settings;
use crate::provider::probe::{self, LocalServer};
use crate::workspace::Workspace;

/// How a provider is added where nothing better is known.
const ADD: &str = "`seekclaw provider add ID --base-url URL --model MODEL`";

/// The local checks, in the order of the contract, ours last.
///
/// # Errors
/// The file system cannot be looked at.
pub async fn local_checks(context: &AdminContext) -> Result<Vec<DoctorCheck>, WireError> {
    check(context.config.fresh().await).await
}

/// The local checks over `settings`, also without a running daemon.
///
/// # Errors
/// The file system cannot be looked at.
pub async fn check(settings: Arc<Settings>) -> Result<Vec<DoctorCheck>, WireError> {
    let servers = match settings.config.providers.is_empty() {
        true => probe::local_servers().await,
        false => Vec::new(),
    };
    look(move || {
        let workspace = &settings.workspace;
        vec![
            root(workspace),
            folder(workspace),
            providers(&settings.config, &servers),
            memory(workspace),
            file(&settings),
        ]
    })
    .await
}

fn root(workspace: &Workspace) -> DoctorCheck {
    DoctorCheck::runtime("Workspace Root", workspace.root.is_dir(), shown(&workspace.shown))
}

fn folder(workspace: &Workspace) -> DoctorCheck {
    let folder = workspace.own_folder();
    let ok = folder.is_dir();
    let detail = if ok { shown(&folder) } else { "not initialized, `workspace.init` creates it".to_owned() };
    DoctorCheck::runtime("SeekClaw Metadata Dir", ok, detail)
}

fn providers(config: &Config, servers: &[LocalServer]) -> DoctorCheck {
    let enabled = config.providers.iter().filter(|provider| provider.enabled).count();
    let count = config.providers.len();
    let detail = if enabled > 0 {
        let plural = if count == 1 { "" } else { "s" };
        let disabled =
            if enabled < count { format!(", {} disabled", count - enabled) } else { String::new() };
        format!("{count} provider{plural}{disabled}, active profile {}", config.active_profile)
    } else if count > 0 {
        format!("none of {count} providers is enabled, so that builtin/offline answers")
    } else {
        format!("no provider is configured, so that builtin/offline answers; {}", advice(servers))
    };
    DoctorCheck::runtime("Provider Config", enabled > 0, detail)
}

/// How to add a provider: by name, where one already runs on this machine.
fn advice(servers: &[LocalServer]) -> String {
    let offers: Vec<String> = servers.iter().map(offer).collect();
    if offers.is_empty() { format!("add one with {ADD}") } else { offers.join("; ") }
}

fn offer(server: &LocalServer) -> String {
    let id = server.name.to_lowercase().replace([' ', '.'], "-");
    let model = server.models.first().map_or("MODEL", String::as_str);
    format!(
        "{} answers at {url}: add it with `seekclaw provider add {id} --base-url {url} --model {model}`",
        server.name,
        url = server.base_url
    )
}

fn memory(workspace: &Workspace) -> DoctorCheck {
    let path = workspace.own_folder().join("memory").join("MEMORY.md");
    let ok = path.is_file();
    let detail = if ok { shown(&path) } else { "no MEMORY.md yet".to_owned() };
    DoctorCheck::runtime("Workspace Memory", ok, detail)
}

fn file(settings: &Settings) -> DoctorCheck {
    let problems: Vec<&str> =
        [&settings.broken, &settings.own.broken].into_iter().flatten().map(String::as_str).collect();
    let ok = problems.is_empty();
    let detail = if ok { shown(&settings.file) } else { problems.join("; ") };
    DoctorCheck::runtime("Config File", ok, detail)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
