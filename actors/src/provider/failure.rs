//! What a failed call is called: codes, the message shapes of the contract (6.5), and waits asked for.

use std::error::Error;
use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use seekclaw_protocol::ErrorCode;
use seekclaw_storage::config::model::Provider;
use serde_json::Value;

use super::ProviderError;

/// Characters of a body that is not a known error object (contract 6.5).
const BODY_CHARS: usize = 400;
/// Characters of a server's own message: it is shown to people and stored.
const MESSAGE_CHARS: usize = 2000;
/// What stands where a key would be.
const REDACTED: &str = "***";
/// How the TLS library says that the other side answered without TLS.
const NO_TLS: &str = "InvalidContentType";

impl ProviderError {
    fn new(code: ErrorCode, message: String, retryable: bool) -> Self {
        Self { code, message, retryable, committed: false, retry_after: None }
    }

    /// The call was cancelled. Whoever cancelled knows; nobody else sees this.
    pub(crate) fn cancelled() -> Self {
        Self::new(ErrorCode::Internal, "the request was cancelled".to_owned(), false)
    }

    /// A dialect that this version does not speak.
    pub(crate) fn unsupported(provider: &Provider) -> Self {
        let message = format!("{} speaks the messages dialect, which is not available yet", provider.id);
        Self::new(ErrorCode::Unavailable, message, false)
    }

    /// The request can never be sent as configured.
    pub(crate) fn misconfigured(provider: &Provider, reason: &str) -> Self {
        let message = format!("Cannot reach {}: {}", provider.id, redact(provider, reason));
        Self::new(ErrorCode::ProviderRejected, message, false)
    }

    /// No connection, or it broke before there was an answer.
    pub(crate) fn unreachable(provider: &Provider, reason: &str) -> Self {
        let message = format!("Cannot reach {}: {}", provider.id, redact(provider, reason));
        Self::new(ErrorCode::ProviderUnavailable, message, true)
    }

    /// No answer in time.
    pub(crate) fn timed_out(provider: &Provider, limit: Duration) -> Self {
        let message = format!("Request to {} timed out after {}s.", provider.id, limit.as_secs());
        Self::new(ErrorCode::Timeout, message, true)
    }

    /// A gap in the stream.
    pub(crate) fn idle(provider: &Provider, limit: Duration) -> Self {
        let message =
            format!("Request to {} timed out after {}s idle without activity.", provider.id, limit.as_secs());
        Self::new(ErrorCode::Timeout, message, true)
    }

    /// The stream is damaged or says that it failed.
    pub(crate) fn stream(provider: &Provider, code: ErrorCode, reason: &str) -> Self {
        let message = format!("{} stream error: {}", provider.id, redact(provider, reason));
        let retryable = matches!(
            code,
            ErrorCode::ProviderUnavailable | ErrorCode::ProviderRateLimited | ErrorCode::Timeout
        );
        Self::new(code, message, retryable)
    }

    /// An HTTP status that is no success.
    pub(crate) fn status(provider: &Provider, status: u16, headers: &HeaderMap, body: &str) -> Self {
        let said = redact(provider, &server_message(body));
        let code = code_of_status(status, body);
        let retryable = matches!(status, 408 | 409 | 429 | 500..);
        let hint = if is_wrong_path(provider, status, body) { WRONG_PATH } else { "" };
        let message = format!("{} returned HTTP {status}: {said}{hint}", provider.id);
        let mut error = Self::new(code, message, retryable);
        error.retry_after = retryable.then(|| retry_after(headers)).flatten();
        error
    }
}

/// Ends the text of a refusal that speaks of a wrong base URL.
const WRONG_PATH: &str = " (check the base URL: it usually ends in /v1)";

/// Nobody serves models there: the refusal is not worded as an API words it, and `/v1` is missing.
fn is_wrong_path(provider: &Provider, status: u16, body: &str) -> bool {
    let known = serde_json::from_str::<Value>(body).ok().and_then(|value| message_of(&value));
    let base = provider.base_url.trim().trim_end_matches('/');
    matches!(status, 404 | 405) && known.is_none() && !base.ends_with("/v1")
}

