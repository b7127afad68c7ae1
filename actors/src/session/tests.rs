#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "test"
)]

mod disk;
mod open;

use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use seekclaw_protocol::limits::MAX_QUEUED_PROMPTS;
use seekclaw_protocol::{ErrorCode, Event, TurnId, WireError};
use seekclaw_storage::record::log::{Body, Note};
use seekclaw_storage::record::session::SessionRow;

use super::{Change, Commit, SessionMsg};
use crate::stage::model::{Act, Script};
use crate::stage::{Seat, Stage, said_by_user, until, until_end};
use crate::supervision::tell;
use crate::turn::TurnMsg;
use crate::turn::faults::{self, Fault, How, When};

/// A model that takes its time.
fn slow() -> Script {
    Script::new(|_| vec![Act::Say("slow"), Act::Wait(Duration::from_secs(30)), Act::Say(" done")])
}

async fn seated(script: Script) -> (Stage, Seat) {
    let stage = Stage::new(script).await;
    let seat = stage.seat().await;
    (stage, seat)
}

async fn change(stage: &Stage, seat: &Seat, change: Change) -> Result<SessionRow, WireError> {
    let session = stage.open(seat).await;
    session.call(|port| SessionMsg::Change(change, port), None).await.unwrap().unwrap()
}

fn titled(title: &str) -> Change {
    Change { title: Some(title.to_owned()), ..Change::default() }
}

#[tokio::test(start_paused = true)]
async fn prompts_run_in_order_and_one_more_than_the_queue_holds_is_refused() {
    let (stage, seat) = seated(slow()).await;
    let mut turns = Vec::new();
    for number in 0..=MAX_QUEUED_PROMPTS {
        turns.push(stage.prompt(&seat, &format!("prompt {number}")).await.unwrap());
    }
    let refused = stage.prompt(&seat, "one too many").await.err().unwrap();
    let text = format!("Session {} is busy: 16 messages are already waiting", seat.key.id);
    assert_eq!((refused.code, refused.message), (ErrorCode::QueueFull, text));
    let watched: Vec<_> = turns.iter().map(|accepted| stage.watch(accepted)).collect();
    until(&watched[0], |event| matches!(event, Event::Delta { .. })).await;
    for (number, seen) in watched.iter().enumerate().skip(1) {
        until(seen, |event| is_queued_at(event, number)).await;
    }
    // A place that is free again is given away again.
    assert!(stage.cancel(&seat, &turns[3].turn).await);
    let last = stage.watch(&stage.prompt(&seat, "in its place").await.unwrap());
    for seen in watched.iter().chain([&last]) {
        tokio::time::sleep(Duration::from_secs(40)).await;
        until_end(seen).await;
    }
    stage.settled(&seat).await;
    let mut expected: Vec<_> = (0..=MAX_QUEUED_PROMPTS).map(|number| format!("prompt {number}")).collect();
    expected.remove(3);
    expected.push("in its place".to_owned());
    assert_eq!(said_by_user(&stage.history(&seat).await), expected);
}

fn is_queued_at(event: &Event, place: usize) -> bool {
    let Event::Status { label, details: Some(details) } = event else { return false };
    label == "Queued" && details["position"] == place
}

/// Stands in for a turn that was replaced.
struct Ghost;

