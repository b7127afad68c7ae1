//! Something goes wrong at a step of a turn: it starts again after 250 ms, 1 s and 5 s, repeats nothing
//! that may have happened, and comes to the same end.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use seekclaw_protocol::ErrorCode;
use seekclaw_storage::record::log::{Body, Outcome};

use super::super::faults::Passage;
use super::*;
use crate::agent::repair::repair;
use crate::history::Message;
use crate::provider::ProviderError;
use crate::stage::{said_by_user, steer, until};
use crate::supervision::attached;

const FILES: [&str; 3] = ["a.txt", "b.txt", "c.txt"];
const GUIDANCE: &str = "mind the gap";

/// Four steps with reading and writing calls, guided once.
fn script() -> Script {
    Script::new(|ask| match ask.step {
        0 => vec![Act::Think("hm"), Act::Say("Looking."), read("note.txt"), read("other.txt")],
        1 => vec![Act::Say("First."), edit(FILES[0])],
        2 => vec![edit(FILES[1]), read("note.txt"), edit(FILES[2])],
        _ => vec![Act::Say("All "), Act::Say("done.")],
    })
}

/// How a turn with a fault went.
struct Run {
    stage: Stage,
    seat: Seat,
    seen: Seen,
    /// Whether the guidance was accepted.
    guided: bool,
}

impl Run {
    async fn with(fault: Option<Fault>) -> Self {
        let stage = Stage::new(script()).await;
        for name in FILES {
            stage.put_file(name, FILE);
        }
        stage.put_file("note.txt", "a note\n");
        stage.put_file("other.txt", "another\n");
        let seat = stage.seat().await;
        if let Some(mut fault) = fault {
            if matches!(fault.how, How::KillStore) {
                fault.how = stage.store_dies();
            }
            faults::plan(&seat.key.id, fault);
        }
        let (told, guided) = tokio::sync::oneshot::channel();
        let told = Arc::new(Mutex::new(Some(told)));
        let teller = Arc::clone(&told);
        when(&seat, "answered", 1, When::After, move |args| {
            let (session, turn) = (args.session.clone(), args.turn.clone());
            let told = teller.lock().unwrap().take();
            attached(async move {
                let accepted = steer(&session, &turn, GUIDANCE).await.is_ok();
                told.unwrap().send(accepted).unwrap();
            });
        });
        let accepted = stage.prompt(&seat, "go").await.unwrap();
        let seen = stage.watch(&accepted);
        stage.settled(&seat).await;
        let asked = told.lock().unwrap().is_none();
        let guided = asked && guided.await.unwrap();
        Self { stage, seat, seen, guided }
    }

    fn passages(&self) -> Vec<Passage> {
        faults::passages(&self.seat.key.id)
    }

    /// Calls that are recorded as uncertain.
    async fn uncertain(&self) -> HashSet<String> {
        let log = self.stage.log(&self.seat).await;
        let uncertain = log.into_iter().filter_map(|entry| match entry.body {
            Body::Result(result) if result.outcome == Outcome::Uncertain => {
                assert!(result.text.contains("uncertain"), "{}", result.text);
                Some(result.call)
            }
            _ => None,
        });
        uncertain.collect()
    }

    /// The conversation but for guidance, whose place may differ.
    async fn conversation(&self) -> Vec<Message> {
        let history = self.stage.history(&self.seat).await;
        let guided = said_by_user(&history).iter().filter(|text| **text == GUIDANCE).count();
        // Where nobody heard the answer it may be there all the same.
        assert!(guided <= 1 && guided >= usize::from(self.guided), "{guided}, accepted: {}", self.guided);
        // Results of calls that ran together are stored as they came; a model gets them in order.
        let unguided = repair(history).into_iter().filter(|message| message.text != GUIDANCE);
        unguided.map(|message| Message { model: String::new(), ..message }).collect()
    }

