//! Providers over real sockets: what is sent, how failures are retried, and that every limit holds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "test")]

mod server;

use std::sync::Arc;
use std::time::{Duration, Instant};

use seekclaw_actors::history::{Image, Message, Role};
use seekclaw_actors::provider::probe::{fetch_models, probe, test_model};
use seekclaw_actors::provider::{
    Breakers, Candidate, Chunk, Finish, Observer, ProviderError, Reply, Request, ask,
};
use seekclaw_protocol::event::Usage;
use seekclaw_protocol::{ErrorCode, ReasoningLevel};
use seekclaw_storage::config::model::{Model, Provider, ProviderKind, Retry};
use server::{Part, Server, answer, bytes, end, status, stream_head, text};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-canary-0123456789";

fn provider(id: &str, base_url: &str) -> Provider {
    let model = Model { id: "m".to_owned(), ..Model::default() };
    Provider {
        id: id.to_owned(),
        base_url: base_url.to_owned(),
        api_key: Some(KEY.to_owned()),
        timeout_seconds: 10,
        models: vec![model],
        ..Provider::default()
    }
}

fn of(provider: Provider) -> Candidate {
    let model = Arc::new(provider.models[0].clone());
    Candidate { provider: Arc::new(provider), model, deep_seek_optimized: false }
}

fn at(id: &str, server: &Server) -> Candidate {
    of(provider(id, &server.base_url()))
}

fn request() -> Request {
    Request {
        system: "be good".to_owned(),
        messages: vec![Message::new(Role::User, "hi")],
        tools: Vec::new(),
        max_output: 64,
        temperature: None,
        reasoning: ReasoningLevel::None,
    }
}

/// Short waits: how they grow is tested with a paused clock.
fn quick() -> Retry {
    Retry { base_delay_seconds: 0.002, max_delay_seconds: 0.01, ..Retry::default() }
}

#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    text: String,
    cancel_on_text: Option<CancellationToken>,
}

impl Observer for Heard {
    fn asking(&mut self, next: &Candidate, failed: Option<(&Candidate, &ProviderError)>) {
        let failed = failed.map(|(candidate, _)| format!(" after {}", candidate.provider.id));
        self.lines.push(format!("ask {}{}", next.provider.id, failed.unwrap_or_default()));
    }
    fn chunk(&mut self, chunk: Chunk) {
        if let Chunk::Text(text) = chunk {
            self.text.push_str(&text);
        }
        if let Some(cancel) = &self.cancel_on_text {
            cancel.cancel();
        }
    }
    fn attempt_ended(&mut self, candidate: &Candidate, usage: Usage) {
        self.lines.push(format!("ended {} {}", candidate.provider.id, usage.total_input_tokens));
    }
    fn waiting(&mut self, delay: Duration, _error: &ProviderError) {
        self.lines
            .push(format!("wait {}", if delay >= Duration::from_millis(100) { "long" } else { "short" }));
    }
    fn retrying(&mut self, candidate: &Candidate) {
        self.lines.push(format!("again {}", candidate.provider.id));
    }
}

async fn asked(
    candidates: &[Candidate],
    request: &Request,
) -> (Result<(usize, Reply), ProviderError>, Heard) {
    let mut heard = Heard::default();
    let cancel = CancellationToken::new();
    let breakers = Breakers::default();
    let request_for = |_: &Candidate| request.clone();
    let retry = quick();
    let asking = ask(candidates, &request_for, &retry, true, &breakers, &mut heard, &cancel);
    let outcome = tokio::time::timeout(Duration::from_secs(30), asking).await.expect("it hangs");
    (outcome, heard)
}

