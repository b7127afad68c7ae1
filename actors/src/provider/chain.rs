//! Which models are asked, in which order (contract 6.4): references, the candidate chain, and the
//! built-in model where nothing is configured (ruling 23).

use std::sync::Arc;

use seekclaw_protocol::{ErrorCode, WireError};
use seekclaw_storage::config::model::{Config, Model, Provider, WorkspaceConfig};

use super::{Candidate, offline};

/// The strategy that counts where none is named.
const DEFAULT_STRATEGY: &str = "balanced";

/// Why there is nobody to ask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The turn's own choice is no model (ruling 36).
    #[error("Unknown model {0}")]
    UnknownModel(String),
    /// The turn's own choice is switched off.
    #[error("Model provider is disabled: {0}")]
    Disabled(String),
    /// Providers are enabled, but none has a model.
    #[error(
        "No models configured. Add one with `seekclaw provider add`, or edit config.json in the seekclaw home."
    )]
    NoModels,
    /// There are images, and nobody who can look at them.
    #[error("The current routing profile has no model that supports image understanding.")]
    NoVision,
}

impl From<ChainError> for WireError {
    fn from(error: ChainError) -> Self {
        let code = match error {
            ChainError::UnknownModel(_) => ErrorCode::InvalidParams,
            ChainError::Disabled(_) => ErrorCode::Conflict,
            ChainError::NoModels | ChainError::NoVision => ErrorCode::NoModel,
        };
        Self::new(code, error.to_string())
    }
}

/// The models to ask for a step, best first. `choice` is the turn's own model (ruling 14); with
/// `needs_vision` only models that read images count.
///
/// # Errors
/// Nobody can be asked, or the choice is no usable model.
pub fn candidates(
    config: &Config,
    workspace: &WorkspaceConfig,
    choice: Option<&str>,
    needs_vision: bool,
) -> Result<Vec<Candidate>, ChainError> {
    let mut chain = Vec::new();
    if let Some(choice) = choice.map(str::trim).filter(|choice| !choice.is_empty()) {
        chain.push(chosen(config, choice)?);
    }
    if config.providers.iter().any(|provider| provider.enabled) {
        configured(config, workspace, &mut chain);
    } else if chain.is_empty() {
        chain.push(offline::candidate());
    }
    if chain.is_empty() {
        return Err(ChainError::NoModels);
    }
    if needs_vision {
        chain.retain(|candidate| candidate.model.capabilities.vision);
    }
    if !config.routing.failover_enabled {
        chain.truncate(1);
    }
    if chain.is_empty() { Err(ChainError::NoVision) } else { Ok(chain) }
}

/// The model that `reference` names: `provider/model`, `provider/alias`, an alias, or a bare id if it is
/// unambiguous, all in any case. Disabled providers are found too; `builtin/offline` only while it answers.
#[must_use]
pub fn resolve(config: &Config, reference: &str) -> Option<Candidate> {
    let reference = reference.trim();
    let builtin = offline::candidate();
    if reference.eq_ignore_ascii_case(&builtin.reference()) && !any_enabled(config) {
        return Some(builtin);
    }
    qualified(config, reference)
        .or_else(|| only(config, |model| model.alias.as_deref().is_some_and(|alias| same(alias, reference))))
        .or_else(|| only(config, |model| same(&model.id, reference)))
}

/// All models of the enabled providers by priority, or the built-in one (`model.list`).
#[must_use]
pub fn listed(config: &Config) -> Vec<Candidate> {
    if any_enabled(config) { of_providers(config, true) } else { vec![offline::candidate()] }
}

/// All models, those of disabled providers included, by priority (`model.catalog`).
#[must_use]
pub fn catalog(config: &Config) -> Vec<Candidate> {
    let mut all = of_providers(config, false);
    if !any_enabled(config) {
        all.insert(0, offline::candidate());
    }
    all
}

fn any_enabled(config: &Config) -> bool {
    config.providers.iter().any(|provider| provider.enabled)
}

fn chosen(config: &Config, choice: &str) -> Result<Candidate, ChainError> {
    let candidate = resolve(config, choice).ok_or_else(|| ChainError::UnknownModel(choice.to_owned()))?;
    if candidate.provider.enabled {
        Ok(candidate)
    } else {
        Err(ChainError::Disabled(candidate.provider.id.clone()))
    }
}

