//! `provider.*` (contract 2.8): what is shown, what an upsert may change, what a probe found.

use std::fmt;

use serde::Serialize;

use crate::error::{ErrorCode, WireError};
use crate::params::{Change, FromParams, Params, wrong_type};

/// An API key. It is never printed.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ApiKey(pub String);

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Dialect of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions.
    Openai,
    /// Messages.
    Anthropic,
}

impl ProviderKind {
    /// The name in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "openai" => Some(Self::Openai),
            "anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

/// One entry of `provider.list`, and the result of `provider.upsert`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderView {
    /// Unique id.
    pub id: String,
    /// Name for people; the id if there is none.
    pub name: String,
    /// Dialect.
    pub kind: ProviderKind,
    /// Base URL.
    pub base_url: String,
    /// Key, in clear: the desktop edits it.
    pub api_key: Option<ApiKey>,
    /// Whether there is a key.
    pub api_key_configured: bool,
    /// Model ids.
    pub models: Vec<String>,
    /// Whether it is used.
    pub enabled: bool,
    /// Lower comes first.
    pub priority: i64,
    /// Limit for headers and gaps, in seconds.
    pub timeout_seconds: u64,
    /// Where models are listed.
    pub model_list_url: Option<String>,
    /// Anthropic cache marks.
    pub prompt_caching: bool,
    /// Proxy URL.
    pub proxy: Option<String>,
    /// Whether the active profile names it.
    pub active: bool,
}

/// Parameters of `provider.use` and `provider.remove`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderParams {
    /// Provider id, in any case.
    pub id: String,
}

impl FromParams for ProviderParams {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self { id: params.required_str("id")?.to_owned() })
    }
}

/// Parameters of `provider.test`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderTest {
    /// The one to test; all if absent.
    pub id: Option<String>,
}

impl FromParams for ProviderTest {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self { id: params.filled_str("id")? })
    }
}

/// Parameters of `provider.upsert`: `None` and [`Change::Keep`] leave the stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderUpsert {
    /// Provider id, in any case.
    pub id: String,
    /// Dialect.
    pub kind: Option<ProviderKind>,
    /// Name for people.
    pub name: Option<String>,
    /// Base URL.
    pub base_url: Option<String>,
    /// Proxy URL.
    pub proxy: Option<String>,
    /// Whether it is used.
    pub enabled: Option<bool>,
    /// Lower comes first.
    pub priority: Option<i64>,
    /// Limit for headers and gaps, in seconds.
    pub timeout_seconds: Option<u64>,
    /// Where models are listed; the only text that can be cleared.
    pub model_list_url: Change<String>,
    /// Anthropic cache marks.
    pub prompt_caching: Option<bool>,
    /// Key.
    pub api_key: Change<ApiKey>,
    /// The model ids from now on; ids that were there keep their settings.
    pub models: Option<Vec<String>>,
}

impl FromParams for ProviderUpsert {
    fn from_params(params: &Params) -> Result<Self, WireError> {
        Ok(Self {
            id: params.required_str("id")?.to_owned(),
            kind: kind(params)?,
            name: params.filled_str("name")?,
            base_url: params.filled_str("baseUrl")?,
            proxy: params.filled_str("proxy")?,
            enabled: params.bool("enabled")?,
            priority: params.int("priority")?,
            timeout_seconds: timeout(params)?,
            model_list_url: params.change_str("modelListUrl")?,
            prompt_caching: params.bool("promptCaching")?,
            api_key: api_key(params)?,
            models: models(params)?,
        })
    }
}

fn kind(params: &Params) -> Result<Option<ProviderKind>, WireError> {
    let Some(value) = params.get("kind") else { return Ok(None) };
    match value.as_str().map(str::trim) {
        Some("") => Ok(None),
        Some(text) => ProviderKind::parse(text).map(Some).ok_or_else(unknown_kind),
        None => Err(unknown_kind()),
    }
}

fn timeout(params: &Params) -> Result<Option<u64>, WireError> {
    let Some(seconds) = params.int("timeoutSeconds")? else { return Ok(None) };
    let positive = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    positive.map(Some).ok_or_else(|| wrong_type("timeoutSeconds", "a positive integer"))
}

fn api_key(params: &Params) -> Result<Change<ApiKey>, WireError> {
    let key = params.filled_str("apiKey")?;
    if params.bool("clearApiKey")? == Some(true) {
        return Ok(Change::Clear);
    }
    Ok(key.map_or(Change::Keep, |key| Change::Set(ApiKey(key))))
}

fn models(params: &Params) -> Result<Option<Vec<String>>, WireError> {
    let Some(given) = params.strings("models")? else { return Ok(None) };
    let mut ids: Vec<String> = Vec::with_capacity(given.len());
    for id in given.iter().map(|id| id.trim()).filter(|id| !id.is_empty()) {
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    Ok(Some(ids))
}

/// One entry of the result of `provider.test`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderProbe {
    /// Provider id.
    pub id: String,
    /// Whether it answered.
    pub online: bool,
    /// Time of the probe.
    pub latency_ms: f64,
    /// What it answered, or what went wrong.
    pub detail: String,
}

/// `Provider kind must be openai or anthropic`.
#[must_use]
pub fn unknown_kind() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "Provider kind must be openai or anthropic")
}

/// `Provider baseUrl is required`: neither sent nor stored.
#[must_use]
pub fn base_url_required() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "Provider baseUrl is required")
}

/// An id that no model reference could name.
#[must_use]
pub fn unusable_id() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "Provider id must not contain slashes or blanks")
}

/// An address that no request can be sent to.
#[must_use]
pub fn unusable_base_url() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "Provider baseUrl must be an http or https URL")
}

/// `At least one model is required`: neither sent nor stored.
#[must_use]
pub fn model_required() -> WireError {
    WireError::new(ErrorCode::InvalidParams, "At least one model is required")
}

/// `Provider not found: <id>`.
#[must_use]
pub fn provider_not_found(id: &str) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Provider not found: {id}"))
}

/// `No matching providers`: what `provider.test` answers.
#[must_use]
pub fn no_matching_providers() -> WireError {
    WireError::new(ErrorCode::NotFound, "No matching providers")
}

#[cfg(test)]
mod tests;