#[tokio::test]
async fn an_answer_streams_and_the_request_is_what_the_dialect_wants() {
    let server = Server::start(vec![vec![stream_head(), text("Hel"), text("lo"), end()]]).await;
    let mut own = provider("p", &server.base_url());
    own.organization = Some("org".to_owned());
    own.headers.insert("X-Own".to_owned(), "1".to_owned());
    let (outcome, heard) = asked(&[of(own)], &request()).await;
    let (index, reply) = outcome.unwrap();
    assert_eq!((index, reply.text.as_str(), reply.finish), (0, "Hello", Finish::Complete));
    assert_eq!(heard.text, "Hello");
    assert!(reply.usage.elapsed_ms > 0.0);
    assert_eq!(heard.lines, ["ask p", "ended p 5"]);
    let asked = &server.asked()[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{}", asked.head);
    assert_eq!(asked.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!((asked.header("openai-organization"), asked.header("x-own")), (Some("org"), Some("1")));
    assert_eq!(asked.body["messages"][1]["content"], "hi");
    assert_eq!(asked.body["stream"], true);
}

#[tokio::test]
async fn passing_failures_are_retried_until_it_answers() {
    let reset = vec![Part::Reset];
    let truncated = vec![stream_head(), bytes(": ping\n\n")];
    let server = Server::start(vec![status(503, "", "{}"), reset, truncated, answer("hi")]).await;
    let retry = Retry { max_attempts: 4, ..quick() };
    let mut heard = Heard::default();
    let (breakers, cancel) = (Breakers::default(), CancellationToken::new());
    let candidates = [at("p", &server)];
    let outcome = ask(&candidates, &|_| request(), &retry, true, &breakers, &mut heard, &cancel).await;
    assert_eq!(outcome.unwrap().1.text, "hi");
    assert_eq!(server.asked().len(), 4);
    let ended: Vec<&String> = heard.lines.iter().filter(|line| line.starts_with("ended")).collect();
    assert_eq!(ended, ["ended p 0", "ended p 0", "ended p 0", "ended p 5"]);
}

#[tokio::test]
async fn the_provider_says_how_long_to_wait() {
    let limited = status(429, "retry-after: 9\r\nretry-after-ms: 150\r\n", "{}");
    let server = Server::start(vec![limited, answer("hi")]).await;
    let started = Instant::now();
    let (outcome, heard) = asked(&[at("p", &server)], &request()).await;
    assert!(outcome.is_ok());
    assert!(started.elapsed() >= Duration::from_millis(150));
    assert!(heard.lines.contains(&"wait long".to_owned()));
}

#[tokio::test]
async fn too_long_a_wait_is_the_next_candidates_turn_or_the_answer() {
    let limited = || status(429, "Retry-After: 3600\r\n", r#"{"error":{"message":"slow down"}}"#);
    let (first, second) = (Server::start(vec![limited()]).await, Server::start(vec![answer("hi")]).await);
    let (outcome, heard) = asked(&[at("a", &first), at("b", &second)], &request()).await;
    assert_eq!(outcome.unwrap().0, 1);
    assert_eq!(heard.lines, ["ask a", "ended a 0", "ask b after a", "ended b 5"]);

    let server = Server::start(vec![limited()]).await;
    let error = asked(&[at("a", &server)], &request()).await.0.unwrap_err();
    assert_eq!(error.message, "a returned HTTP 429: slow down");
    assert_eq!(error.code, ErrorCode::ProviderRateLimited);
    assert_eq!(error.retry_after, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn failover_goes_in_order_and_a_later_refusal_is_noted() {
    let busy = || status(503, "", r#"{"error":{"message":"busy"}}"#);
    let first = Server::start(vec![busy(), busy(), busy()]).await;
    let second = Server::start(vec![status(401, "", &format!(r#"{{"error":"bad key {KEY}"}}"#))]).await;
    let third = Server::start(vec![status(404, "", "gone")]).await;
    let candidates = [at("a", &first), at("b", &second), at("c", &third)];
    let (outcome, heard) = asked(&candidates, &request()).await;
    let asks: Vec<&String> = heard.lines.iter().filter(|line| line.starts_with("ask")).collect();
    assert_eq!(asks, ["ask a", "ask b after a", "ask c after b"]);
    let expected = "All candidate models failed after automatic failover (3 tried):\n\
        - a/m: a returned HTTP 503: busy\n\
        - b/m: b returned HTTP 401: bad key ***\n\
        - c/m: c returned HTTP 404: gone";
    assert_eq!(outcome.unwrap_err().message, expected);
    assert_eq!(first.asked().len(), 3);
}

#[tokio::test]
async fn a_refusal_of_the_first_candidate_is_final() {
    let first = Server::start(vec![status(401, "retry-after: 1\r\n", "{}")]).await;
    let second = Server::start(vec![answer("hi")]).await;
    let error = asked(&[at("a", &first), at("b", &second)], &request()).await.0.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ProviderAuth, false));
    assert_eq!((first.asked().len(), second.asked().len()), (1, 0));
}

#[tokio::test]
async fn a_stream_that_breaks_after_it_began_is_committed_and_asked_once() {
    let half_call = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"x","arguments":"{"}}]}}]}"#;
    let broken: Vec<(Vec<Part>, &str)> = vec![
        (vec![], "p stream error: the stream ended without a finish reason"),
        (vec![Part::Reset], "p stream error: "),
        (
            vec![bytes(half_call), bytes("\n\n")],
            "p stream error: the stream ended in the middle of a tool call",
        ),
        (vec![bytes("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")], "p stream error: overloaded"),
        (vec![bytes("data: {\"choices\":[{\"del\n\n"), end()], "p stream error: a frame is no JSON: "),
    ];
    for (rest, message) in broken {
        let script =
            [vec![stream_head(), text("half"), Part::Pause(Duration::from_millis(20))], rest].concat();
        let server = Server::start(vec![script, answer("no")]).await;
        let (outcome, heard) = asked(&[at("p", &server), at("q", &server)], &request()).await;
        let error = outcome.unwrap_err();
        assert!(error.committed && error.retryable, "{message}: {error:?}");
        assert!(error.message.starts_with(message), "{error} is not {message}");
        assert_eq!((heard.text.as_str(), server.asked().len()), ("half", 1), "{message}");
    }
}

#[tokio::test]
async fn a_cut_chunked_body_is_an_error_too() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let chunk = format!("{head}{:x}\r\n{event}\r\n40\r\ndata: {{", event.len());
    let server = Server::start(vec![vec![bytes(&chunk)]]).await;
    let error = asked(&[at("p", &server)], &request()).await.0.unwrap_err();
    assert!(error.committed && error.message.starts_with("p stream error: "), "{error:?}");
}

