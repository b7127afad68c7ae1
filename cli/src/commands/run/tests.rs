use std::path::Path;

use clap::Parser as _;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::args::{Cli, Command};
use crate::client::scripted::{Peer, Scripted};
use crate::place::Place;

fn parse(line: &[&str]) -> Result<RunArgs, clap::Error> {
    let command = Cli::try_parse_from([&["seekclaw", "run"], line].concat())?.command;
    let Command::Run(args) = command else { panic!("{command:?}") };
    Ok(args)
}

#[test]
fn flags_become_chat_parameters() {
    let args = parse(&[
        "fix",
        "it",
        "--global",
        "--model",
        "p/m",
        "--mode",
        "plan",
        "--reasoning",
        "low",
        "--timeout",
        "5m",
    ])
    .unwrap();
    let expected =
        json!({"global": true, "message": "fix it", "model": "p/m", "mode": "plan", "reasoningLevel": "low"});
    assert_eq!(Value::Object(request(&args).unwrap()), expected);
    assert_eq!(args.timeout, Some(Duration::from_secs(300)));
}

#[test]
fn without_a_directory_the_current_one_is_meant() {
    let params = request(&parse(&["hello"]).unwrap()).unwrap();
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(params["workspace"].as_str().map(Path::new), Some(here.as_path()));
    assert_eq!(params.len(), 2, "nothing else is sent: {params:?}");
}

#[test]
fn mistakes_are_found_before_a_daemon_is_started() {
    assert_eq!(crate::status::of(&request(&parse(&["  "]).unwrap()).unwrap_err()), Status::Usage);
    assert!(request(&parse(&["x", "-C", "/no/such/dir"]).unwrap()).is_err());
    assert!(request(&parse(&["x", "--image", "/no/such.png"]).unwrap()).is_err());
    assert!(parse(&["x", "--session", "s", "--continue"]).is_err());
    assert!(parse(&["x", "--mode", "yolo"]).is_err());
    assert!(parse(&["x", "--timeout", "soon"]).is_err());
}

/// Notes what it is shown.
#[derive(Default)]
struct Seen(Vec<String>);

impl View for Seen {
    fn event(&mut self, line: &Line) -> io::Result<()> {
        self.0.push(line.event.clone());
        Ok(())
    }
    fn note(&mut self, text: &str) -> io::Result<()> {
        self.0.push(text.to_owned());
        Ok(())
    }
    fn tick(&mut self) {}
    fn is_animated(&self) -> bool {
        false
    }
}

struct Case {
    outcome: anyhow::Result<Status>,
    seen: Vec<String>,
}

impl Case {
    fn status(&self) -> Status {
        match &self.outcome {
            Ok(status) => *status,
            Err(error) => crate::status::of(error),
        }
    }
}

/// Follows a turn against `serve`, which may interrupt it.
async fn case<F>(timeout: Option<Duration>, serve: impl FnOnce(Peer, Value, mpsc::Sender<()>) -> F) -> Case
where
    F: Future<Output = ()>,
{
    let temp = tempfile::tempdir().unwrap();
    let place = Place::at(temp.path());
    let daemon = Scripted::listen(&place);
    let (interrupt, mut interrupts) = mpsc::channel(2);
    let server = async {
        let mut peer = daemon.accept().await;
        let chat = peer.request().await;
        serve(peer, chat["id"].clone(), interrupt).await;
    };
    let mut view = Seen::default();
    let client = async {
        let mut client = Client::connect(&place).await.unwrap();
        let id = client.send("chat", json!({"message": "x"})).await.unwrap();
        let deadline = timeout.map(|limit| Instant::now() + limit);
        let turn = Turn { id, session: "s1".into(), named: true, deadline };
        let interrupted = async || {
            if interrupts.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        };
        follow(&mut client, &turn, &mut view, interrupted).await
    };
    let ((), outcome) = tokio::join!(server, client);
    Case { outcome, seen: view.0 }
}

fn event(id: &Value, name: &str) -> Value {
    json!({"id": id, "event": name, "data": "", "sessionId": "s1"})
}

#[tokio::test]
async fn the_terminal_event_decides_the_status() {
    let done = case(None, |mut peer, id, _| async move {
        peer.send(&event(&json!(0), "schedule.updated")).await;
        peer.send(&event(&id, "delta")).await;
        peer.send(&event(&id, "done")).await;
    });
    let done = done.await;
    assert_eq!(
        (done.status(), done.seen.as_slice()),
        (Status::Done, ["delta".to_owned(), "done".to_owned()].as_slice())
    );
    let cancelled =
        case(None, |mut peer, id, _| async move { peer.send(&event(&id, "cancelled")).await }).await;
    assert_eq!(cancelled.status(), Status::Stopped);
    for (code, status) in [
        ("shutting_down", Status::Stopped),
        ("mode_denied", Status::Denied),
        ("not_found", Status::Usage),
        ("provider_auth", Status::Failed),
    ] {
        let failed = case(None, |mut peer, id, _| async move {
            let mut line = event(&id, "error");
            line["data"] = json!("Session s1 not found");
            line["details"] = json!({"code": code});
            peer.send(&line).await;
        });
        assert_eq!(failed.await.status(), status, "{code}");
    }
}

#[tokio::test]
async fn a_daemon_that_dies_under_a_turn_is_unreachable() {
    let lost = case(None, |mut peer, id, _| async move { peer.send(&event(&id, "delta")).await }).await;
    assert_eq!(lost.status(), Status::Unreachable);
    assert!(lost.outcome.unwrap_err().to_string().contains("s1"));
}

#[tokio::test]
async fn the_first_interrupt_cancels_and_waits() {
    let case = case(None, |mut peer, id, interrupt| async move {
        interrupt.send(()).await.unwrap();
        let cancel = peer.request().await;
        assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("agent.cancel"), &id));
        peer.send(&json!({"id": cancel["id"], "event": "result", "data": "cancellation requested"})).await;
        peer.send(&event(&id, "cancelled")).await;
    });
    let case = case.await;
    assert_eq!(case.status(), Status::Interrupted);
    assert_eq!(case.seen.last().map(String::as_str), Some("cancelled"));
}

#[tokio::test]
async fn the_second_interrupt_stops_waiting_and_says_where_to_look() {
    let case = case(None, |mut peer, _, interrupt| async move {
        interrupt.send(()).await.unwrap();
        assert_eq!(peer.request().await["method"], "agent.cancel");
        interrupt.send(()).await.unwrap();
        assert_eq!(peer.request().await, Value::Null, "the client goes without another word");
    });
    let case = case.await;
    assert_eq!(case.status(), Status::Interrupted);
    let said = case.seen.last().unwrap();
    assert!(said.starts_with("no longer waiting; the turn in session s1 is being cancelled"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_cancels() {
    let case = case(Some(Duration::from_secs(60)), |mut peer, id, _| async move {
        assert_eq!(peer.request().await["method"], "agent.cancel");
        peer.send(&event(&id, "cancelled")).await;
    });
    assert_eq!(case.await.status(), Status::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_that_nobody_heeds_is_not_waited_for_forever() {
    let case = case(Some(Duration::from_secs(60)), |mut peer, _, _| async move {
        assert_eq!(peer.request().await["method"], "agent.cancel");
        assert_eq!(peer.request().await, Value::Null);
    });
    let case = case.await;
    assert_eq!(case.status(), Status::Stopped);
    assert!(
        case.seen.last().unwrap().contains("the turn in session s1 is being cancelled"),
        "{:?}",
        case.seen
    );
}
