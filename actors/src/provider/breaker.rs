//! Circuit breakers, one per model, shared by all turns (contract 6.6, ruling 13). Memory only.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seekclaw_storage::config::model::Retry;
use tokio::time::Instant;

/// All breakers; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Breakers(Arc<Mutex<HashMap<String, Breaker>>>);

/// A model that failed at least once since its last success.
#[derive(Debug, Default)]
struct Breaker {
    failures: u32,
    open_until: Option<Instant>,
    probing: bool,
}

/// Leave to ask a model. The one probe of a half-open breaker gives its place back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    breakers: Breakers,
    reference: String,
    probe: bool,
}

impl Breakers {
    /// Whether `reference` is being left out at present.
    #[must_use]
    pub fn is_open(&self, reference: &str) -> bool {
        let breakers = self.lock();
        let until = breakers.get(reference).and_then(|breaker| breaker.open_until);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Leave to ask `reference`; none while it is open, or half-open with its probe under way.
    pub(crate) fn admit(&self, reference: &str) -> Option<Permit> {
        let mut breakers = self.lock();
        let mut probe = false;
        if let Some(breaker) = breakers.get_mut(reference)
            && let Some(until) = breaker.open_until
        {
            if breaker.probing || Instant::now() < until {
                return None;
            }
            breaker.probing = true;
            probe = true;
        }
        Some(Permit { breakers: self.clone(), reference: reference.to_owned(), probe })
    }

    /// An attempt succeeded.
    pub(crate) fn succeeded(&self, reference: &str) {
        self.lock().remove(reference);
    }

    /// An attempt failed; the thresholds are those of the configuration at this moment.
    pub(crate) fn failed(&self, reference: &str, retry: &Retry) {
        let mut breakers = self.lock();
        let breaker = breakers.entry(reference.to_owned()).or_default();
        breaker.failures = breaker.failures.saturating_add(1);
        if breaker.failures >= retry.circuit_break_threshold.max(1) || breaker.open_until.is_some() {
            let cooldown = Duration::try_from_secs_f64(retry.circuit_cooldown_seconds).unwrap_or_default();
            breaker.open_until = Some(Instant::now() + cooldown.min(MAX_COOLDOWN));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Breaker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A mistyped cooldown must not overflow the clock.
const MAX_COOLDOWN: Duration = Duration::from_secs(24 * 3600);

impl Drop for Permit {
    fn drop(&mut self) {
        if self.probe
            && let Some(breaker) = self.breakers.lock().get_mut(&self.reference)
        {
            breaker.probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry() -> Retry {
        Retry { circuit_break_threshold: 2, circuit_cooldown_seconds: 60.0, ..Retry::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn opens_at_the_threshold_and_lets_one_probe_through_after_the_cooldown() {
        let breakers = Breakers::default();
        breakers.failed("a/b", &retry());
        assert!(breakers.admit("a/b").is_some());
        breakers.failed("a/b", &retry());
        assert!(breakers.is_open("a/b") && breakers.admit("a/b").is_none());
        assert!(breakers.admit("a/c").is_some(), "other models are not concerned");
        tokio::time::advance(Duration::from_secs(61)).await;
        let probe = breakers.admit("a/b").unwrap();
        assert!(breakers.admit("a/b").is_none(), "one probe at a time");
        drop(probe);
        assert!(breakers.admit("a/b").is_some(), "a cancelled probe gives its place back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_probe_opens_again_and_a_success_closes() {
        let breakers = Breakers::default();
        (0..2).for_each(|_| breakers.failed("a/b", &retry()));
        tokio::time::advance(Duration::from_secs(61)).await;
        let probe = breakers.admit("a/b").unwrap();
        breakers.failed("a/b", &retry());
        drop(probe);
        assert!(breakers.admit("a/b").is_none());
        tokio::time::advance(Duration::from_secs(61)).await;
        let probe = breakers.admit("a/b").unwrap();
        breakers.succeeded("a/b");
        drop(probe);
        breakers.failed("a/b", &retry());
        assert!(!breakers.is_open("a/b"), "the count began anew");
    }
}
