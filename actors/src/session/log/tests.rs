use futures_util::FutureExt;
use seekclaw_protocol::event::WorkflowKind;
use seekclaw_storage::record::log::{Answer, AnswerEnd, Finished, Note, Prompt};

use super::*;

const FENCE: u64 = 1;

fn log() -> SessionLog {
    let log = SessionLog::new(SessionId::parse("s").unwrap(), 1, 1);
    log.set_fence(FENCE);
    log
}

fn turn() -> TurnId {
    TurnId::from_bits(7)
}

fn note() -> Notice {
    record::workflow(1, WorkflowKind::Think, "think")
}

fn prompt() -> Body {
    Body::Prompt(Prompt { text: "go".to_owned(), images: Vec::new(), client: String::new() })
}

fn done() -> Body {
    Body::Finished(Finished::Done { text: "done".to_owned() })
}

fn answer(streamed: StreamedText) -> Body {
    Body::Answer(Answer {
        step: 1,
        model: String::new(),
        thinking: streamed.thinking,
        text: streamed.text,
        marks: streamed.marks,
        calls: Vec::new(),
        viewed: Vec::new(),
        end: AnswerEnd::Complete,
    })
}

fn say(log: &SessionLog, text: &str) {
    assert!(log.stream(FENCE, &turn(), Streamed::Text, text.to_owned()));
}

/// What a reader at `cursor` gets, and its cursor after that.
fn read(log: &SessionLog, cursor: u64, limit: usize) -> (Vec<u64>, u64) {
    match log.page(cursor, None, limit) {
        Page::Events(events, reached) => (events.iter().map(|event| event.seq).collect(), reached),
        Page::Behind(until) => panic!("behind {until}"),
    }
}

fn commit(log: &SessionLog) {
    let (_, covered) = log.take_unstored();
    log.committed(covered);
}

#[test]
fn what_must_be_durable_is_seen_once_it_is_and_holds_back_what_follows() {
    let log = log();
    log.publish(FENCE, &turn(), note());
    log.append(&turn(), vec![done()]);
    log.publish(FENCE, &turn(), note());
    say(&log, "text");
    assert_eq!((read(&log, 0, 99), log.head()), ((vec![1], 1), 1));
    commit(&log);
    assert_eq!((read(&log, 0, 99), log.head()), ((vec![1, 2, 3, 4], 4), 4));
}

#[test]
fn a_commit_shows_no_more_than_it_covered() {
    let log = log();
    log.append(&turn(), vec![done()]);
    let (entries, covered) = log.take_unstored();
    assert_eq!((entries.len(), covered), (1, 1));
    log.append(&turn(), vec![done()]);
    log.committed(covered);
    assert_eq!(read(&log, 0, 99), (vec![1], 1));
    commit(&log);
    assert_eq!(read(&log, 1, 99), (vec![2], 2));
}

#[test]
fn a_cursor_moves_past_records_without_an_event_and_stops_where_the_page_is_full() {
    let log = log();
    log.append(&turn(), vec![prompt()]);
    commit(&log);
    assert_eq!(read(&log, 0, 99), (vec![], 1));
    for _ in 0..3 {
        log.publish(FENCE, &turn(), note());
    }
    assert_eq!(read(&log, 0, 2), (vec![2, 3], 3));
    assert_eq!(read(&log, 3, 2), (vec![4], 4));
    assert_eq!(read(&log, 4, 2), (vec![], 4));
    assert_eq!(read(&log, 9, 2), (vec![], 9), "a cursor never goes back");
    let Page::Events(others, reached) = log.page(0, Some(&TurnId::from_bits(8)), 2) else { panic!() };
    assert_eq!((others.len(), reached), (0, 4));
}

#[test]
fn only_the_holder_of_the_fence_is_heard() {
    let log = log();
    log.set_fence(FENCE + 1);
    assert!(!log.publish(FENCE, &turn(), note()));
    assert!(!log.stream(FENCE, &turn(), Streamed::Text, "late".to_owned()));
    assert_eq!((read(&log, 0, 99), log.next_seq()), ((vec![], 0), 1));
    assert_eq!(log.streamed(), StreamedText::default());
}