    async fn check_against(&self, whole: &[Message], what: &str) {
        let uncertain = self.uncertain().await;
        let ends = self.stage.ends(&self.seat).await;
        let done = Event::Done { text: "All done.".to_owned() };
        assert_eq!(ends.iter().map(|(_, end)| end).collect::<Vec<_>>(), [&done], "{what}");
        let mut conversation = self.conversation().await;
        let mut whole = whole.to_vec();
        for messages in [&mut conversation, &mut whole] {
            messages.retain(|message| !uncertain.contains(&message.call_id));
        }
        assert_eq!(conversation, whole, "{what}");
        for (name, call) in FILES.iter().zip(["call-1-0", "call-2-0", "call-2-2"]) {
            let file = self.stage.file(name);
            let expected = file == EDITED || (uncertain.contains(call) && file == FILE);
            assert!(expected, "{what}: {name} is {file:?}, uncertain: {uncertain:?}");
        }
        assert!(uncertain.len() <= 1, "{what}: {uncertain:?}");
        let messages = self.stage.history(&self.seat).await.len() as u64;
        assert_eq!(self.stage.row(&self.seat).await.messages, messages, "{what}");
    }

    /// What a client that watched has seen.
    fn check_seen(&self, what: &str) {
        let seen = self.seen.lock().unwrap();
        let terminal = seen.iter().filter(|(_, event)| event.is_terminal()).count();
        assert_eq!(terminal, 1, "{what}: {seen:#?}");
        assert!(seen.last().unwrap().1.is_terminal(), "{what}: {seen:#?}");
        let retries = seen.iter().filter(|(_, event)| matches!(event, Event::Retry { .. })).count();
        assert!(retries <= 1, "{what}: {seen:#?}");
        assert_eq!(shown(&seen), "Looking.First.All done.", "{what}: {seen:#?}");
    }
}

/// The text that a client shows: withdrawn characters are gone.
fn shown(seen: &[(Duration, Event)]) -> String {
    let mut text: Vec<char> = Vec::new();
    let mut thinking = 0;
    for (_, event) in seen {
        match event {
            Event::Delta { text: more } => text.extend(more.chars()),
            Event::Thinking { text: more } => thinking += more.chars().count(),
            Event::ModelStart { .. } => thinking = 0,
            Event::Retry { chars, .. } => {
                let withdrawn = usize::try_from(*chars).unwrap() - if *chars > 0 { thinking } else { 0 };
                text.truncate(text.len() - withdrawn);
            }
            _ => {}
        }
    }
    text.into_iter().collect()
}