impl Actor for Ghost {
    type Msg = TurnMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<TurnMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_replaced_turn_can_neither_publish_nor_commit() {
    let (stage, seat) = seated(slow()).await;
    let fault = Fault { point: "loaded".to_owned(), occurrence: 1, when: When::After, how: How::Kill };
    faults::plan(&seat.key.id, fault);
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    until(&seen, |event| matches!(event, Event::Retry { .. })).await;
    let replaced =
        || faults::passages(&seat.key.id).iter().filter(|passage| passage.point == "loaded").count() == 2;
    while !replaced() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (ghost, _) = Actor::spawn(None, Ghost, ()).await.unwrap();
    let session = stage.open(&seat).await;
    // The first incarnation had the fence 1, the second one has another.
    for fence in [0, 1, 2] {
        let bodies = vec![Body::Note(Note { text: "from the grave".to_owned() })];
        let turn = accepted.turn.clone();
        let commit = Commit { fence, turn, bodies, ticket: 0, totals: None, guidance: None };
        tell(&session, SessionMsg::Commit(commit, ghost.clone()));
        let status = super::record::status("from the grave");
        assert!(!accepted.log.publish(fence, &accepted.turn, status));
    }
    until_end(&seen).await;
    stage.settled(&seat).await;
    let log = format!("{:?}", stage.log(&seat).await);
    assert!(!log.contains("grave"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn two_changes_at_once_both_count() {
    let (stage, seat) = seated(Script::saying("done")).await;
    let archived = Change { archived: Some(true), ..Change::default() };
    let (first, second) =
        tokio::join!(change(&stage, &seat, titled("title")), change(&stage, &seat, archived));
    assert_eq!(first.unwrap().title, "title");
    assert!(second.unwrap().archived);
    let row = stage.row(&seat).await;
    assert_eq!((row.title.as_str(), row.archived), ("title", true));
}

#[tokio::test(start_paused = true)]
async fn the_history_is_cut_only_while_nothing_runs() {
    let (stage, seat) = seated(slow()).await;
    let cut = |keep| {
        let (stage, seat) = (&stage, &seat);
        async move {
            let session = stage.open(seat).await;
            session.call(|port| SessionMsg::Truncate(keep, port), None).await.unwrap().unwrap()
        }
    };
    let accepted = stage.prompt(&seat, "one").await.unwrap();
    let seen = stage.watch(&accepted);
    assert_eq!(cut(0).await.unwrap_err().code, ErrorCode::SessionBusy);
    until_end(&seen).await;
    until_end(&stage.watch(&stage.prompt(&seat, "two").await.unwrap())).await;
    assert_eq!(cut(9).await.unwrap(), 4);
    stage.store.fill();
    assert_eq!(cut(1).await.unwrap_err().code, ErrorCode::StorageFull);
    stage.store.free();
    assert_eq!(cut(3).await.unwrap(), 3);
    stage.settled(&seat).await;
    let texts: Vec<_> = stage.history(&seat).await.into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["one", "slow done", "two"]);
    assert_eq!(stage.row(&seat).await.messages, 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_deleted_ends_its_turns_first() {
    let (stage, seat) = seated(slow()).await;
    let running = stage.watch(&stage.prompt(&seat, "one").await.unwrap());
    let waiting = stage.watch(&stage.prompt(&seat, "two").await.unwrap());
    until(&running, |event| matches!(event, Event::Delta { .. })).await;
    let session = stage.open(&seat).await;
    session.call(SessionMsg::Delete, None).await.unwrap().unwrap().unwrap();
    assert_eq!(until_end(&running).await, Event::Cancelled { text: "slow".to_owned() });
    assert_eq!(until_end(&waiting).await, Event::Cancelled { text: String::new() });
    assert!(stage.log(&seat).await.is_empty() && stage.open_turns(&seat).await.is_empty());
    session.wait(None).await.unwrap();
    let late = stage.prompt_if_open(&seat, "three").await;
    assert!(late.is_none_or(|error| error.code == ErrorCode::NotFound));
}

#[tokio::test(start_paused = true)]
async fn a_drained_session_takes_nothing_new() {
    let (stage, seat) = seated(slow()).await;
    let seen = stage.watch(&stage.prompt(&seat, "one").await.unwrap());
    let session = stage.open(&seat).await;
    session.call(SessionMsg::Drain, None).await.unwrap().unwrap();
    assert!(matches!(until_end(&seen).await, Event::Cancelled { .. }));
    let refused = stage.prompt(&seat, "two").await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::ShuttingDown);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_start_keeps_its_prompt_and_its_guidance() {
    let (stage, seat) = seated(Script::saying("never")).await;
    stage.open(&seat).await;
    std::fs::remove_dir_all(&stage.work).unwrap();
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    let steered = stage.steer(&seat, &accepted.turn, "mind the gap").await;
    let end = until_end(&seen).await;
    assert!(matches!(&end, Event::Error { message, .. } if message.contains("not found")), "{end:?}");
    stage.settled(&seat).await;
    let history = stage.history(&seat).await;
    let mut expected = vec!["go"];
    expected.extend(steered.is_ok().then_some("mind the gap"));
    assert_eq!(said_by_user(&history), expected);
    assert!(history[1].text.starts_with(">>> [Interrupted] Not answered: "), "{}", history[1].text);
    assert_eq!(stage.row(&seat).await.messages, history.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_stays_is_not_watched_for_turns_that_are_over() {
    let (stage, seat) = seated(Script::saying("done")).await;
    let owner = crate::stage::idle_actor().await;
    for _ in 0..5 {
        let accepted = stage.prompt_of(&seat, "go", Some(owner.clone())).await.unwrap();
        until_end(&stage.watch(&accepted)).await;
    }
    stage.settled(&seat).await;
    assert_eq!(stage.turns(&seat).await.len(), 0);
    let passed = faults::passages(&seat.key.id);
    owner.kill();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(faults::passages(&seat.key.id), passed);
    assert!(!stage.cancel(&seat, &TurnId::from_text("unknown")).await);
}