fn configured(config: &Config, workspace: &WorkspaceConfig, chain: &mut Vec<Candidate>) {
    let profile = config.profiles.get(&config.active_profile);
    let of_profile = profile.map(|profile| (profile.provider.as_deref(), profile.model.as_deref()));
    let pairs = [Some((workspace.provider.as_deref(), workspace.model.as_deref())), of_profile];
    let named = pairs.into_iter().flatten().filter_map(|(provider, model)| pair(config, provider, model));
    named.for_each(|candidate| add(chain, candidate));

    let strategy = workspace.strategy.as_deref().or(profile.and_then(|profile| profile.strategy.as_deref()));
    let strategy = strategy.filter(|name| !name.trim().is_empty()).unwrap_or(DEFAULT_STRATEGY);
    let listed = config.routing.strategies.iter().find(|(name, _)| same(name, strategy));
    let references = listed.into_iter().flat_map(|(_, list)| list).chain(&config.routing.fallback);
    references.filter_map(|reference| resolve(config, reference)).for_each(|candidate| add(chain, candidate));

    if chain.is_empty() {
        of_providers(config, true).into_iter().for_each(|candidate| add(chain, candidate));
    }
}

/// Disabled and repeated ones do not count.
fn add(chain: &mut Vec<Candidate>, candidate: Candidate) {
    let reference = candidate.reference();
    if candidate.provider.enabled && chain.iter().all(|other| !same(&other.reference(), &reference)) {
        chain.push(candidate);
    }
}

/// The model that a provider and a model field name together; each may be missing.
fn pair(config: &Config, provider: Option<&str>, model: Option<&str>) -> Option<Candidate> {
    let given = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    match (given(provider), given(model)) {
        (Some(provider), Some(model)) => {
            qualified(config, &format!("{provider}/{model}")).or_else(|| resolve(config, &model))
        }
        (None, Some(model)) => resolve(config, &model),
        (Some(id), None) => {
            let provider = config.providers.iter().find(|provider| same(&provider.id, &id))?;
            Some(candidate(config, provider, provider.models.first()?))
        }
        (None, None) => None,
    }
}

/// `provider/model` or `provider/alias`. Model ids contain slashes themselves, so the provider decides.
fn qualified(config: &Config, reference: &str) -> Option<Candidate> {
    let (id, name) = reference.split_once('/')?;
    let provider = config.providers.iter().find(|provider| same(&provider.id, id))?;
    let by_id = provider.models.iter().find(|model| same(&model.id, name));
    let by_alias = || {
        let is = |model: &&Model| model.alias.as_deref().is_some_and(|alias| same(alias, name));
        provider.models.iter().find(is)
    };
    Some(candidate(config, provider, by_id.or_else(by_alias)?))
}

/// The one model that fits. Those of enabled providers hide those of disabled ones.
fn only(config: &Config, fits: impl Fn(&Model) -> bool) -> Option<Candidate> {
    let mut found = Vec::new();
    for enabled in [true, false] {
        for provider in config.providers.iter().filter(|provider| provider.enabled == enabled) {
            found.extend(provider.models.iter().filter(|model| fits(model)).map(|model| (provider, model)));
        }
        if !found.is_empty() {
            break;
        }
    }
    let [(provider, model)] = found.as_slice() else { return None };
    Some(candidate(config, provider, model))
}

fn of_providers(config: &Config, only_enabled: bool) -> Vec<Candidate> {
    let mut providers: Vec<&Provider> =
        config.providers.iter().filter(|provider| provider.enabled || !only_enabled).collect();
    providers.sort_by_key(|provider| provider.priority);
    let shared = providers.into_iter().map(|provider| (Arc::new(provider.clone()), provider));
    let models = shared.flat_map(|(shared, provider)| {
        provider.models.iter().map(move |model| build(config, Arc::clone(&shared), model))
    });
    models.collect()
}

fn candidate(config: &Config, provider: &Provider, model: &Model) -> Candidate {
    build(config, Arc::new(provider.clone()), model)
}

fn build(config: &Config, provider: Arc<Provider>, model: &Model) -> Candidate {
    let mut candidate = Candidate { provider, model: Arc::new(model.clone()), deep_seek_optimized: false };
    candidate.deep_seek_optimized = config.routing.deep_seek_optimization_enabled && candidate.is_deep_seek();
    candidate
}

fn same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

#[cfg(test)]
mod tests;
