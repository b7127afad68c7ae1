use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use seekclaw_protocol::ReasoningLevel;
use seekclaw_storage::config::model::{Model, Provider};
use tokio::time::Instant;

use super::*;
use crate::provider::Finish;

fn candidate(id: &str) -> Candidate {
    let provider = Provider { id: id.to_owned(), ..Provider::default() };
    let model = Model { id: "m".to_owned(), ..Model::default() };
    Candidate { provider: Arc::new(provider), model: Arc::new(model), deep_seek_optimized: false }
}

fn request(_: &Candidate) -> Request {
    Request {
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        max_output: 0,
        temperature: None,
        reasoning: ReasoningLevel::None,
    }
}

fn reply(text: &str) -> Reply {
    let usage = Usage { output_tokens: 7, ..Usage::default() };
    Reply {
        thinking: String::new(),
        text: text.to_owned(),
        calls: Vec::new(),
        finish: Finish::Complete,
        usage,
    }
}

fn error(code: ErrorCode, retryable: bool) -> ProviderError {
    ProviderError { code, message: "why".to_owned(), retryable, committed: false, retry_after: None }
}

fn passing() -> ProviderError {
    error(ErrorCode::ProviderUnavailable, true)
}

fn refusal() -> ProviderError {
    error(ErrorCode::ProviderRejected, false)
}

fn wait_of(seconds: u64) -> ProviderError {
    let retry_after = Some(Duration::from_secs(seconds));
    ProviderError { retry_after, ..error(ErrorCode::ProviderRateLimited, true) }
}

/// What a scripted model does when it is asked.
enum Act {
    Say(&'static str),
    Fail(ProviderError),
    FailAfter(Duration),
    SayThenFail(&'static str),
    Hang,
}

#[derive(Default)]
struct Script(Mutex<VecDeque<Act>>);

impl Models for Script {
    fn answer<'a>(
        &'a self,
        _candidate: &'a Candidate,
        _request: &'a Request,
        hear: Hear<'a>,
    ) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        let act = self.0.lock().unwrap().pop_front().expect("asked more often than scripted");
        Box::pin(async move {
            match act {
                Act::Say(text) => {
                    hear(Chunk::Text(text.to_owned()));
                    Ok(reply(text))
                }
                Act::Fail(error) => Err(error),
                Act::FailAfter(time) => {
                    tokio::time::sleep(time).await;
                    Err(refusal())
                }
                Act::SayThenFail(text) => {
                    hear(Chunk::Text(text.to_owned()));
                    Err(passing())
                }
                Act::Hang => std::future::pending().await,
            }
        })
    }
}

/// What the observer heard, as text.
#[derive(Default)]
struct Heard(Vec<String>, Vec<Usage>);

impl Observer for Heard {
    fn asking(&mut self, next: &Candidate, failed: Option<(&Candidate, &ProviderError)>) {
        let after = failed.map(|(failed, _)| format!(" after {}", failed.reference())).unwrap_or_default();
        self.0.push(format!("ask {}{after}", next.reference()));
    }
    fn chunk(&mut self, chunk: Chunk) {
        self.0.push(format!("{chunk:?}"));
    }
    fn attempt_ended(&mut self, candidate: &Candidate, usage: Usage) {
        self.0.push(format!("ended {} {}", candidate.reference(), usage.output_tokens));
        self.1.push(usage);
    }
    fn waiting(&mut self, delay: Duration, _error: &ProviderError) {
        self.0.push(format!("wait {}", delay.as_secs()));
    }
    fn retrying(&mut self, candidate: &Candidate) {
        self.0.push(format!("again {}", candidate.reference()));
    }
}

struct Run {
    outcome: Result<(usize, Reply), ProviderError>,
    heard: Vec<String>,
    usages: Vec<Usage>,
    took: Duration,
    left: usize,
}

async fn run(candidates: &[&str], breakers: &Breakers, script: Vec<Act>) -> Run {
    let candidates: Vec<Candidate> = candidates.iter().map(|id| candidate(id)).collect();
    let script = Script(Mutex::new(script.into()));
    let (mut heard, started) = (Heard::default(), Instant::now());
    let retry = Retry::default();
    let mut walk =
        Walk { models: &script, request_for: &request, retry: &retry, breakers, observer: &mut heard };
    let outcome = walk.run(&candidates).await;
    let left = script.0.lock().unwrap().len();
    Run { outcome, heard: heard.0, usages: heard.1, took: started.elapsed(), left }
}

