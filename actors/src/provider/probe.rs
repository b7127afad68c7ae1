//! Whether a provider answers, what models it has, and whether one of them works (contract 2.6, 6.7).

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::header::ACCEPT;
use reqwest::{Response, Url};
use seekclaw_protocol::ReasoningLevel;
use seekclaw_storage::config::model::{Provider, ProviderKind};
use serde_json::Value;
use tokio::time::Instant;

use super::failure::{cut, redact, root_cause};
use super::retry::answer_once;
use super::{Candidate, Request, client};
use crate::history::{Message, Role};

/// How long a probe may take (contract 4.7).
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// Tokens of the answer to a test (contract 2.6).
const TEST_TOKENS: u64 = 16;
/// Longest list of models that is read; the longest in use has under 2 MiB.
const MAX_LIST_BYTES: usize = 16 * 1024 * 1024;
/// Characters of a body in an error (contract 6.7).
const BODY_CHARS: usize = 240;
/// Characters of a model's answer to a test that are shown.
const DETAIL_CHARS: usize = 200;
/// How long a server on this machine may take to show itself.
const LOCAL_LIMIT: Duration = Duration::from_millis(150);
/// The usual ports of servers for small models.
const LOCAL_PORTS: [(u16, &str); 3] = [(11434, "Ollama"), (8080, "llama.cpp"), (1234, "LM Studio")];

/// Whether a provider answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// Whether anybody answered as a provider would.
    pub online: bool,
    /// How long it took.
    pub latency: Duration,
    /// `ok`, or what is wrong.
    pub detail: String,
}

/// Asks a provider for its models, at most 10 seconds, without reading them.
pub async fn probe(provider: &Provider) -> Probe {
    let started = Instant::now();
    let (online, detail) = match tokio::time::timeout(PROBE_LIMIT, status_of(provider)).await {
        Err(_) => (false, "timeout".to_owned()),
        Ok(Err(reason)) => (false, redact(provider, &reason)),
        Ok(Ok(200..=299)) => (true, "ok".to_owned()),
        Ok(Ok(status @ (401 | 403))) => (true, format!("reachable, auth failed (HTTP {status})")),
        Ok(Ok(status)) => (false, format!("HTTP {status}")),
    };
    Probe { online, latency: started.elapsed(), detail }
}

async fn status_of(provider: &Provider) -> Result<u16, String> {
    let url = models_url(provider).ok_or_else(|| "the base URL is no http or https address".to_owned())?;
    get(provider, url).await.map(|response| response.status().as_u16())
}

async fn get(provider: &Provider, url: Url) -> Result<Response, String> {
    let client = client::client_for(provider, &url).await.map_err(|error| error.message)?;
    let headers = client::headers_of(provider).map_err(|error| error.message)?;
    let sent = client.get(url).header(ACCEPT, "application/json").headers(headers).send().await;
    sent.map_err(|error| if error.is_timeout() { "timeout".to_owned() } else { root_cause(&error) })
}

/// Where the models of a provider are listed.
fn models_url(provider: &Provider) -> Option<Url> {
    let base = provider.base_url.trim().trim_end_matches('/');
    let path = match provider.kind {
        ProviderKind::Anthropic if !base.ends_with("/v1") => "/v1/models",
        ProviderKind::Anthropic | ProviderKind::Openai => "/models",
    };
    client::parse_url(provider, &format!("{base}{path}")).ok()
}

/// Asks a model for one short answer, without retries: whether it did, what it said or why not, and
/// milliseconds.
pub async fn test_model(candidate: &Candidate) -> (bool, String, f64) {
    let request = Request {
        system: String::new(),
        messages: vec![Message::new(Role::User, "Reply with the single word: ok")],
        tools: Vec::new(),
        max_output: TEST_TOKENS,
        temperature: None,
        reasoning: ReasoningLevel::None,
    };
    let started = Instant::now();
    let outcome = answer_once(candidate, &request, &mut |_| {}).await;
    let latency = started.elapsed().as_secs_f64() * 1000.0;
    match outcome {
        Ok(reply) if reply.text.trim().is_empty() => (true, "ok".to_owned(), latency),
        Ok(reply) => (true, cut(reply.text.trim(), DETAIL_CHARS).to_owned(), latency),
        Err(error) => (false, error.message, latency),
    }
}