#[tokio::test]
async fn an_empty_answer_to_a_stream_is_retried_and_then_an_error() {
    let empty = || vec![stream_head()];
    let server = Server::start(vec![empty(), empty(), empty()]).await;
    let error = asked(&[at("p", &server)], &request()).await.0.unwrap_err();
    assert_eq!(error.message, "p stream error: the body is empty");
    assert_eq!((error.committed, server.asked().len()), (false, 3));
}

#[tokio::test]
async fn nobody_listening_is_named_without_the_address() {
    let server = Server::start(Vec::new()).await;
    let base = server.base_url();
    drop(server);
    let error = asked(&[of(provider("p", &base))], &request()).await.0.unwrap_err();
    assert_eq!(error.code, ErrorCode::ProviderUnavailable);
    assert!(error.message.starts_with("Cannot reach p: ") && !error.message.contains("http"), "{error}");
}

#[tokio::test]
async fn a_web_page_is_no_answer_and_not_asked_for_again() {
    let page = "<!doctype html><title>hello</title>";
    let server = Server::start(vec![status(200, "content-type: text/html\r\n", page), answer("hi")]).await;
    let error = asked(&[at("p", &server)], &request()).await.0.unwrap_err();
    let text = "p stream error: the address answers with a web page and not as a model does; check the base \
        URL, which usually ends in /v1";
    assert_eq!((error.message.as_str(), error.retryable, error.committed), (text, false, false));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn tls_to_a_port_without_it_is_said_in_plain_words() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("https://{}/v1", listener.local_addr().unwrap());
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    });
    let candidates = [of(provider("p", &base))];
    let (retry, mut heard) = (Retry { max_attempts: 1, ..quick() }, Heard::default());
    let (breakers, cancel) = (Breakers::default(), CancellationToken::new());
    let outcome = ask(&candidates, &|_| request(), &retry, true, &breakers, &mut heard, &cancel).await;
    let text = "Cannot reach p: the server does not speak TLS there, so the base URL should probably begin with \
        http://";
    assert_eq!(outcome.unwrap_err().message, text);
    drop(serving.join_next().await.unwrap().unwrap());
}

fn impatient(server: &Server) -> Candidate {
    of(Provider { timeout_seconds: 1, ..provider("p", &server.base_url()) })
}

#[tokio::test]
async fn headers_that_do_not_come_time_out() {
    let server = Server::start(vec![vec![Part::Hang], answer("hi")]).await;
    let candidates = [impatient(&server)];
    let (retry, mut heard) = (Retry { max_attempts: 1, ..quick() }, Heard::default());
    let (breakers, cancel) = (Breakers::default(), CancellationToken::new());
    let outcome = ask(&candidates, &|_| request(), &retry, true, &breakers, &mut heard, &cancel).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.message, "Request to p timed out after 1s.");
    assert_eq!((error.code, error.retryable, error.committed), (ErrorCode::Timeout, true, false));
    server.client_gone().await;
}

