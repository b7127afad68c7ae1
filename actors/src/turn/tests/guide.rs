//! Guidance: taken in order, answered in the turn or refused at once, never lost and never doubled.

use std::collections::HashMap;
use std::sync::Mutex;

use seekclaw_protocol::ErrorCode;
use seekclaw_protocol::limits::MAX_QUEUED_GUIDANCE;
use seekclaw_storage::record::log::ImageRef;
use tokio::task::yield_now;

use super::*;
use crate::history::Role;
use crate::session::{NewGuidance, NewImage, SessionMsg};
use crate::stage::{said_by_user, steer, until};

/// Answers after each piece of guidance, and stops a while before it does.
fn listener() -> Script {
    Script::new(|ask| match ask.before {
        0 => vec![Act::Say("one"), Act::Wait(Duration::from_secs(2)), Act::Say("!")],
        _ => vec![Act::Say("heard")],
    })
}

#[tokio::test(start_paused = true)]
async fn it_is_heard_in_the_order_in_which_it_was_given() {
    let (stage, seat, accepted, seen) = begun(listener()).await;
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    let (session, turn) = (stage.open(&seat).await, accepted.turn.clone());
    let texts: Vec<String> = (0..20).map(|n| format!("guidance {n}")).collect();
    let steers: Vec<_> = texts.iter().map(|text| steer(&session, &turn, text)).collect();
    for answered in futures_util::future::join_all(steers).await {
        answered.unwrap();
    }
    assert_eq!(until_end(&seen).await, Event::Done { text: "heard".to_owned() });
    stage.settled(&seat).await;
    let mut said = vec!["go"];
    said.extend(texts.iter().map(String::as_str));
    assert_eq!(said_by_user(&stage.history(&seat).await), said);
    assert_eq!(count(&seen, |event| matches!(event, Event::Steer { .. })), 20);
    assert_eq!(stage.script.asks(), 2, "all of it is answered together");
}

#[tokio::test(start_paused = true)]
async fn more_than_a_turn_can_hold_is_refused() {
    let (stage, seat, accepted, seen) = begun(listener()).await;
    let behind = stage.prompt(&seat, "later").await.unwrap();
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    for turn in [&accepted.turn, &behind.turn] {
        for _ in 0..MAX_QUEUED_GUIDANCE {
            stage.steer(&seat, turn, "more").await.unwrap();
        }
        let refused = stage.steer(&seat, turn, "too much").await.unwrap_err();
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (ErrorCode::QueueFull, "The guidance queue is full")
        );
    }
    stage.settled(&seat).await;
    let history = stage.history(&seat).await;
    let said = said_by_user(&history);
    assert_eq!(said.iter().filter(|text| **text == "more").count(), 2 * MAX_QUEUED_GUIDANCE);
    assert!(!said.contains(&"too much"));
}

#[tokio::test(start_paused = true)]
async fn what_a_turn_accepted_is_shown_even_if_it_ends_otherwise() {
    for cancel in [true, false] {
        let script = Script::new(move |_| {
            let mut acts = vec![Act::Wait(Duration::from_secs(5))];
            if !cancel {
                acts.push(Act::Fail(refusal()));
            }
            acts
        });
        let (stage, seat, accepted, seen) = begun(script).await;
        // While the guidance is being stored the turn comes to its end.
        let session = stage.open(&seat).await;
        let turn = accepted.turn.clone();
        let (told, stored) = std::sync::mpsc::channel::<()>();
        let (told, mut hold) = (Mutex::new(Some(told)), Some(stored));
        until(&seen, |event| matches!(event, Event::ModelStart { .. })).await;
        stage.store.delay(move || hold.take());
        let guided = crate::supervision::attached({
            let session = session.clone();
            async move { steer(&session, &turn, "mind the gap").await.unwrap() }
        });
        if cancel {
            passed(&seat, "steer").await;
            stage.cancel(&seat, &accepted.turn).await;
        }
        passed(&seat, "answered").await;
        drop(told.lock().unwrap().take());
        guided.await.unwrap();
        let end = until_end(&seen).await;
        assert_eq!(matches!(end, Event::Cancelled { .. }), cancel, "{end:?}");
        stage.settled(&seat).await;
        assert_eq!(said_by_user(&stage.history(&seat).await), ["go", "mind the gap"]);
    }
}