/// Why the models of a provider are not known. Every text names the provider (contract 6.7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is none.
    #[error("Invalid model list URL for {0}")]
    InvalidUrl(String),
    /// No answer in time.
    #[error("Model list request to {0} timed out after {1}s.")]
    TimedOut(String, u64),
    /// No answer.
    #[error("Cannot fetch models from {0}: {1}")]
    Unreachable(String, String),
    /// A refusal.
    #[error("{0} returned HTTP {1}: {2}")]
    Status(String, u16, String),
    /// An answer that is no JSON, or too much of it.
    #[error("{0} returned a model list that is not valid JSON")]
    NotJson(String),
    /// JSON without a list.
    #[error("{0} returned no model array")]
    NoArray(String),
    /// A list without ids.
    #[error("{0} returned no model ids")]
    NoIds(String),
}

/// The ids of a provider's models, sorted, each once. `url` wins over the configured address.
///
/// # Errors
/// The list cannot be had; the text says why.
pub async fn fetch_models(provider: &Provider, url: Option<&str>) -> Result<Vec<String>, FetchError> {
    let limit = Duration::from_secs(provider.timeout_seconds.clamp(5, 120));
    match tokio::time::timeout(limit, fetch(provider, url)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(FetchError::TimedOut(provider.id.clone(), limit.as_secs())),
    }
}

async fn fetch(provider: &Provider, url: Option<&str>) -> Result<Vec<String>, FetchError> {
    let id = || provider.id.clone();
    let given = [url, provider.model_list_url.as_deref()].into_iter().flatten();
    let given = given.map(str::trim).find(|text| !text.is_empty());
    let url = match given {
        Some(text) => client::parse_url(provider, text).ok(),
        None => models_url(provider),
    };
    let url = url.ok_or_else(|| FetchError::InvalidUrl(id()))?;
    let unreachable = |reason: String| FetchError::Unreachable(id(), redact(provider, &reason));
    let mut response = get(provider, url).await.map_err(unreachable)?;
    let status = response.status();
    if !status.is_success() {
        let body = client::beginning(response).await;
        let said = redact(provider, cut(body.trim(), BODY_CHARS));
        return Err(FetchError::Status(id(), status.as_u16(), said));
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| unreachable(root_cause(&error)))? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_LIST_BYTES {
            return Err(FetchError::NotJson(id()));
        }
    }
    ids_of(provider, &body)
}

fn ids_of(provider: &Provider, body: &[u8]) -> Result<Vec<String>, FetchError> {
    let id = || provider.id.clone();
    let answer: Value = serde_json::from_slice(body).map_err(|_| FetchError::NotJson(id()))?;
    let list = [Some(&answer), answer.get("data"), answer.get("models")];
    let list =
        list.into_iter().flatten().find_map(Value::as_array).ok_or_else(|| FetchError::NoArray(id()))?;
    let named = list.iter().filter_map(|item| {
        item.as_str().or_else(|| ["id", "name", "model"].iter().find_map(|key| item.get(key)?.as_str()))
    });
    let ids: BTreeSet<&str> = named.map(str::trim).filter(|text| !text.is_empty()).collect();
    if ids.is_empty() {
        return Err(FetchError::NoIds(id()));
    }
    Ok(ids.into_iter().map(str::to_owned).collect())
}

/// A server for models that answers on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalServer {
    /// What usually listens there.
    pub name: String,
    /// Base URL for a provider of kind `openai`.
    pub base_url: String,
    /// Models that it names.
    pub models: Vec<String>,
}

/// The servers that answer on their usual loopback ports; nothing else is contacted.
pub async fn local_servers() -> Vec<LocalServer> {
    let found = join_all(LOCAL_PORTS.map(|(port, name)| local_server(port, name))).await;
    found.into_iter().flatten().collect()
}

async fn local_server(port: u16, name: &str) -> Option<LocalServer> {
    let look = async {
        // A bare connect first: where nobody listens no HTTP client has to be built.
        tokio::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, port)).await.ok()?;
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let provider = Provider { id: name.to_owned(), base_url, ..Provider::default() };
        let models = fetch(&provider, None).await.ok()?;
        Some(LocalServer { name: provider.id, base_url: provider.base_url, models })
    };
    tokio::time::timeout(LOCAL_LIMIT, look).await.ok().flatten()
}

#[cfg(test)]
mod tests;
