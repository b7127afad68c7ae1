//! Cancel: within two seconds, in every phase, with one terminal event.

use tokio::time::Instant;

use super::*;
use crate::session::SessionMsg;
use crate::stage::{said_by_user, tool, until};
use crate::supervision::tell;
use crate::turn::faults::passages;

/// What the user waits at most (contract 4.4).
const LIMIT: Duration = Duration::from_secs(2);

/// Cancels the turn and sees how long that takes.
async fn cancelled(stage: &Stage, seat: &Seat, accepted: &Accepted, seen: &Seen) -> String {
    let began = Instant::now();
    assert!(stage.cancel(seat, &accepted.turn).await);
    let end = until_end(seen).await;
    assert!(began.elapsed() <= LIMIT, "{:?}", began.elapsed());
    stage.settled(seat).await;
    one_end(stage, seat, seen).await;
    let Event::Cancelled { text } = end else { panic!("{end:?}") };
    text
}

async fn one_end(stage: &Stage, seat: &Seat, seen: &Seen) {
    assert_eq!(count(seen, Event::is_terminal), 1);
    assert_eq!(stage.ends(seat).await.len(), 1);
    assert!(stage.turns(seat).await.is_empty());
    assert_eq!(stage.row(seat).await.messages, stage.history(seat).await.len() as u64);
}

/// Cancels from within the turn, at a point.
async fn cancelled_at(script: Script, point: &str, moment: When) -> (Stage, Seat, Event) {
    let stage = Stage::new(script).await;
    stage.put_file("a.txt", FILE);
    let seat = stage.seat().await;
    when(&seat, point, 1, moment, |args| {
        let (port, _) = ractor::concurrency::oneshot();
        tell(&args.session, SessionMsg::Cancel(args.turn.clone(), port.into()));
    });
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let (seen, began) = (stage.watch(&accepted), Instant::now());
    let end = until_end(&seen).await;
    assert!(began.elapsed() <= LIMIT, "{:?}", began.elapsed());
    stage.settled(&seat).await;
    one_end(&stage, &seat, &seen).await;
    (stage, seat, end)
}

#[tokio::test(start_paused = true)]
async fn while_it_is_being_started() {
    let (stage, seat, accepted, seen) = begun(Script::saying("never")).await;
    assert_eq!(cancelled(&stage, &seat, &accepted, &seen).await, "");
    assert_eq!(stage.script.asks(), 0);
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go"]);
}

#[tokio::test(start_paused = true)]
async fn while_the_log_is_read() {
    let script = Script::new(|_| vec![Act::Wait(Duration::from_hours(1)), Act::Say("never")]);
    let (stage, _, end) = cancelled_at(script, "loaded", When::Before).await;
    assert_eq!(end, Event::Cancelled { text: String::new() });
    // The question of the first step was on its way already.
    assert!(stage.script.asks() <= 1);
}

#[tokio::test(start_paused = true)]
async fn while_the_model_streams() {
    let script = Script::new(|_| {
        vec![Act::Think("hm"), Act::Say("half of "), Act::Wait(Duration::from_hours(1)), Act::Say("it")]
    });
    let (stage, seat, accepted, seen) = begun(script).await;
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    let began = Instant::now();
    assert_eq!(cancelled(&stage, &seat, &accepted, &seen).await, "half of ");
    assert!(began.elapsed() < Duration::from_millis(100), "a stream is dropped at once");
    let history = stage.history(&seat).await;
    assert_eq!((history[1].text.as_str(), history[1].thinking.as_str()), ("half of ", "hm"));
}