fn code_of_status(status: u16, body: &str) -> ErrorCode {
    match status {
        401 | 403 => ErrorCode::ProviderAuth,
        429 => ErrorCode::ProviderRateLimited,
        408 | 409 | 500.. => ErrorCode::ProviderUnavailable,
        400 | 413 | 422 if says_too_long(body) => ErrorCode::ContextOverflow,
        _ => ErrorCode::ProviderRejected,
    }
}

/// The code of an error that came inside of a stream or of a 200.
pub(crate) fn code_of_frame(error: &Value) -> ErrorCode {
    let text = error.to_string().to_ascii_lowercase();
    let number = ["code", "status"].iter().find_map(|key| {
        let value = error.get(key)?;
        value.as_u64().or_else(|| value.as_str()?.parse().ok())
    });
    match number {
        _ if says_too_long(&text) => ErrorCode::ContextOverflow,
        Some(status @ 400..=599) => code_of_status(u16::try_from(status).unwrap_or(500), &text),
        _ if text.contains("rate_limit") => ErrorCode::ProviderRateLimited,
        _ if text.contains("authentication_error") || text.contains("invalid_api_key") => {
            ErrorCode::ProviderAuth
        }
        _ if text.contains("invalid_request") => ErrorCode::ProviderRejected,
        _ => ErrorCode::ProviderUnavailable,
    }
}

/// How the servers in use say that a conversation does not fit.
fn says_too_long(body: &str) -> bool {
    const SIGNS: [&str; 9] = [
        "context_length_exceeded",
        "exceed_context_size",
        "maximum context length",
        "context length",
        "context size",
        "context window",
        "prompt is too long",
        "input is too long",
        "too many tokens",
    ];
    let body = body.to_ascii_lowercase();
    SIGNS.iter().any(|sign| body.contains(sign))
}

/// What a server says for itself: `error.message`, `error` as text, `message`, or the body as it is.
pub(crate) fn server_message(body: &str) -> String {
    let known = serde_json::from_str::<Value>(body).ok().and_then(|value| message_of(&value));
    match known {
        Some(text) => cut(&text, MESSAGE_CHARS).to_owned(),
        None if body.trim().is_empty() => "(empty body)".to_owned(),
        None => cut(body.trim(), BODY_CHARS).to_owned(),
    }
}