#[tokio::test]
async fn a_gap_in_the_stream_times_out_and_comments_fill_it() {
    let server = Server::start(vec![vec![stream_head(), text("a"), Part::Hang]]).await;
    let error = asked(&[impatient(&server)], &request()).await.0.unwrap_err();
    assert_eq!(error.message, "Request to p timed out after 1s idle without activity.");
    assert!(error.committed);

    let pause = || [Part::Pause(Duration::from_millis(450)), bytes(":\n\n")];
    let kept = [vec![stream_head(), text("a")], [pause(), pause(), pause()].concat(), vec![text("b"), end()]];
    let server = Server::start(vec![kept.concat()]).await;
    let (outcome, _) = asked(&[impatient(&server)], &request()).await;
    assert_eq!(outcome.unwrap().1.text, "ab");
}

#[tokio::test]
async fn a_server_that_does_not_close_after_its_end_mark_keeps_nobody_waiting() {
    let server = Server::start(vec![vec![stream_head(), text("a"), end(), Part::Hang]]).await;
    let started = Instant::now();
    assert_eq!(asked(&[at("p", &server)], &request()).await.0.unwrap().1.text, "a");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn cancelling_drops_the_connection_at_once() {
    let server = Server::start(vec![vec![stream_head(), text("a"), Part::Hang]]).await;
    let cancel = CancellationToken::new();
    let mut heard = Heard { cancel_on_text: Some(cancel.clone()), ..Heard::default() };
    let (retry, breakers, candidates) = (quick(), Breakers::default(), [at("p", &server)]);
    let started = Instant::now();
    let outcome = ask(&candidates, &|_| request(), &retry, true, &breakers, &mut heard, &cancel).await;
    assert!(outcome.is_err() && started.elapsed() < Duration::from_secs(5));
    server.client_gone().await;
    assert_eq!(heard.text, "a");
}

#[tokio::test]
async fn cancelling_during_a_wait_asks_no_more() {
    let server = Server::start(vec![status(429, "retry-after: 30\r\n", "{}"), answer("hi")]).await;
    let cancel = CancellationToken::new();
    struct CancelOnWait(CancellationToken);
    impl Observer for CancelOnWait {
        fn asking(&mut self, _: &Candidate, _: Option<(&Candidate, &ProviderError)>) {}
        fn chunk(&mut self, _: Chunk) {}
        fn attempt_ended(&mut self, _: &Candidate, _: Usage) {}
        fn waiting(&mut self, _: Duration, _: &ProviderError) {
            self.0.cancel();
        }
        fn retrying(&mut self, _: &Candidate) {
            panic!("nobody is asked again");
        }
    }
    let (retry, breakers, candidates) = (quick(), Breakers::default(), [at("p", &server)]);
    let mut observer = CancelOnWait(cancel.clone());
    let started = Instant::now();
    let outcome = ask(&candidates, &|_| request(), &retry, true, &breakers, &mut observer, &cancel).await;
    assert!(outcome.is_err() && started.elapsed() < Duration::from_secs(5));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_redirect_to_another_host_does_not_get_the_key() {
    let other = Server::start(vec![answer("stolen")]).await;
    let location = format!("location: http://{}/v1/chat/completions\r\n", other.address);
    let server = Server::start(vec![status(307, &location, "")]).await;
    let error = asked(&[at("p", &server)], &request()).await.0.unwrap_err();
    assert_eq!(error.message, "p returned HTTP 307: (empty body)");
    assert!(other.asked().is_empty());
}

#[tokio::test]
async fn a_redirect_within_the_host_is_followed_with_the_body() {
    let server =
        Server::start(vec![status(307, "location: /v2/chat/completions\r\n", ""), answer("hi")]).await;
    assert_eq!(asked(&[at("p", &server)], &request()).await.0.unwrap().1.text, "hi");
    assert_eq!(server.asked()[1].body["messages"][1]["content"], "hi");
}

#[tokio::test]
async fn images_ask_for_a_whole_answer_and_either_form_is_read() {
    let body =
        r#"{"choices":[{"message":{"content":"a cat"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5}}"#;
    let server = Server::start(vec![status(200, "", body), answer("a dog")]).await;
    let mut seeing = provider("p", &server.base_url());
    seeing.models[0].capabilities.vision = true;
    let candidates = [of(seeing)];
    let mut request = request();
    request.messages[0].images = vec![Image {
        id: "i".to_owned(),
        name: "i.png".to_owned(),
        media_type: "image/png".to_owned(),
        size: 3,
        bytes: Some(Arc::new(b"abc".to_vec())),
    }];
    let (outcome, heard) = asked(&candidates, &request).await;
    assert_eq!((outcome.unwrap().1.text.as_str(), heard.text.as_str()), ("a cat", "a cat"));
    assert_eq!(server.asked()[0].body["stream"], false);
    assert_eq!(asked(&candidates, &request).await.0.unwrap().1.text, "a dog");
}

#[tokio::test]
async fn a_long_error_body_is_cut() {
    let long = "é".repeat(200_000);
    let server = Server::start(vec![status(400, "", &long)]).await;
    let error = asked(&[at("p", &server)], &request()).await.0.unwrap_err();
    assert_eq!(error.message, format!("p returned HTTP 400: {}", "é".repeat(400)));
}

#[tokio::test]
async fn a_bad_address_or_an_unknown_dialect_is_refused_without_a_retry() {
    let bad = asked(&[of(provider("p", "nonsense"))], &request()).await.0.unwrap_err();
    assert_eq!((bad.code, bad.retryable), (ErrorCode::ProviderRejected, false));
    let other = Provider { kind: ProviderKind::Anthropic, ..provider("p", "http://127.0.0.1:1") };
    let error = asked(&[of(other)], &request()).await.0.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::Unavailable, false));
}

