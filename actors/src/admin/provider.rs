//! `provider.*` (contract 2.8). Each rule is a plain function over the configuration; it refuses before it
//! changes anything.

use futures_util::future::join_all;
use seekclaw_protocol::WireError;
use seekclaw_protocol::params::Change;
use seekclaw_protocol::provider::{
    ApiKey, ProviderKind as WireKind, ProviderParams, ProviderProbe, ProviderTest, ProviderUpsert,
    ProviderView, base_url_required, model_required, no_matching_providers, provider_not_found,
    unusable_base_url, unusable_id,
};
use seekclaw_storage::config::model::{Config, Model, Profile, Provider, ProviderKind};

use super::{AdminContext, same};
use crate::provider::probe;

/// `provider.list`: by priority, then id.
///
/// # Errors
/// None at present.
pub async fn list(context: &AdminContext) -> Result<Vec<ProviderView>, WireError> {
    Ok(listed(&context.config.fresh().await.config))
}

/// `provider.upsert`: adds a provider or changes the one of that id.
///
/// # Errors
/// The texts of the contract, and whatever keeps the file from being written.
pub async fn upsert(params: ProviderUpsert, context: &AdminContext) -> Result<ProviderView, WireError> {
    context.config.update(move |config| apply(config, params.clone())).await
}

/// `provider.use`: lets the active profile name the provider; answers with its id.
///
/// # Errors
/// `Provider not found: <id>`, and whatever keeps the file from being written.
pub async fn select(params: ProviderParams, context: &AdminContext) -> Result<String, WireError> {
    context.config.update(move |config| choose(config, &params.id)).await
}

/// `provider.remove`: removes it and clears the profiles that named it; answers with the id as sent.
///
/// # Errors
/// `Provider not found: <id>`, and whatever keeps the file from being written.
pub async fn remove(params: ProviderParams, context: &AdminContext) -> Result<String, WireError> {
    context.config.update(move |config| forget(config, &params.id).map(|()| params.id.clone())).await
}

/// `provider.test`: asks one provider or all whether they answer, all at once.
///
/// # Errors
/// `No matching providers`.
pub async fn test(params: ProviderTest, context: &AdminContext) -> Result<Vec<ProviderProbe>, WireError> {
    let settings = context.config.fresh().await;
    let wanted = |provider: &&Provider| params.id.as_deref().is_none_or(|id| same(&provider.id, id));
    let providers: Vec<&Provider> = sorted(&settings.config).into_iter().filter(wanted).collect();
    if providers.is_empty() {
        return Err(no_matching_providers());
    }
    let probes = join_all(providers.iter().map(|provider| probe::probe(provider))).await;
    let named = providers.into_iter().zip(probes);
    Ok(named.map(|(provider, probe)| probed(&provider.id, probe)).collect())
}

fn probed(id: &str, probe: probe::Probe) -> ProviderProbe {
    let latency_ms = probe.latency.as_secs_f64() * 1000.0;
    ProviderProbe { id: id.to_owned(), online: probe.online, latency_ms, detail: probe.detail }
}

fn sorted(config: &Config) -> Vec<&Provider> {
    let mut providers: Vec<&Provider> = config.providers.iter().collect();
    providers.sort_by(|a, b| (a.priority, &a.id).cmp(&(b.priority, &b.id)));
    providers
}

fn listed(config: &Config) -> Vec<ProviderView> {
    sorted(config).into_iter().map(|provider| view(config, provider)).collect()
}

fn view(config: &Config, provider: &Provider) -> ProviderView {
    let named = config.profiles.get(&config.active_profile).and_then(|profile| profile.provider.as_deref());
    let name = provider.name.as_ref().filter(|name| !name.trim().is_empty());
    let api_key = provider.api_key.clone().filter(|key| !key.trim().is_empty());
    ProviderView {
        id: provider.id.clone(),
        name: name.unwrap_or(&provider.id).clone(),
        kind: match provider.kind {
            ProviderKind::Openai => WireKind::Openai,
            ProviderKind::Anthropic => WireKind::Anthropic,
        },
        base_url: provider.base_url.clone(),
        api_key_configured: api_key.is_some(),
        api_key: api_key.map(ApiKey),
        models: provider.models.iter().map(|model| model.id.clone()).collect(),
        enabled: provider.enabled,
        priority: provider.priority,
        timeout_seconds: provider.timeout_seconds,
        model_list_url: provider.model_list_url.clone(),
        prompt_caching: provider.prompt_caching,
        proxy: provider.proxy.clone(),
        active: named.is_some_and(|named| same(named, &provider.id)),
    }
}