/// The readable part of an error object.
pub(crate) fn message_of(value: &Value) -> Option<String> {
    let error = value.get("error");
    let text = error.and_then(|error| error.get("message")).or(error).filter(|text| text.is_string());
    let text = text.or_else(|| value.get("message"))?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The first `chars` characters of a text.
pub(crate) fn cut(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// Servers repeat keys in their messages.
pub(crate) fn redact(provider: &Provider, text: &str) -> String {
    let secret_headers = provider.headers.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
    // A placeholder key like `x` is no secret, and replacing it would garble every text.
    let secrets = provider.api_key.iter().chain(secret_headers).map(|secret| secret.trim());
    secrets
        .filter(|secret| secret.len() >= 6)
        .fold(text.to_owned(), |text, secret| text.replace(secret, REDACTED))
}

fn is_secret(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    ["auth", "key", "token", "secret", "cookie"].iter().any(|word| header.contains(word))
}

/// The innermost cause: the outer ones repeat the URL, which may hold a key.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    let text = cause.map_or_else(|| "the request could not be made".to_owned(), ToString::to_string);
    if text.contains(NO_TLS) {
        return "the server does not speak TLS there, so the base URL should probably begin with http://"
            .to_owned();
    }
    text
}

/// `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date, judged by the server's own clock.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let value = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let then = chrono::DateTime::parse_from_rfc2822(value).ok()?.to_utc();
    let now = text(DATE.as_str()).and_then(|text| chrono::DateTime::parse_from_rfc2822(text).ok());
    let now = now.map_or_else(chrono::Utc::now, |now| now.to_utc());
    Some((then - now).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn provider() -> Provider {
        Provider { id: "p".to_owned(), api_key: Some("sk-canary-123".to_owned()), ..Provider::default() }
    }

    #[test]
    fn retry_after_is_read_in_all_its_forms() {
        let wait = |pairs: &[(&'static str, &str)]| retry_after(&headers(pairs));
        assert_eq!(wait(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(Duration::from_millis(500)));
        assert_eq!(
            wait(&[("retry-after", "9"), ("retry-after-ms", "150")]),
            Some(Duration::from_millis(150))
        );
        let date = ("date", "Mon, 30 Nov 2026 18:34:59 GMT");
        let then = |text| [("retry-after", text), date];
        assert_eq!(wait(&then("Mon, 30 Nov 2026 18:35:09 GMT")), Some(Duration::from_secs(10)));
        assert_eq!(wait(&then("Mon, 30 Nov 2026 18:34:00 GMT")), Some(Duration::ZERO));
        assert_eq!(wait(&[("retry-after", "-3")]), None);
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn the_server_message_is_found_where_servers_put_it() {
        assert_eq!(server_message(r#"{"error":{"message":"a"}}"#), "a");
        assert_eq!(server_message(r#"{"error":"b"}"#), "b");
        assert_eq!(server_message(r#"{"message":"c","error":{"code":1}}"#), "c");
        assert_eq!(server_message("  \n"), "(empty body)");
        assert_eq!(server_message("<html>d</html>"), "<html>d</html>");
        assert_eq!(server_message(&"é".repeat(900)), "é".repeat(400));
    }

    #[test]
    fn statuses_have_codes_and_only_passing_ones_are_retryable() {
        let of = |status, body| {
            let error = ProviderError::status(&provider(), status, &HeaderMap::new(), body);
            (error.code, error.retryable)
        };
        let long = r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#;
        assert_eq!(of(401, ""), (ErrorCode::ProviderAuth, false));
        assert_eq!(of(403, ""), (ErrorCode::ProviderAuth, false));
        assert_eq!(of(429, ""), (ErrorCode::ProviderRateLimited, true));
        for status in [408, 409, 500, 503, 529] {
            assert_eq!(of(status, ""), (ErrorCode::ProviderUnavailable, true), "{status}");
        }
        assert_eq!(of(400, long), (ErrorCode::ContextOverflow, false));
        assert_eq!(of(400, "{}"), (ErrorCode::ProviderRejected, false));
        assert_eq!(of(404, long), (ErrorCode::ProviderRejected, false));
        assert_eq!(of(302, ""), (ErrorCode::ProviderRejected, false));
    }

    #[test]
    fn a_path_that_nobody_serves_hints_at_the_base_url() {
        let text = |base: &str, status, body| {
            let provider = Provider { base_url: base.to_owned(), ..provider() };
            ProviderError::status(&provider, status, &HeaderMap::new(), body).message
        };
        let hinted = "p returned HTTP 404: 404 page not found (check the base URL: it usually ends in /v1)";
        assert_eq!(text("http://h:1", 404, "404 page not found"), hinted);
        assert_eq!(text("http://h:1/v1/", 404, "no"), "p returned HTTP 404: no");
        assert_eq!(text("http://h:1", 400, "no"), "p returned HTTP 400: no");
        let known = r#"{"error":{"message":"no such model"}}"#;
        assert_eq!(text("http://h:1", 404, known), "p returned HTTP 404: no such model");
    }

    #[test]
    fn a_key_that_the_server_repeats_does_not_reach_the_message() {
        let body = r#"{"error":{"message":"bad key sk-canary-123"}}"#;
        let error = ProviderError::status(&provider(), 401, &HeaderMap::new(), body);
        assert_eq!(error.message, "p returned HTTP 401: bad key ***");
    }
}