#[tokio::test(start_paused = true)]
async fn a_passing_failure_is_retried_with_growing_waits() {
    let script = vec![Act::Fail(passing()), Act::Fail(passing()), Act::Say("hi")];
    let run = run(&["a", "b"], &Breakers::default(), script).await;
    let (index, reply) = run.outcome.unwrap();
    assert_eq!((index, reply.text.as_str(), run.left), (0, "hi", 0));
    let seconds = run.took.as_secs_f64();
    assert!((2.25..=3.76).contains(&seconds), "1 s and 2 s, each within a quarter: {seconds}");
    let kinds: Vec<&str> = run.heard.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["ask", "ended", "wait", "again", "ended", "wait", "again", "Text(\"hi\")", "ended"]);
    assert_eq!(run.heard.iter().filter(|line| *line == "ended a/m 0").count(), 2, "zeros for failures");
    assert_eq!(run.heard.last().unwrap(), "ended a/m 7");
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_counts_no_tokens_but_its_time() {
    let script = vec![Act::FailAfter(Duration::from_millis(1500))];
    let run = run(&["a"], &Breakers::default(), script).await;
    assert!(run.outcome.is_err());
    let [usage] = run.usages.as_slice() else { panic!("one attempt: {:?}", run.usages) };
    assert!((1500.0..1600.0).contains(&usage.elapsed_ms), "{usage:?}");
    assert_eq!(Usage { elapsed_ms: 0.0, ..*usage }, Usage::default());
}