#[test]
fn a_failed_commit_takes_back_all_but_single_notices_and_the_end_of_a_turn() {
    let log = log();
    log.publish(FENCE, &turn(), note());
    log.append(&turn(), vec![prompt(), Body::Notice(note())]);
    log.append(&turn(), vec![Body::Notice(note()), done()]);
    let weight = log.lock().weight;
    let (entries, covered) = log.take_unstored();
    log.publish(FENCE, &turn(), note());
    log.failed(covered, entries);
    assert_eq!(read(&log, 0, 99), (vec![1, 4, 5, 6], 6));
    assert!(log.lock().weight < weight + 300, "what is gone weighs nothing");
    let (again, covered) = log.take_unstored();
    assert_eq!(again.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [1, 4, 5, 6]);
    log.committed(covered);
    assert_eq!(read(&log, 0, 99), (vec![1, 4, 5, 6], 6));
}

#[test]
fn text_that_an_answer_holds_is_not_withdrawn_any_more_unless_that_cannot_be_stored() {
    let log = log();
    say(&log, "one ");
    log.stream(FENCE, &turn(), Streamed::Thinking, "hm".to_owned());
    say(&log, "two");
    let streamed = log.streamed();
    assert_eq!((streamed.text.as_str(), streamed.thinking.as_str()), ("one two", "hm"));
    assert_eq!(streamed.marks.iter().map(|mark| mark.seq).collect::<Vec<_>>(), [1, 2, 3]);
    log.append(&turn(), vec![answer(streamed.clone())]);
    assert_eq!(log.streamed(), StreamedText::default());
    let (entries, covered) = log.take_unstored();
    log.failed(covered, entries);
    assert_eq!(log.streamed(), streamed);
    log.append(&turn(), vec![answer(streamed)]);
    commit(&log);
    assert_eq!(log.streamed(), StreamedText::default());
    say(&log, "next");
    assert_eq!(log.streamed().text, "next");
    log.withdraw_text();
    assert_eq!(log.streamed(), StreamedText::default());
}

#[test]
fn the_ring_lets_go_of_what_the_store_has_and_of_nothing_else() {
    let log = log();
    let many = RING_EVENTS + 100;
    for _ in 0..many {
        say(&log, "x");
    }
    commit(&log);
    assert_eq!(read(&log, 0, usize::MAX).0.len(), many, "text is in no answer yet");
    let streamed = log.streamed();
    assert_eq!(streamed.text.len(), many);
    log.append(&turn(), vec![answer(streamed)]);
    assert_eq!(read(&log, 0, usize::MAX).0.len(), many, "the answer is not stored yet");
    commit(&log);
    let Page::Behind(until) = log.page(0, None, 9) else { panic!() };
    assert_eq!(until, 100);
    assert_eq!(read(&log, until, usize::MAX).0.len(), RING_EVENTS);
}

#[test]
fn notices_that_are_not_stored_stay_in_the_ring() {
    let log = log();
    for _ in 0..RING_EVENTS + 10 {
        log.publish(FENCE, &turn(), note());
    }
    assert_eq!(read(&log, 0, usize::MAX).0.len(), RING_EVENTS + 10);
    commit(&log);
    assert!(matches!(log.page(0, None, 9), Page::Behind(10)));
}

#[test]
fn readers_are_woken_by_what_they_can_see_and_by_the_end() {
    let owner = LogOwner(Arc::new(log()));
    let (log, wake) = (Arc::clone(&owner), Arc::new(Notify::new()));
    log.watch(&wake);
    let woken = || wake.notified().now_or_never().is_some();
    assert!(!woken());
    log.append(&turn(), vec![Body::Note(Note { text: String::new() })]);
    assert!(!woken(), "nothing new can be seen");
    commit(&log);
    assert!(woken());
    drop(owner);
    assert!(woken() && log.is_closed());
}