async fn every_fault(how: impl Fn() -> How, times: [When; 2]) {
    let whole = Run::with(None).await;
    assert!(whole.guided && whole.uncertain().await.is_empty());
    let conversation = whole.conversation().await;
    whole.check_against(&conversation, "no fault").await;
    whole.check_seen("no fault");
    let points = whole.passages();
    assert!(points.len() >= 20, "{points:?}");
    for Passage { point, occurrence, .. } in points {
        for when in times {
            let what = format!("{when:?} {point} #{occurrence}");
            let session_dies = matches!(how(), How::KillSession);
            let run = Run::with(Some(Fault { point: point.clone(), occurrence, when, how: how() })).await;
            let passed = run.passages().iter().any(|p| p.point == point && p.occurrence == occurrence);
            assert!(passed, "{what}: did not happen");
            run.check_against(&conversation, &what).await;
            if !session_dies {
                run.check_seen(&what);
                let known = point.starts_with("called") && when == When::After;
                assert!(!known || run.uncertain().await.is_empty(), "{what}: its result was known");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_at_any_step_changes_nothing() {
    every_fault(|| How::Panic, [When::Before, When::After]).await;
}

#[tokio::test(start_paused = true)]
async fn an_error_at_any_step_changes_nothing() {
    every_fault(|| How::Error, [When::Before, When::After]).await;
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_any_step_changes_nothing() {
    every_fault(|| How::Kill, [When::Before, When::After]).await;
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_session_at_any_step_changes_nothing() {
    every_fault(|| How::KillSession, [When::Before, When::After]).await;
}

/// Moments of the starts of the turns of a session, from the first on.
fn starts(seat: &Seat) -> Vec<u128> {
    let passages = faults::passages(&seat.key.id);
    let loads: Vec<_> = passages.iter().filter(|passage| passage.point == "loaded").collect();
    loads.iter().map(|load| (load.at - loads[0].at).as_millis()).collect()
}

fn always(seat: &Seat, point: &str, how: How) {
    let fault = Fault { point: point.to_owned(), occurrence: 0, when: When::Before, how };
    faults::plan(&seat.key.id, fault);
}

async fn seated(script: Script) -> (Stage, Seat) {
    let stage = Stage::new(script).await;
    let seat = stage.seat().await;
    (stage, seat)
}

#[tokio::test(start_paused = true)]
async fn a_turn_starts_four_times_and_is_closed_after_the_third_failed_restart() {
    for how in [How::Panic, How::Error, How::Kill] {
        let (stage, seat) = seated(Script::saying("never heard")).await;
        always(&seat, "answered", how);
        let accepted = stage.prompt(&seat, "go").await.unwrap();
        let seen = stage.watch(&accepted);
        let end = until_end(&seen).await;
        stage.settled(&seat).await;
        // The last start is that of the actor that closes the turn.
        assert_eq!(starts(&seat), [0, 250, 1250, 6250, 6250]);
        assert!(matches!(&end, Event::Error { code: ErrorCode::Internal, .. }), "{end:?}");
        assert_eq!(count(&seen, Event::is_terminal), 1);
        assert_eq!(count(&seen, |event| matches!(event, Event::Retry { .. })), 3);
        assert_eq!(stage.ends(&seat).await.len(), 1);
        assert_eq!(stage.script.asks(), 4);
        // What streamed last is kept, since nothing withdraws it any more.
        let history = stage.history(&seat).await;
        let texts: Vec<_> = history.iter().map(|message| message.text.as_str()).collect();
        assert_eq!(texts, ["go", "never heard"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_even_be_closed_has_one_end_and_loses_no_guidance() {
    for how in [How::Panic, How::Error, How::Kill] {
        let (stage, seat) = seated(Script::saying("never heard")).await;
        always(&seat, "loaded", how);
        let accepted = stage.prompt(&seat, "go").await.unwrap();
        let seen = stage.watch(&accepted);
        until(&seen, |event| matches!(event, Event::Retry { attempt: 2, .. })).await;
        stage.steer(&seat, &accepted.turn, GUIDANCE).await.unwrap();
        let end = until_end(&seen).await;
        stage.settled(&seat).await;
        assert!(matches!(end, Event::Error { .. }), "{end:?}");
        assert_eq!(starts(&seat)[..4], [0, 250, 1250, 6250]);
        assert_eq!(count(&seen, Event::is_terminal), 1);
        let history = stage.history(&seat).await;
        assert_eq!(said_by_user(&history), ["go", GUIDANCE]);
        assert_eq!(stage.row(&seat).await.messages, 2);
        assert_eq!(count(&seen, |event| matches!(event, Event::Steer { .. })), 1);
        // The session goes on.
        faults::forget(&seat.key.id);
        let next = stage.watch(&stage.prompt(&seat, "again").await.unwrap());
        assert!(matches!(until_end(&next).await, Event::Done { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_with_its_turn_is_withdrawn() {
    let (stage, seat) = seated(script()).await;
    for name in FILES.iter().chain(&["note.txt", "other.txt"]) {
        stage.put_file(name, FILE);
    }
    let point = "answered".to_owned();
    faults::plan(&seat.key.id, Fault { point, occurrence: 1, when: When::After, how: How::Kill });
    let mut once = true;
    stage.store.judge(move |writes| {
        let answers = format!("{writes:?}").contains("Answer(");
        (answers && std::mem::take(&mut once)).then(crate::stage::store::full)
    });
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    assert_eq!(until_end(&seen).await, Event::Done { text: "All done.".to_owned() });
    assert_eq!(count(&seen, |event| matches!(event, Event::Retry { chars: 10, .. })), 1);
    assert_eq!(shown(&seen.lock().unwrap()), "Looking.First.All done.");
}

/// By the real clock and on two threads, since only another thread is fast enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_actor_that_is_killed_before_it_has_started_is_replaced() {
    let stage = Stage::new(Script::saying("done")).await;
    let mut seats = Vec::new();
    for _ in 0..40 {
        seats.push(stage.seat().await);
    }
    let ids: Vec<String> = seats.iter().map(|seat| format!(" of {} #1.1", seat.key.id)).collect();
    let over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&over);
    let killer = std::thread::spawn(move || {
        let mut killed = HashSet::new();
        while !stop.load(Ordering::SeqCst) {
            for name in ractor::registry::registered() {
                let mine = ids.iter().any(|id| name.ends_with(id.as_str()));
                if mine && let Some(turn) = ractor::registry::where_is(name.clone()) {
                    turn.kill();
                    killed.insert(name);
                }
            }
        }
        killed.len()
    });
    let mut watched = Vec::new();
    for seat in &seats {
        watched.push(stage.watch(&stage.prompt(seat, "go").await.unwrap()));
    }
    for seen in &watched {
        assert_eq!(until_end(seen).await, Event::Done { text: "done".to_owned() });
    }
    over.store(true, Ordering::SeqCst);
    assert!(killer.join().unwrap() > 0, "nobody was killed");
}

#[tokio::test(start_paused = true)]
async fn a_completed_step_resets_the_count_of_failures() {
    // Three failures in a row, a completed step, three more: never a fourth one in a row.
    let script = Script::new(|ask: &Ask| match (ask.step, ask.before) {
        (0, 0..3) | (1, 4..7) => vec![Act::Say("half"), Act::Fail(broken())],
        (0, _) => vec![Act::Say("First."), read("note.txt")],
        _ => vec![Act::Say("done")],
    });
    let (stage, seat) = seated(script).await;
    stage.put_file("note.txt", "a note\n");
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
    assert_eq!(starts(&seat), [0, 250, 1250, 6250, 6500, 7500, 12_500]);
    assert_eq!(shown(&seen.lock().unwrap()), "First.done");
    stage.settled(&seat).await;
    let texts: Vec<_> = stage.history(&seat).await.into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["go", "First.", "1\ta note", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_healthy_for_a_minute_starts_afresh() {
    let script = Script::new(|ask: &Ask| match ask.before {
        0..5 => vec![Act::Say("half"), Act::Wait(Duration::from_secs(61)), Act::Fail(broken())],
        _ => vec![Act::Say("done")],
    });
    let (stage, seat) = seated(script).await;
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    tokio::time::sleep(Duration::from_secs(6 * 62)).await;
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
    let retries = count(&seen, |event| matches!(event, Event::Retry { attempt: 1, .. }));
    assert_eq!((retries, starts(&seat).len()), (5, 6));
}

/// A stream that broke after it had begun.
fn broken() -> ProviderError {
    ProviderError {
        code: ErrorCode::ProviderUnavailable,
        message: "the stream broke".to_owned(),
        retryable: true,
        committed: true,
        retry_after: None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_death_of_the_store_at_any_step_loses_and_repeats_nothing() {
    let whole = Run::with(None).await;
    let conversation = whole.conversation().await;
    for Passage { point, occurrence, .. } in whole.passages() {
        let what = format!("store dies after {point} #{occurrence}");
        let run = Run::with(Some(Fault { point, occurrence, when: When::After, how: How::KillStore })).await;
        run.check_against(&conversation, &what).await;
        run.check_seen(&what);
    }
}