#[tokio::test(start_paused = true)]
async fn exhausted_retries_lead_to_the_next_candidate() {
    let mut script: Vec<Act> = (0..3).map(|_| Act::Fail(passing())).collect();
    script.push(Act::Say("hi"));
    let run = run(&["a", "b"], &Breakers::default(), script).await;
    assert_eq!(run.outcome.unwrap().0, 1);
    let asks: Vec<&String> = run.heard.iter().filter(|line| line.starts_with("ask")).collect();
    assert_eq!(asks, ["ask a/m", "ask b/m after a/m"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_first_ends_it_and_one_of_a_later_is_noted() {
    let run_one = run(&["a", "b"], &Breakers::default(), vec![Act::Fail(refusal())]).await;
    assert_eq!(run_one.outcome, Err(refusal()));

    let mut script: Vec<Act> = (0..3).map(|_| Act::Fail(passing())).collect();
    script.extend([Act::Fail(refusal()), Act::Say("hi")]);
    let run = run(&["a", "b", "c"], &Breakers::default(), script).await;
    assert_eq!(run.outcome.unwrap().0, 2);
}

#[tokio::test(start_paused = true)]
async fn when_all_fail_the_text_names_each() {
    let mut script: Vec<Act> = (0..3).map(|_| Act::Fail(passing())).collect();
    script.push(Act::Fail(refusal()));
    let run = run(&["a", "b"], &Breakers::default(), script).await;
    let error = run.outcome.unwrap_err();
    let expected = "All candidate models failed after automatic failover (2 tried):\n- a/m: why\n- b/m: why";
    assert_eq!(error.message, expected);
    assert_eq!((error.code, error.retryable), (ErrorCode::ProviderRejected, true));
}

#[tokio::test(start_paused = true)]
async fn what_has_streamed_is_neither_retried_nor_switched() {
    let run = run(&["a", "b"], &Breakers::default(), vec![Act::SayThenFail("half"), Act::Say("no")]).await;
    let error = run.outcome.unwrap_err();
    assert!(error.committed && error.retryable);
    assert_eq!(run.left, 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_provider_asks_for_is_kept_beyond_our_own_limit() {
    let run = run(&["a"], &Breakers::default(), vec![Act::Fail(wait_of(59)), Act::Say("hi")]).await;
    assert!(run.outcome.is_ok());
    assert_eq!(run.took.as_secs(), 59);
    assert!(run.heard.contains(&"wait 59".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_longer_wait_asks_the_next_candidate_at_once_or_is_the_answer() {
    let script = vec![Act::Fail(wait_of(61)), Act::Say("hi")];
    let both = run(&["a", "b"], &Breakers::default(), script).await;
    assert_eq!((both.outcome.unwrap().0, both.took), (1, Duration::ZERO));

    let alone = run(&["a"], &Breakers::default(), vec![Act::Fail(wait_of(105_340))]).await;
    let error = alone.outcome.unwrap_err();
    assert_eq!(error.code, ErrorCode::ProviderRateLimited);
    assert_eq!((error.retry_after, alone.took), (Some(Duration::from_secs(105_340)), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_leaves_its_model_out_unless_it_is_the_only_one() {
    let breakers = Breakers::default();
    (0..4).for_each(|_| breakers.failed("a/m", &Retry::default()));
    let both = run(&["a", "b"], &breakers, vec![Act::Say("hi")]).await;
    assert_eq!(both.outcome.unwrap().0, 1);
    let alone = run(&["a"], &breakers, vec![Act::Say("hi")]).await;
    assert_eq!(alone.outcome.unwrap().0, 0);
    assert!(!breakers.is_open("a/m"), "and its success closes it");
}

#[tokio::test(start_paused = true)]
async fn failures_open_the_breaker_and_refusals_do_not() {
    let breakers = Breakers::default();
    for _ in 0..6 {
        assert!(run(&["a"], &breakers, vec![Act::Fail(refusal())]).await.outcome.is_err());
    }
    assert!(!breakers.is_open("a/m"));
    for _ in 0..2 {
        let script = (0..3).map(|_| Act::Fail(passing())).collect();
        assert!(run(&["a"], &breakers, script).await.outcome.is_err());
    }
    assert!(breakers.is_open("a/m"));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_probe_does_not_keep_the_breaker_half_open() {
    let breakers = Breakers::default();
    (0..4).for_each(|_| breakers.failed("a/m", &Retry::default()));
    tokio::time::advance(Duration::from_secs(61)).await;
    let probing = run(&["a", "b"], &breakers, vec![Act::Hang]);
    assert!(tokio::time::timeout(Duration::from_secs(1), probing).await.is_err());
    assert!(breakers.admit("a/m").is_some());
}

#[tokio::test(start_paused = true)]
async fn without_failover_an_open_breaker_switches_nothing() {
    let breakers = Breakers::default();
    let offline = [offline::candidate(), candidate("b")];
    (0..4).for_each(|_| breakers.failed("builtin/offline", &Retry::default()));
    let (mut heard, cancel) = (Heard::default(), CancellationToken::new());
    let retry = Retry::default();
    let outcome = ask(&offline, &request, &retry, false, &breakers, &mut heard, &cancel).await;
    assert_eq!(outcome.unwrap().0, 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_it_even_before_it_began() {
    let (mut heard, cancel) = (Heard::default(), CancellationToken::new());
    cancel.cancel();
    let (retry, breakers) = (Retry::default(), Breakers::default());
    let outcome = ask(&[offline::candidate()], &request, &retry, true, &breakers, &mut heard, &cancel).await;
    assert_eq!(outcome.unwrap_err(), ProviderError::cancelled());
    assert!(heard.0.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_to_ask_is_an_error_and_not_a_panic() {
    let run = run(&[], &Breakers::default(), Vec::new()).await;
    assert_eq!(run.outcome.unwrap_err().code, ErrorCode::NoModel);
}

#[test]
fn waits_double_vary_by_a_quarter_and_are_bounded() {
    let retry = Retry::default();
    let wait = |attempt, random| delay_before_retry(&retry, attempt, None, random).unwrap().as_secs_f64();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(near(wait(1, 0.5), 1.0) && near(wait(2, 0.5), 2.0) && near(wait(3, 0.5), 4.0));
    assert!(near(wait(1, 0.0), 0.75) && near(wait(1, 1.0), 1.25));
    assert!(near(wait(9, 1.0), 20.0) && near(wait(4_000_000_000, 0.5), 20.0));
    let odd = Retry { base_delay_seconds: f64::NAN, max_delay_seconds: -1.0, ..retry };
    assert_eq!(delay_before_retry(&odd, 1, None, 0.5), Some(Duration::ZERO));
}
