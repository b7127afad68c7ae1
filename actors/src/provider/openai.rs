//! The chat completions dialect (contract 6.2): one request, one answer. A stream that ends without a
//! finish reason, an empty body or half a call is an error, never an answer.

mod body;
mod calls;
mod first;
mod frames;
mod surrogates;

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use seekclaw_protocol::ErrorCode;

use super::failure::root_cause;
use super::retry::Hear;
use super::sse::Decoder;
use super::{Candidate, ProviderError, Reply, Request, client};
use first::FirstLine;
use frames::{Assembler, Fault};

/// Least gap that is allowed to DeepSeek with optimisation on (contract 4.7).
const DEEP_SEEK_IDLE: Duration = Duration::from_secs(300);
/// How long figures are waited for once the answer itself is whole.
const AFTER_FINISH: Duration = Duration::from_secs(5);
/// How long the end of the body is waited for after `[DONE]`, so that the connection can be used again.
const AFTER_DONE: Duration = Duration::from_millis(20);
/// Longest answer that is not streamed.
const MAX_WHOLE_BODY: usize = 32 * 1024 * 1024;

/// Asks once.
pub(crate) async fn answer(
    candidate: &Candidate,
    request: &Request,
    hear: Hear<'_>,
) -> Result<Reply, ProviderError> {
    let provider = &candidate.provider;
    let url = client::endpoint(provider, "/chat/completions")?;
    let body = body::encode(candidate, request);
    let post = client::client_for(provider, &url)
        .await?
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, if body.streaming { "text/event-stream" } else { "application/json" })
        .headers(client::headers_of(provider)?)
        .body(body.json);
    let response = client::send(provider, post, client::limit_of(provider)).await?;
    let response = client::checked(provider, response).await?;
    read(candidate, response, hear).await
}

/// Reads the answer, streamed or not: the first byte tells, whatever the headers say.
async fn read(candidate: &Candidate, mut response: Response, hear: Hear<'_>) -> Result<Reply, ProviderError> {
    let mut reader = Reader::new(candidate);
    let idle = idle_limit(candidate);
    loop {
        let whole = reader.is_whole();
        let limit = if whole { idle.min(AFTER_FINISH) } else { idle };
        let bytes = match tokio::time::timeout(limit, response.chunk()).await {
            Ok(Ok(Some(bytes))) => bytes,
            Ok(Ok(None)) => break,
            // The answer is there; only its figures are not.
            Ok(Err(_)) | Err(_) if whole => break,
            Ok(Err(error)) => return Err(broken(candidate, &root_cause(&error))),
            Err(_) => return Err(ProviderError::idle(&candidate.provider, idle)),
        };
        reader.feed(&bytes, hear).map_err(|fault| failed(candidate, fault))?;
        if reader.is_done() {
            if tokio::time::timeout(AFTER_DONE, response.chunk()).await.is_err() {
                tracing::trace!("the body goes on after its end mark");
            }
            break;
        }
    }
    reader.finish(hear).map_err(|fault| failed(candidate, fault))
}

fn idle_limit(candidate: &Candidate) -> Duration {
    let limit = client::limit_of(&candidate.provider);
    if candidate.deep_seek_optimized { limit.max(DEEP_SEEK_IDLE) } else { limit }
}

fn broken(candidate: &Candidate, reason: &str) -> ProviderError {
    ProviderError::stream(&candidate.provider, ErrorCode::ProviderUnavailable, reason)
}

fn failed(candidate: &Candidate, fault: Fault) -> ProviderError {
    ProviderError::stream(&candidate.provider, fault.code(), &fault.to_string())
}

/// A body as it arrives: events, or one JSON object.
struct Reader {
    form: Form,
    assembler: Assembler,
    payloads: Vec<String>,
    first: FirstLine,
    has_events: bool,
}

enum Form {
    /// Nothing but blanks so far.
    Unknown,
    Events(Decoder),
    Whole(Vec<u8>),
}

impl Reader {
    fn new(candidate: &Candidate) -> Self {
        let assembler = Assembler::new(candidate.deep_seek_optimized);
        Self {
            form: Form::Unknown,
            assembler,
            payloads: Vec::new(),
            first: FirstLine::default(),
            has_events: false,
        }
    }

    fn is_whole(&self) -> bool {
        self.assembler.has_finish()
    }

    fn is_done(&self) -> bool {
        self.assembler.is_done()
    }

    fn feed(&mut self, bytes: &[u8], hear: Hear<'_>) -> Result<(), Fault> {
        if matches!(self.form, Form::Unknown) {
            match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => return Ok(()),
                // A page may be long: there is nothing to wait for.
                Some(b'<') => return Err(Fault::WebPage),
                Some(b'{') => self.form = Form::Whole(Vec::new()),
                Some(_) => self.form = Form::Events(Decoder::default()),
            }
        }
        match &mut self.form {
            Form::Whole(body) if body.len() + bytes.len() > MAX_WHOLE_BODY => Err(Fault::TooLong),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Events(decoder) => {
                self.first.feed(bytes);
                decoder.feed(bytes, &mut self.payloads).map_err(|_| Fault::TooLong)?;
                self.take(hear)
            }
            Form::Unknown => Ok(()),
        }
    }

    fn take(&mut self, hear: Hear<'_>) -> Result<(), Fault> {
        self.has_events |= !self.payloads.is_empty();
        for payload in self.payloads.drain(..) {
            self.assembler.payload(&payload, hear)?;
        }
        Ok(())
    }

    fn finish(mut self, hear: Hear<'_>) -> Result<Reply, Fault> {
        match &mut self.form {
            Form::Unknown => return Err(Fault::Empty),
            Form::Events(decoder) => {
                decoder.finish(&mut self.payloads).map_err(|_| Fault::TooLong)?;
                self.take(hear)?;
                if let Some(text) = self.first.foreign().filter(|_| !self.has_events) {
                    return Err(Fault::Foreign(text));
                }
            }
            Form::Whole(body) => self.assembler.whole(&String::from_utf8_lossy(body), hear)?,
        }
        self.assembler.finish()
    }
}

#[cfg(test)]
mod tests;