#[tokio::test(start_paused = true)]
async fn while_an_answer_is_being_stored() {
    let (stage, seat, end) = cancelled_at(after_one(|| edit("a.txt")), "answered", When::After).await;
    assert_eq!(end, Event::Cancelled { text: String::new() });
    assert_eq!(stage.file("a.txt"), FILE, "no call runs after it");
    assert_eq!(stage.history(&seat).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn while_an_intent_is_being_stored() {
    let (stage, _, _) = cancelled_at(after_one(|| edit("a.txt")), "declare call-0-0", When::After).await;
    assert_eq!(stage.file("a.txt"), FILE, "no effect begins after it");
}

#[tokio::test(start_paused = true)]
async fn before_an_intent_is_stored() {
    let (stage, seat, _) = cancelled_at(after_one(|| edit("a.txt")), "declare call-0-0", When::Before).await;
    assert_eq!(stage.file("a.txt"), [FILE, EDITED][usize::from(stage.history(&seat).await[2].success)]);
}

#[tokio::test(start_paused = true)]
async fn while_a_tool_ignores_it() {
    let key = format!("{:x}", crate::session::random());
    let called = key.clone();
    let script = Script::new(move |ask| match ask.step {
        0 => vec![Act::Say("Now."), Act::Call(tool::STUBBORN, json!({"key": called}))],
        _ => vec![Act::Say("never")],
    });
    let (stage, seat, accepted, seen) = begun(script).await;
    until(&seen, |_| tool::effects(&key) == 1).await;
    assert_eq!(cancelled(&stage, &seat, &accepted, &seen).await, "Now.");
    let history = stage.history(&seat).await;
    assert!(history[2].text.contains("uncertain") && !history[2].success, "{:?}", history[2]);
    assert_eq!(tool::effects(&key), 1);
    assert_eq!(count(&seen, |event| matches!(event, Event::Recovered { .. })), 1);
}

#[tokio::test(start_paused = true)]
async fn while_a_restart_waits() {
    let stage = Stage::new(Script::saying("never")).await;
    let seat = stage.seat().await;
    let fault = Fault { point: "answered".to_owned(), occurrence: 0, when: When::Before, how: How::Error };
    faults::plan(&seat.key.id, fault);
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    until(&seen, |event| matches!(event, Event::Retry { attempt: 3, .. })).await;
    let began = Instant::now();
    cancelled(&stage, &seat, &accepted, &seen).await;
    assert!(began.elapsed() < Duration::from_millis(100), "the wait of 5 s is cut off");
    let asked = stage.script.asks();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stage.script.asks(), asked, "the old timer starts nothing");
}

#[tokio::test(start_paused = true)]
async fn while_it_waits_behind_another_turn() {
    let script = Script::new(|_| vec![Act::Wait(Duration::from_secs(60)), Act::Say("done")]);
    let (stage, seat, first, seen) = begun(script).await;
    let queued = stage.prompt(&seat, "never asked").await.unwrap();
    let watched = stage.watch(&queued);
    let began = Instant::now();
    assert!(stage.cancel(&seat, &queued.turn).await);
    assert_eq!(until_end(&watched).await, Event::Cancelled { text: String::new() });
    assert!(began.elapsed() <= LIMIT);
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go"], "it never enters the history");
    assert!(!stage.cancel(&seat, &first.turn).await, "there is nothing left to cancel");
}

/// A check is a process, so this one runs by the real clock.
#[tokio::test]
async fn while_the_work_is_checked() {
    let own = "{\"verifyCommand\": \"sleep 60\", \"autoVerify\": true}";
    let stage = Stage::new(after_one(|| edit("a.txt"))).await;
    stage.put_file("a.txt", FILE);
    std::fs::create_dir(stage.work.join(".seekclaw")).unwrap();
    stage.put_file(".seekclaw/config.json", own);
    let seat = stage.seat().await;
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    until(&seen, |event| matches!(event, Event::Status { label, .. } if label == "Verifying")).await;
    assert_eq!(cancelled(&stage, &seat, &accepted, &seen).await, "done");
    assert_eq!(passages(&seat.key.id).iter().filter(|passage| passage.point == "verified").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn by_the_end_of_the_connection_that_owns_it_however_it_ends() {
    type End = fn(&ractor::ActorCell);
    let ends: [(&str, End); 2] = [("stop", |owner| owner.stop(None)), ("kill", |owner| owner.kill())];
    for (what, end) in ends {
        let script = Script::new(|_| vec![Act::Say("half"), Act::Wait(Duration::from_hours(1))]);
        let stage = Stage::new(script).await;
        let (seat, owner) = (stage.seat().await, crate::stage::idle_actor().await);
        let accepted = stage.prompt_of(&seat, "go", Some(owner.clone())).await.unwrap();
        let queued = stage.prompt_of(&seat, "later", Some(owner.clone())).await.unwrap();
        let (seen, later) = (stage.watch(&accepted), stage.watch(&queued));
        until(&seen, |event| matches!(event, Event::Delta { .. })).await;
        let began = Instant::now();
        end(&owner);
        assert_eq!(until_end(&seen).await, Event::Cancelled { text: "half".to_owned() }, "{what}");
        assert_eq!(until_end(&later).await, Event::Cancelled { text: String::new() }, "{what}");
        assert!(began.elapsed() <= LIMIT, "{what}");
        stage.settled(&seat).await;
        assert_eq!(said_by_user(&stage.history(&seat).await), ["go"], "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn by_the_panic_of_the_connection_that_owns_it() {
    let script = Script::new(|_| vec![Act::Say("half"), Act::Wait(Duration::from_hours(1))]);
    let stage = Stage::new(script).await;
    let (seat, owner) = (stage.seat().await, crate::stage::fragile_actor().await);
    let accepted = stage.prompt_of(&seat, "go", Some(owner.get_cell())).await.unwrap();
    let seen = stage.watch(&accepted);
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    tell(&owner, ());
    assert_eq!(until_end(&seen).await, Event::Cancelled { text: "half".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn not_by_the_end_of_somebody_who_does_not_own_it() {
    let script = Script::new(|_| vec![Act::Wait(Duration::from_secs(30)), Act::Say("done")]);
    let stage = Stage::new(script).await;
    let seat = stage.seat().await;
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    crate::stage::idle_actor().await.kill();
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
}

#[tokio::test(start_paused = true)]
async fn a_cancel_outlives_the_session() {
    let script = Script::new(|ask| match ask.before {
        0 => vec![Act::Say("half"), Act::Wait(Duration::from_hours(1))],
        _ => vec![Act::Say("never")],
    });
    let (stage, seat, accepted, seen) = begun(script).await;
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    let fault = Fault {
        point: "committed advance".to_owned(),
        occurrence: 1,
        when: When::Before,
        how: How::KillSession,
    };
    faults::plan(&seat.key.id, fault);
    stage.cancel(&seat, &accepted.turn).await;
    stage.settled(&seat).await;
    assert_eq!(stage.script.asks(), 1, "what was cancelled is not resumed");
    assert_eq!(stage.ends(&seat).await[0].1, Event::Cancelled { text: "half".to_owned() });
}