/// Waits for a point while the clock stands still, since the store is being held.
async fn passed(seat: &Seat, point: &str) {
    while !faults::passages(&seat.key.id).iter().any(|passage| passage.point == point) {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
}

/// A provider that refuses: no failure of ours, so the turn ends.
fn refusal() -> crate::provider::ProviderError {
    crate::provider::ProviderError {
        code: ErrorCode::ProviderRejected,
        message: "no".to_owned(),
        retryable: false,
        committed: false,
        retry_after: None,
    }
}

#[tokio::test(start_paused = true)]
async fn it_waits_for_a_turn_that_waits() {
    let (stage, seat, _, seen) = begun(listener()).await;
    let behind = stage.prompt(&seat, "later").await.unwrap();
    let later = stage.watch(&behind);
    stage.steer(&seat, &behind.turn, "for the second").await.unwrap();
    until_end(&seen).await;
    until_end(&later).await;
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go", "later", "for the second"]);
    let nobody = stage.steer(&seat, &behind.turn, "too late").await.unwrap_err();
    assert_eq!(nobody.code, ErrorCode::NotFound);
}

#[tokio::test(start_paused = true)]
async fn it_is_not_lost_while_the_turn_reads_the_log() {
    let stage = Stage::new(Script::saying("heard")).await;
    let seat = stage.seat().await;
    let (session, gate) = (stage.open(&seat).await, faults::hold_load(&seat.key.id));
    let accepted = stage.prompt(&seat, "go").await.unwrap();
    let seen = stage.watch(&accepted);
    while count(&seen, |event| matches!(event, Event::Workflow { .. })) == 0 {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    let guided = {
        let (session, turn) = (session.clone(), accepted.turn.clone());
        crate::supervision::attached(async move { steer(&session, &turn, "mind the gap").await.unwrap() })
    };
    passed(&seat, "steer").await;
    // The log has been read by now, and what is stored of the guidance comes too late for it.
    for _ in 0..50 {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    drop(gate);
    guided.await.unwrap();
    assert_eq!(until_end(&seen).await, Event::Done { text: "heard".to_owned() });
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go", "mind the gap"]);
    assert_eq!(count(&seen, |event| matches!(event, Event::Steer { .. })), 1);
}

#[tokio::test(start_paused = true)]
async fn handed_over_twice_it_counts_once() {
    let (stage, seat, accepted, seen) = begun(listener()).await;
    let session = stage.open(&seat).await;
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    let image = ImageRef {
        id: "i".to_owned(),
        name: "i.png".to_owned(),
        media_type: "image/png".to_owned(),
        size: 3,
    };
    let images = vec![NewImage { image, bytes: vec![1, 2, 3] }];
    let guidance = Arc::new(NewGuidance { id: "same".to_owned(), text: "once".to_owned(), images });
    for _ in 0..3 {
        let again = Arc::clone(&guidance);
        let turn = accepted.turn.clone();
        session.call(|port| SessionMsg::Steer(turn, again, port), None).await.unwrap().unwrap().unwrap();
    }
    let uid = seat.uid;
    let reader = stage.services.store.reader().clone();
    let stored = tokio::task::spawn_blocking(move || reader.image(uid, "i").unwrap()).await.unwrap();
    assert_eq!(stored, Some(vec![1, 2, 3]), "the image is stored with it");
    stage.cancel(&seat, &accepted.turn).await;
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go", "once"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_is_refused_and_the_turn_goes_on() {
    let (stage, seat, accepted, seen) = begun(listener()).await;
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    stage.store.fill();
    let refused = stage.steer(&seat, &accepted.turn, "lost").await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::StorageFull);
    stage.store.free();
    stage.steer(&seat, &accepted.turn, "kept").await.unwrap();
    assert_eq!(until_end(&seen).await, Event::Done { text: "heard".to_owned() });
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go", "kept"]);
}

/// Small and good enough to choose instants.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One turn that is guided at an instant that nobody chose; whether the guidance was accepted.
async fn race(stage: &Stage, seat: &Seat, dice: &mut Dice, round: usize) -> (String, bool) {
    let accepted = stage.prompt(seat, &format!("prompt {round}")).await.unwrap();
    let (session, text) = (stage.open(seat).await, format!("guidance {round}"));
    for _ in 0..dice.below(160) {
        yield_now().await;
    }
    tokio::time::sleep(Duration::from_micros(500) * u32::try_from(dice.below(14)).unwrap()).await;
    let began = tokio::time::Instant::now();
    let answered = steer(&session, &accepted.turn, &text).await;
    assert!(began.elapsed() < Duration::from_millis(100), "the answer comes at once");
    if let Err(refused) = &answered {
        let expected = [ErrorCode::Conflict, ErrorCode::NotFound];
        assert!(expected.contains(&refused.code), "{refused:?}");
    }
    while !stage.turns(seat).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (text, answered.is_ok())
}

#[tokio::test(start_paused = true)]
async fn at_a_thousand_instants_it_is_answered_or_refused_and_never_lost() {
    const SESSIONS: usize = 40;
    const ROUNDS: usize = 25;
    let script = Script::new(|_| {
        vec![
            Act::Wait(Duration::from_millis(1)),
            Act::Say("a"),
            Act::Wait(Duration::from_millis(1)),
            Act::Say("b"),
        ]
    });
    let stage = Arc::new(Stage::new(script).await);
    let sessions = (0..SESSIONS).map(|number| {
        let stage = Arc::clone(&stage);
        async move {
            let seat = stage.seat().await;
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1));
            let mut guided = HashMap::new();
            for round in 0..ROUNDS {
                let (text, accepted) = race(&stage, &seat, &mut dice, round).await;
                guided.insert(text, accepted);
            }
            check(&stage, &seat, &guided).await;
            guided.values().filter(|accepted| **accepted).count()
        }
    });
    let accepted: usize = futures_util::future::join_all(sessions).await.into_iter().sum();
    let refused = SESSIONS * ROUNDS - accepted;
    assert!(accepted > 100 && refused > 100, "both happen: {accepted} accepted, {refused} refused");
}

/// What was accepted is there once and has an answer behind it; what was refused is not there.
async fn check(stage: &Stage, seat: &Seat, guided: &HashMap<String, bool>) {
    stage.settled(seat).await;
    let history = stage.history(seat).await;
    for (text, accepted) in guided {
        let places: Vec<usize> = (0..history.len()).filter(|index| history[*index].text == *text).collect();
        assert_eq!(places.len(), usize::from(*accepted), "{text}");
        if let Some(place) = places.first() {
            assert_eq!(history[place + 1].role, Role::Assistant, "{text} has no answer");
        }
    }
}
