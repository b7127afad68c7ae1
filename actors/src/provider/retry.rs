//! One answer from a list of candidates: retries before anything has streamed, then failover
//! (contract 6.5, rulings 11–13). What has streamed cannot be taken back here: the turn restarts the step.

use std::time::Duration;

use futures_util::future::BoxFuture;
use seekclaw_protocol::ErrorCode;
use seekclaw_protocol::event::Usage;
use seekclaw_storage::config::model::{ProviderKind, Retry};
use tokio_util::sync::CancellationToken;

use super::breaker::{Breakers, Permit};
use super::{Candidate, Chunk, Observer, ProviderError, Reply, Request, offline, openai};

/// Longest wait that a provider may ask for; beyond it the next candidate is asked (ruling 12).
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Asks the candidates in order until one answers; returns which one did. With `failover` off only the
/// first is asked. When `cancel` fires everything is dropped at once, and the error means nothing.
///
/// # Errors
/// No candidate answered, or one failed after it had begun to stream (`committed`).
pub async fn ask(
    candidates: &[Candidate],
    request_for: &(dyn Fn(&Candidate) -> Request + Sync),
    retry: &Retry,
    failover: bool,
    breakers: &Breakers,
    observer: &mut dyn Observer,
    cancel: &CancellationToken,
) -> Result<(usize, Reply), ProviderError> {
    let offered = if failover { candidates } else { candidates.get(..1).unwrap_or_default() };
    let mut walk = Walk { models: &Configured, request_for, retry, breakers, observer };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ProviderError::cancelled()),
        outcome = Box::pin(walk.run(offered)) => outcome,
    }
}

/// Hears the pieces of one answer.
pub(crate) type Hear<'a> = &'a mut (dyn FnMut(Chunk) + Send);

/// Asks one model once. A seam for tests: retries need a clock, not a network.
trait Models: Sync {
    fn answer<'a>(
        &'a self,
        candidate: &'a Candidate,
        request: &'a Request,
        hear: Hear<'a>,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>>;
}

/// The models of the configuration, and the built-in one.
struct Configured;

impl Models for Configured {
    fn answer<'a>(
        &'a self,
        candidate: &'a Candidate,
        request: &'a Request,
        hear: Hear<'a>,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        Box::pin(answer_once(candidate, request, hear))
    }
}

/// One attempt at one model, without retries.
pub(crate) async fn answer_once(
    candidate: &Candidate,
    request: &Request,
    hear: Hear<'_>,
) -> Result<Reply, ProviderError> {
    #[cfg(test)]
    if let Some(script) = crate::stage::model::script_of(candidate) {
        return script.answer(request, hear).await;
    }
    if offline::is_offline(candidate) {
        return Ok(offline::answer(request, hear).await);
    }
    match candidate.provider.kind {
        ProviderKind::Openai => openai::answer(candidate, request, hear).await,
        ProviderKind::Anthropic => Err(ProviderError::unsupported(&candidate.provider)),
    }
}

struct Walk<'a> {
    models: &'a dyn Models,
    request_for: &'a (dyn Fn(&Candidate) -> Request + Sync),
    retry: &'a Retry,
    breakers: &'a Breakers,
    observer: &'a mut dyn Observer,
}

