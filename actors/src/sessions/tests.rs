#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "test")]

use seekclaw_protocol::{ErrorCode, Event};

use super::*;
use crate::stage::model::{Act, Script};
use crate::stage::{Seat, Stage, said_by_user, until, until_end};
use crate::turn::faults::{self, Fault, How, When};

const SECOND: Duration = Duration::from_secs(1);

fn slow() -> Script {
    Script::new(|_| vec![Act::Say("slow"), Act::Wait(20 * SECOND), Act::Say(" done")])
}

async fn live(stage: &Stage) -> Vec<ActorRef<SessionMsg>> {
    let live = stage.services.sessions.ask(SessionsMsg::Live, SECOND).await.unwrap();
    live.into_iter().map(|(_, actor)| actor).collect()
}

/// The session's actor once it is another one than `old`.
async fn replaced(stage: &Stage, old: &ActorRef<SessionMsg>) -> Duration {
    let began = Instant::now();
    loop {
        if live(stage).await.iter().any(|actor| actor.get_id() != old.get_id()) {
            return began.elapsed();
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_dies_is_opened_again_and_its_turn_goes_on() {
    let stage = Stage::new(slow()).await;
    let seat = stage.seat().await;
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    accepted.session.kill();
    accepted.session.wait(None).await.unwrap();
    assert!(accepted.log.is_closed(), "who watches hears of it");
    let took = replaced(&stage, &accepted.session).await;
    assert!((250..=252).contains(&took.as_millis()), "{took:?}");
    stage.settled(&seat).await;
    assert_eq!(stage.ends(&seat).await[0].1, Event::Done { text: "slow done".to_owned() });
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go"]);
}

#[tokio::test(start_paused = true)]
async fn the_turn_of_a_client_is_closed_if_its_session_dies() {
    let stage = Stage::new(slow()).await;
    let (seat, owner) = (stage.seat().await, crate::stage::idle_actor().await);
    let accepted = stage.prompt_of(&seat, "go", Some(owner)).await.unwrap();
    until(&stage.watch(&accepted), |event| matches!(event, Event::Delta { .. })).await;
    accepted.session.kill();
    stage.settled(&seat).await;
    let ends = stage.ends(&seat).await;
    assert!(matches!(&ends[..], [(_, Event::Error { .. })]), "{ends:?}");
    assert!(stage.history(&seat).await[1].text.starts_with(">>> [Interrupted]"));
}

#[tokio::test(start_paused = true)]
async fn somebody_who_needs_it_does_not_wait_for_the_delay() {
    let stage = Stage::new(Script::saying("done")).await;
    let seat = stage.seat().await;
    let old = stage.open(&seat).await;
    old.kill();
    old.wait(None).await.unwrap();
    let began = Instant::now();
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    until_end(&seen).await;
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
    tokio::time::sleep(SECOND).await;
    assert_eq!(live(&stage).await.len(), 1, "the late restart finds it open");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_keeps_dying_is_given_up_until_somebody_opens_it() {
    let stage = Stage::new(Script::saying("done")).await;
    let seat = stage.seat().await;
    let fault =
        Fault { point: "loaded".to_owned(), occurrence: 0, when: When::Before, how: How::KillSession };
    faults::plan(&seat.key.id, fault);
    stage.prompt(&seat, "go").await.unwrap();
    tokio::time::sleep(60 * SECOND).await;
    let loads: Vec<_> = faults::passages(&seat.key.id).iter().map(|passage| passage.at).collect();
    let starts: Vec<_> = loads.iter().map(|at| (*at - loads[0]).as_millis()).collect();
    assert_eq!(starts.len(), 4, "{starts:?}");
    for (start, expected) in starts.iter().zip([0, 250, 1250, 6250]) {
        assert!((expected..=expected + 3).contains(start), "{starts:?}");
    }
    assert!(live(&stage).await.is_empty());
    faults::forget(&seat.key.id);
    stage.open(&seat).await;
    stage.settled(&seat).await;
    // It was open during three deaths: closed, not resumed.
    let ends = stage.ends(&seat).await;
    assert!(matches!(&ends[..], [(_, Event::Error { .. })]), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_killed_at_once_is_replaced() {
    let stage = Stage::new(Script::saying("done")).await;
    let seat = stage.seat().await;
    stage.open(&seat).await.kill();
    tokio::time::sleep(SECOND).await;
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn one_that_fails_disturbs_no_other() {
    let stage = Stage::new(slow()).await;
    let mut seats: Vec<Seat> = Vec::new();
    let mut watched = Vec::new();
    for _ in 0..5 {
        let seat = stage.seat().await;
        watched.push(stage.watch(&stage.prompt(&seat, "go").await.unwrap()));
        seats.push(seat);
    }
    until(&watched[0], |event| matches!(event, Event::Delta { .. })).await;
    stage.open(&seats[0]).await.kill();
    for seen in &watched[1..] {
        assert_eq!(until_end(seen).await, Event::Done { text: "slow done".to_owned() });
        assert!(!seen.lock().unwrap().iter().any(|(_, event)| matches!(event, Event::Retry { .. })));
    }
    stage.settled(&seats[0]).await;
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_all_turns_and_what_is_opened_later_takes_nothing() {
    let stage = Stage::new(slow()).await;
    let (first, second, late) = (stage.seat().await, stage.seat().await, stage.seat().await);
    let one = stage.watch(&stage.prompt(&first, "one").await.unwrap());
    let two = stage.watch(&stage.prompt(&second, "two").await.unwrap());
    until(&two, |event| matches!(event, Event::Delta { .. })).await;
    stage.services.sessions.ask(SessionsMsg::Drain, DRAIN_LIMIT).await.expect("in time");
    for seen in [&one, &two] {
        assert!(matches!(until_end(seen).await, Event::Cancelled { .. }));
    }
    for seat in [&first, &late] {
        let refused = stage.prompt(seat, "later").await.err().unwrap();
        assert_eq!(refused.code, ErrorCode::ShuttingDown);
    }
    assert!(stage.open_turns(&first).await.is_empty() && stage.open_turns(&second).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn at_its_start_it_opens_what_was_left_open_and_nothing_else() {
    let stage = Stage::new(slow()).await;
    let (busy, idle) = (stage.seat().await, stage.seat().await);
    stage.open(&idle).await;
    let seen = stage.watch(&stage.prompt(&busy, "go").await.unwrap());
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    let sessions = stage.services.sessions.get().unwrap();
    sessions.kill();
    sessions.wait(None).await.unwrap();
    stage.start_sessions().await;
    stage.settled(&busy).await;
    assert_eq!(live(&stage).await.len(), 1);
    assert_eq!(stage.ends(&busy).await.len(), 1);
}
