//! HTTP to providers: clients that are built when first needed and shared, the three limits of the
//! contract (4.7: connect, headers, gaps), and bodies that are never read without a bound.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Response, Url};
use seekclaw_storage::config::model::{Provider, ProviderKind};

use super::ProviderError;
use super::failure::root_cause;

/// Longest wait for a connection, whatever the provider's own limit (contract 4.7).
const MAX_CONNECT: Duration = Duration::from_secs(30);
/// A mistyped limit must not overflow the clock.
const MAX_LIMIT_SECONDS: u64 = 24 * 3600;
/// Redirects within one host.
const MAX_REDIRECTS: usize = 3;
/// Different proxies and limits in use at once; beyond it the pools start anew.
const MAX_CLIENTS: usize = 16;
/// Bytes of an error body that are read.
const MAX_ERROR_BODY: usize = 64 * 1024;
/// How long an error body may take: the status is already known.
const ERROR_BODY_LIMIT: Duration = Duration::from_secs(5);
const USER_AGENT: &str = concat!("seekclaw/", env!("CARGO_PKG_VERSION"));

/// What clients differ in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Kind {
    proxy: Option<String>,
    connect: Duration,
    /// To this machine: no proxy.
    local: bool,
    /// Plain HTTP to this machine: no root certificates either, whose loading costs memory.
    plain: bool,
}

static CLIENTS: LazyLock<Mutex<HashMap<Kind, Client>>> = LazyLock::new(Mutex::default);

/// The provider's limit for response headers and for gaps in a stream.
pub(crate) fn limit_of(provider: &Provider) -> Duration {
    Duration::from_secs(provider.timeout_seconds.clamp(1, MAX_LIMIT_SECONDS))
}

/// `path` beneath the provider's base URL.
pub(crate) fn endpoint(provider: &Provider, path: &str) -> Result<Url, ProviderError> {
    parse_url(provider, &format!("{}{path}", provider.base_url.trim().trim_end_matches('/')))
}

/// A URL that can be asked over HTTP.
pub(crate) fn parse_url(provider: &Provider, text: &str) -> Result<Url, ProviderError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| ProviderError::misconfigured(provider, "the base URL is no http or https address"))
}

/// The client for `url`.
pub(crate) async fn client_for(provider: &Provider, url: &Url) -> Result<Client, ProviderError> {
    let local = is_loopback(url);
    let plain = local && url.scheme() == "http";
    let proxy = provider.proxy.clone().filter(|proxy| !proxy.trim().is_empty() && !local);
    let kind = Kind { proxy, connect: limit_of(provider).min(MAX_CONNECT), local, plain };
    if let Some(client) = clients().get(&kind) {
        return Ok(client.clone());
    }
    // Loading the certificates of the system reads files.
    let built = tokio::task::spawn_blocking({
        let kind = kind.clone();
        move || build(&kind)
    });
    let client = match built.await {
        Ok(Ok(client)) => client,
        Ok(Err(error)) => return Err(ProviderError::misconfigured(provider, &root_cause(&error))),
        Err(_) => return Err(ProviderError::unreachable(provider, "the runtime is stopping")),
    };
    let mut clients = clients();
    if clients.len() >= MAX_CLIENTS {
        clients.clear();
    }
    Ok(clients.entry(kind).or_insert(client).clone())
}