impl Walk<'_> {
    async fn run(&mut self, candidates: &[Candidate]) -> Result<(usize, Reply), ProviderError> {
        let mut failures: Vec<(&Candidate, ProviderError)> = Vec::new();
        // The second round happens only if breakers left nobody to ask in the first.
        for heed_breakers in [true, false] {
            for (index, candidate) in candidates.iter().enumerate() {
                let permit = self.breakers.admit(&candidate.reference());
                if heed_breakers && permit.is_none() {
                    continue;
                }
                let failed = failures.last().map(|(failed, error)| (*failed, error));
                self.observer.asking(candidate, failed);
                match self.candidate(candidate, permit).await {
                    Ok(reply) => return Ok((index, reply)),
                    Err(error) if error.committed => return Err(error),
                    Err(error) if failures.is_empty() && !error.retryable => return Err(error),
                    Err(error) => failures.push((candidate, error)),
                }
            }
            if !failures.is_empty() {
                break;
            }
        }
        Err(all_failed(&failures))
    }

    /// All attempts at one candidate.
    async fn candidate(
        &mut self,
        candidate: &Candidate,
        _permit: Option<Permit>,
    ) -> Result<Reply, ProviderError> {
        let request = (self.request_for)(candidate);
        let mut attempt = 1;
        loop {
            let error = match self.attempt(candidate, &request).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            if error.committed || !error.retryable || attempt >= self.retry.max_attempts {
                return Err(error);
            }
            let Some(delay) = delay_before_retry(self.retry, attempt, error.retry_after, jitter()) else {
                return Err(error);
            };
            self.observer.waiting(delay, &error);
            tokio::time::sleep(delay).await;
            self.observer.retrying(candidate);
            attempt += 1;
        }
    }

    async fn attempt(&mut self, candidate: &Candidate, request: &Request) -> Result<Reply, ProviderError> {
        let started = tokio::time::Instant::now();
        let observer = &mut *self.observer;
        let mut committed = false;
        let mut hear = |chunk| {
            committed = true;
            observer.chunk(chunk);
        };
        let outcome = self.models.answer(candidate, request, &mut hear).await;
        let elapsed_ms = started.elapsed().as_secs_f64() * 1000.0;
        match outcome {
            Ok(mut reply) => {
                reply.usage.elapsed_ms = elapsed_ms;
                self.breakers.succeeded(&candidate.reference());
                self.observer.attempt_ended(candidate, reply.usage);
                Ok(reply)
            }
            Err(error) => {
                // A refused request says nothing about the health of the model.
                if error.retryable {
                    self.breakers.failed(&candidate.reference(), self.retry);
                }
                self.observer.attempt_ended(candidate, Usage { elapsed_ms, ..Usage::default() });
                Err(ProviderError { committed, ..error })
            }
        }
    }
}

/// The wait before the retry that follows attempt number `attempt`; `None` if the provider asks for more
/// than we wait. `random` is within 0…1.
fn delay_before_retry(
    retry: &Retry,
    attempt: u32,
    retry_after: Option<Duration>,
    random: f64,
) -> Option<Duration> {
    if let Some(asked) = retry_after {
        return (asked <= MAX_RETRY_AFTER).then_some(asked);
    }
    let doubled = retry.base_delay_seconds * 2f64.powi(i32::try_from(attempt).unwrap_or(i32::MAX) - 1);
    let seconds = (doubled * (0.75 + 0.5 * random)).min(retry.max_delay_seconds);
    Some(Duration::try_from_secs_f64(seconds).unwrap_or_default().min(MAX_RETRY_AFTER))
}

/// Within 0…1. Without randomness waits still work, they only coincide.
fn jitter() -> f64 {
    let bits = getrandom::u64().unwrap_or(u64::MAX / 2) >> 32;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(u32::MAX)
}

/// What the turn is told when every candidate failed.
fn all_failed(failures: &[(&Candidate, ProviderError)]) -> ProviderError {
    let Some((_, last)) = failures.last() else { return nobody() };
    if failures.len() == 1 {
        return last.clone();
    }
    let lines: Vec<String> =
        failures.iter().map(|(candidate, error)| format!("- {}: {}", candidate.reference(), error)).collect();
    let message = format!(
        "All candidate models failed after automatic failover ({} tried):\n{}",
        failures.len(),
        lines.join("\n")
    );
    ProviderError {
        code: last.code,
        message,
        retryable: failures.iter().any(|(_, error)| error.retryable),
        committed: false,
        retry_after: failures.iter().filter_map(|(_, error)| error.retry_after).min(),
    }
}

fn nobody() -> ProviderError {
    let message = super::chain::ChainError::NoModels.to_string();
    ProviderError { code: ErrorCode::NoModel, message, retryable: false, committed: false, retry_after: None }
}

#[cfg(test)]
mod tests;
