//! `model.*` (contract 2.6).

use seekclaw_protocol::model::{
    ModelCapabilities, ModelEntry, ModelParams, ModelTest, model_not_found, switched_to, unknown_model,
};
use seekclaw_protocol::{ErrorCode, WireError};
use seekclaw_storage::config::model::{Config, WorkspaceConfig};

use super::AdminContext;
use crate::provider::{Candidate, chain, offline, probe};

/// `model.list`: references of the models of enabled providers, by priority.
///
/// # Errors
/// None at present.
pub async fn list(context: &AdminContext) -> Result<Vec<String>, WireError> {
    let settings = context.config.fresh().await;
    Ok(chain::listed(&settings.config).iter().map(Candidate::reference).collect())
}

/// `model.catalog`: all models, those of disabled providers included.
///
/// # Errors
/// None at present.
pub async fn catalog(context: &AdminContext) -> Result<Vec<ModelEntry>, WireError> {
    let settings = context.config.fresh().await;
    Ok(entries(&settings.config, &settings.own.config))
}

/// `model.switch`: the active profile's model from now on; answers `switched to <ref>`.
///
/// # Errors
/// `Unknown model <model>`, a disabled provider, and whatever keeps the file from being written.
pub async fn switch(params: ModelParams, context: &AdminContext) -> Result<String, WireError> {
    context.config.update(move |config| choose(config, &params.model)).await
}

/// `model.test`: one short question, without retries or failover. A failed call is a result, too.
///
/// # Errors
/// `Model not found: <model>`.
pub async fn test(params: ModelParams, context: &AdminContext) -> Result<ModelTest, WireError> {
    let settings = context.config.fresh().await;
    let found = chain::resolve(&settings.config, &params.model);
    let candidate = found.ok_or_else(|| model_not_found(&params.model))?;
    let (success, detail, latency_ms) = probe::test_model(&candidate).await;
    Ok(ModelTest { model: candidate.reference(), success, detail, latency_ms })
}

fn entries(config: &Config, own: &WorkspaceConfig) -> Vec<ModelEntry> {
    let head = chain::candidates(config, own, None, false).ok().and_then(|chain| chain.into_iter().next());
    let active = head.map(|head| head.reference());
    chain::catalog(config).iter().map(|candidate| entry(candidate, active.as_deref())).collect()
}

fn entry(candidate: &Candidate, active: Option<&str>) -> ModelEntry {
    let (provider, model) = (&candidate.provider, &candidate.model);
    let can = &model.capabilities;
    let reference = candidate.reference();
    ModelEntry {
        active: active.is_some_and(|active| active == reference),
        reference,
        provider: provider.id.clone(),
        provider_enabled: provider.enabled,
        id: model.id.clone(),
        alias: model.alias.clone(),
        context_window: model.context_window,
        max_output: model.max_output,
        tags: model.tags.clone(),
        capabilities: ModelCapabilities {
            streaming: can.streaming,
            tools: can.tool_calling,
            thinking: can.thinking,
            vision: can.vision,
            reasoning: can.reasoning,
            max_reasoning_level: can.max_reasoning_level,
            mcp: can.mcp,
        },
    }
}

fn choose(config: &mut Config, model: &str) -> Result<String, WireError> {
    let chosen = chain::resolve(config, model).ok_or_else(|| unknown_model(model))?;
    let reference = chosen.reference();
    if !chosen.provider.enabled {
        let text = format!("Model provider is disabled: {}", chosen.provider.id);
        return Err(WireError::new(ErrorCode::Conflict, text));
    }
    // The built-in model answers by itself; a profile that named it would name nothing later on.
    if !offline::is_offline(&chosen) {
        let profile = config.profiles.entry(config.active_profile.clone()).or_default();
        profile.provider = Some(chosen.provider.id.clone());
        profile.model = Some(chosen.model.id.clone());
    }
    Ok(switched_to(&reference))
}

#[cfg(test)]
mod tests;