#[tokio::test]
async fn a_probe_tells_online_from_refused_and_gone() {
    let server =
        Server::start(vec![status(200, "", "{}"), status(401, "", "{}"), status(500, "", "{}")]).await;
    let one = provider("p", &server.base_url());
    let mut seen = Vec::new();
    for _ in 0..3 {
        let probe = probe(&one).await;
        seen.push((probe.online, probe.detail));
    }
    let expected = [(true, "ok"), (true, "reachable, auth failed (HTTP 401)"), (false, "HTTP 500")];
    assert_eq!(seen, expected.map(|(online, detail)| (online, detail.to_owned())));
    assert!(server.asked()[0].head.starts_with("GET /v1/models "));
    drop(server);
    assert!(!probe(&one).await.online);
}

#[tokio::test]
async fn models_are_fetched_from_where_they_are() {
    let server = Server::start(vec![
        status(200, "", r#"{"data":[{"id":"b"},{"id":"a"}]}"#),
        status(200, "", r#"["c"]"#),
        status(403, "", &format!("no {KEY}")),
    ])
    .await;
    let one = provider("p", &server.base_url());
    assert_eq!(fetch_models(&one, None).await.unwrap(), ["a", "b"]);
    let elsewhere = format!("http://{}/else", server.address);
    assert_eq!(fetch_models(&one, Some(&elsewhere)).await.unwrap(), ["c"]);
    assert!(server.asked()[1].head.starts_with("GET /else "));
    let error = fetch_models(&one, None).await.unwrap_err();
    assert_eq!(error.to_string(), "p returned HTTP 403: no ***");
}

#[tokio::test]
async fn a_model_is_tested_with_one_short_request() {
    let server = Server::start(vec![answer("ok"), status(503, "", "{}")]).await;
    let candidate = at("p", &server);
    let (success, detail, latency) = test_model(&candidate).await;
    assert!(success && detail == "ok" && latency > 0.0);
    assert_eq!(server.asked()[0].body["max_tokens"], 16);
    let (success, detail, _) = test_model(&candidate).await;
    assert!(!success && detail.starts_with("p returned HTTP 503"), "{detail}");
    assert_eq!(server.asked().len(), 2, "no retry");
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_whole_stream() {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let reply = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n",
        event.len()
    );
    let server = Server::start(vec![vec![bytes(&reply)], vec![bytes(&reply)]]).await;
    let mut own = provider("p", &server.base_url());
    own.headers.insert("x-keep-open".to_owned(), "1".to_owned());
    let candidates = [of(own)];
    for _ in 0..2 {
        assert_eq!(asked(&candidates, &request()).await.0.unwrap().1.text, "a");
    }
    assert_eq!((server.asked().len(), server.connections()), (2, 1));
}