fn apply(config: &mut Config, params: ProviderUpsert) -> Result<ProviderView, WireError> {
    let index = config.providers.iter().position(|provider| same(&provider.id, &params.id));
    let old = index.and_then(|index| config.providers.get(index)).cloned();
    let new = changed(old, params)?;
    let shown = view(config, &new);
    match index.and_then(|index| config.providers.get_mut(index)) {
        Some(place) => *place = new,
        None => config.providers.push(new),
    }
    Ok(shown)
}

/// The provider as `params` want it, if it may be so.
fn changed(old: Option<Provider>, params: ProviderUpsert) -> Result<Provider, WireError> {
    // A reference is `provider/model`: an id with a slash or a blank could never be named.
    if old.is_none() && params.id.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
        return Err(unusable_id());
    }
    let mut new = old.unwrap_or_else(|| Provider { id: params.id, ..Provider::default() });
    if let Some(kind) = params.kind {
        new.kind = match kind {
            WireKind::Openai => ProviderKind::Openai,
            WireKind::Anthropic => ProviderKind::Anthropic,
        };
    }
    new.name = params.name.or(new.name);
    new.base_url = params.base_url.unwrap_or(new.base_url);
    new.proxy = params.proxy.or(new.proxy);
    new.enabled = params.enabled.unwrap_or(new.enabled);
    new.priority = params.priority.unwrap_or(new.priority);
    new.timeout_seconds = params.timeout_seconds.unwrap_or(new.timeout_seconds);
    new.model_list_url = params.model_list_url.apply(new.model_list_url);
    new.prompt_caching = params.prompt_caching.unwrap_or(new.prompt_caching);
    match params.api_key {
        Change::Keep => {}
        Change::Clear => new.api_key = None,
        Change::Set(ApiKey(key)) => new.api_key = Some(key),
    }
    if let Some(ids) = params.models {
        new.models = ids.into_iter().map(|id| survivor(&new.models, id)).collect();
    }
    if new.base_url.trim().is_empty() {
        return Err(base_url_required());
    }
    if !reqwest::Url::parse(new.base_url.trim()).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
        return Err(unusable_base_url());
    }
    if new.models.is_empty() { Err(model_required()) } else { Ok(new) }
}

/// The model of that id, with the settings it had.
fn survivor(old: &[Model], id: String) -> Model {
    let exact = old.iter().find(|model| model.id == id);
    let found = exact.or_else(|| old.iter().find(|model| same(&model.id, &id)));
    Model { id, ..found.cloned().unwrap_or_default() }
}

fn choose(config: &mut Config, id: &str) -> Result<String, WireError> {
    let found = config.providers.iter().find(|provider| same(&provider.id, id));
    let provider = found.ok_or_else(|| provider_not_found(id))?;
    let (id, first) = (provider.id.clone(), provider.models.first().map(|model| model.id.clone()));
    let current = config.profiles.get(&config.active_profile);
    let keeps = current.and_then(|profile| model_within(profile, provider));
    let profile = config.profiles.entry(config.active_profile.clone()).or_default();
    profile.provider = Some(id.clone());
    profile.model = keeps.or(first);
    Ok(id)
}

/// The id of the profile's model if `provider` has it, by id, alias or reference.
fn model_within(profile: &Profile, provider: &Provider) -> Option<String> {
    let named = profile.model.as_deref()?;
    let unqualified = named.split_once('/').filter(|(id, _)| same(id, &provider.id)).map(|(_, name)| name);
    let is = |model: &&Model, name: &str| {
        same(&model.id, name) || model.alias.as_deref().is_some_and(|alias| same(alias, name))
    };
    // A model that the profile takes from another provider is another model, even of the same name.
    let elsewhere = profile.provider.as_deref().is_some_and(|other| !same(other, &provider.id));
    let names = [unqualified, Some(named).filter(|_| !elsewhere)];
    let mut found =
        names.into_iter().flatten().filter_map(|name| provider.models.iter().find(|m| is(m, name)));
    found.next().map(|model| model.id.clone())
}

fn forget(config: &mut Config, id: &str) -> Result<(), WireError> {
    let index = config.providers.iter().position(|provider| same(&provider.id, id));
    let index = index.ok_or_else(|| provider_not_found(id))?;
    config.providers.remove(index);
    for profile in config.profiles.values_mut().filter(|profile| names(profile, id)) {
        profile.provider = None;
        profile.model = None;
    }
    Ok(())
}

fn names(profile: &Profile, id: &str) -> bool {
    let provider = profile.provider.as_deref().filter(|provider| !provider.trim().is_empty());
    let of_model = || profile.model.as_deref().and_then(|model| model.split_once('/')).map(|(id, _)| id);
    provider.or_else(of_model).is_some_and(|named| same(named, id))
}

#[cfg(test)]
mod tests;