fn clients() -> std::sync::MutexGuard<'static, HashMap<Kind, Client>> {
    CLIENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn build(kind: &Kind) -> reqwest::Result<Client> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::trace!("the TLS provider is already installed");
    }
    let mut builder = Client::builder()
        .user_agent(USER_AGENT)
        .connect_timeout(kind.connect)
        .redirect(Policy::custom(within_the_host))
        .tcp_nodelay(true);
    if kind.local {
        builder = builder.no_proxy();
    } else if let Some(proxy) = &kind.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy)?);
    }
    if kind.plain {
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// Keys also travel in headers that the client does not know as secret, so nothing leaves the host.
fn within_the_host(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let same = attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if same && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The provider's key and its own headers, which win.
pub(crate) fn headers_of(provider: &Provider) -> Result<HeaderMap, ProviderError> {
    let mut headers = HeaderMap::new();
    let key = provider.api_key.as_deref().map(str::trim).filter(|key| !key.is_empty());
    match (provider.kind, key) {
        (ProviderKind::Openai, Some(key)) => {
            headers.insert(AUTHORIZATION, secret(provider, "the API key", &format!("Bearer {key}"))?);
        }
        (ProviderKind::Anthropic, Some(key)) => {
            headers.insert("x-api-key", secret(provider, "the API key", key)?);
        }
        (_, None) => {}
    }
    if provider.kind == ProviderKind::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    if let Some(organization) = provider.organization.as_deref().filter(|text| !text.trim().is_empty()) {
        headers.insert("openai-organization", secret(provider, "the organization", organization)?);
    }
    for (name, value) in &provider.headers {
        let parsed = HeaderName::try_from(name.trim());
        let parsed =
            parsed.map_err(|_| ProviderError::misconfigured(provider, &format!("bad header name {name}")))?;
        headers.insert(parsed, secret(provider, &format!("header {name}"), value)?);
    }
    Ok(headers)
}

/// The value itself stays out of the error.
fn secret(provider: &Provider, what: &str, value: &str) -> Result<HeaderValue, ProviderError> {
    let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
        ProviderError::misconfigured(provider, &format!("{what} holds characters that no header can carry"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Sends and waits for the response headers, at most `limit`.
pub(crate) async fn send(
    provider: &Provider,
    request: reqwest::RequestBuilder,
    limit: Duration,
) -> Result<Response, ProviderError> {
    match tokio::time::timeout(limit, request.send()).await {
        Err(_) => Err(ProviderError::timed_out(provider, limit)),
        Ok(Err(error)) if error.is_timeout() => {
            Err(ProviderError::timed_out(provider, limit.min(MAX_CONNECT)))
        }
        Ok(Err(error)) if error.is_builder() => {
            Err(ProviderError::misconfigured(provider, &root_cause(&error)))
        }
        Ok(Err(error)) => Err(ProviderError::unreachable(provider, &root_cause(&error))),
        Ok(Ok(response)) => Ok(response),
    }
}

/// A success, or the error that its status and the beginning of its body make.
pub(crate) async fn checked(provider: &Provider, response: Response) -> Result<Response, ProviderError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let headers = response.headers().clone();
    let body = beginning(response).await;
    Err(ProviderError::status(provider, status.as_u16(), &headers, &body))
}

/// As much of a body as an error text needs; a body that breaks or dawdles ends where it is.
pub(crate) async fn beginning(mut response: Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let room = MAX_ERROR_BODY - body.len();
            body.extend_from_slice(bytes.get(..room).unwrap_or(&bytes));
            if body.len() >= MAX_ERROR_BODY {
                break;
            }
        }
    };
    if tokio::time::timeout(ERROR_BODY_LIMIT, read).await.is_err() {
        tracing::debug!("the body of an error response did not end");
    }
    String::from_utf8_lossy(&body).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(base_url: &str) -> Provider {
        Provider { id: "p".to_owned(), base_url: base_url.to_owned(), ..Provider::default() }
    }

    #[test]
    fn endpoints_join_with_one_slash_and_only_over_http() {
        let url = endpoint(&provider("http://h:1/v1/"), "/chat/completions").unwrap();
        assert_eq!(url.as_str(), "http://h:1/v1/chat/completions");
        for bad in ["", "h:1", "file:///etc", "ftp://h"] {
            let error = endpoint(&provider(bad), "/models").unwrap_err();
            assert!(!error.retryable, "{bad}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for yes in ["http://localhost:1", "http://127.0.0.1", "http://127.9.9.9", "http://[::1]:8/v1"] {
            assert!(is_loopback(&Url::parse(yes).unwrap()), "{yes}");
        }
        for no in ["http://127.evil.example", "http://10.0.0.1", "http://localhost.example"] {
            assert!(!is_loopback(&Url::parse(no).unwrap()), "{no}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_sent_is_not_shown() {
        let mut broken = provider("http://h");
        broken.api_key = Some("sk-canary\nx".to_owned());
        let error = headers_of(&broken).unwrap_err();
        assert!(!error.message.contains("canary"), "{error}");
    }

    #[test]
    fn own_headers_win_and_secrets_are_marked() {
        let mut own = provider("http://h");
        own.api_key = Some("sk-canary".to_owned());
        own.headers.insert("Authorization".to_owned(), "Token t".to_owned());
        let headers = headers_of(&own).unwrap();
        assert_eq!(headers.get(AUTHORIZATION).unwrap(), "Token t");
        assert!(!format!("{headers:?}").contains("Token t"));
    }

    #[tokio::test]
    async fn clients_are_shared_by_what_they_differ_in() {
        let url = Url::parse("http://127.0.0.1:9/v1").unwrap();
        let count = || clients().keys().filter(|kind| kind.connect == Duration::from_secs(17)).count();
        let mut mine = provider(url.as_str());
        mine.timeout_seconds = 17;
        mine.proxy = Some("http://proxy.invalid:1".to_owned());
        for _ in 0..3 {
            client_for(&mine, &url).await.unwrap();
        }
        assert_eq!(count(), 1, "and the proxy does not count for loopback");
    }
}
