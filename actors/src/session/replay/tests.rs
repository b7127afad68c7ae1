//! A reader gets exactly what it missed, wherever its cursor is, from the ring, the store, or both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test")]

use std::collections::BTreeMap;

use seekclaw_protocol::event::WorkflowKind;
use seekclaw_protocol::{ReasoningLevel, SessionId};
use seekclaw_storage::record::log::{AnswerEnd, Finished, Guidance, Note, Prompt, Returned, Started};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::store::{Batch, Options, Store, Write, Writer};

use super::*;
use crate::session::log::{Page as RingPage, SessionLog};

const UID: u64 = 5;
const FENCE: u64 = 1;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A session's log and store, driven as a session would, and what a reader who misses nothing has seen.
struct World {
    log: SessionLog,
    writer: Writer,
    reader: Reader,
    dice: Dice,
    seen: BTreeMap<u64, Event>,
    cursor: u64,
    /// Ranges that were withdrawn.
    withdrawn: Vec<(u64, u64)>,
    /// What has streamed and is in no answer that could be stored.
    text: String,
    /// What the answer that is on its way holds.
    claimed: Option<String>,
    flight: Option<(Vec<Entry>, u64)>,
    _disk: tempfile::TempDir,
}

impl World {
    fn new(seed: u64) -> Self {
        let disk = tempfile::tempdir_in(crate::stage::fast_disk()).unwrap();
        let (writer, reader, _) = Store::open(&disk.path().join("db"), &Options::default()).unwrap();
        let log = SessionLog::new(SessionId::parse("s").unwrap(), 1, 1);
        log.set_fence(FENCE);
        let world = Self {
            log,
            writer,
            reader,
            dice: Dice(seed),
            seen: BTreeMap::new(),
            cursor: 0,
            withdrawn: Vec::new(),
            text: String::new(),
            claimed: None,
            flight: None,
            _disk: disk,
        };
        world.store(vec![Write::PutSession(row())]);
        world
    }

    fn store(&self, writes: Vec<Write>) {
        let (told, stored) = std::sync::mpsc::channel();
        let done = Box::new(move |result| told.send(result).unwrap());
        self.writer.submit(Batch { writes, done }).unwrap();
        stored.recv().unwrap().unwrap();
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..60 if self.claimed.is_none() => self.stream(),
            0..70 => {
                self.log.publish(FENCE, &turn(), record::status("s"));
            }
            70..76 => {
                self.log.append(&turn_of_another(), vec![prompt(), Body::Notice(record::status("Queued"))]);
            }
            76..79 => {
                let returned = Returned { unanswered: false, reason: String::new() };
                let end = Finished::Cancelled { text: String::new() };
                self.log.append(&turn_of_another(), vec![Body::Returned(returned), Body::Finished(end)]);
            }
            79..82 => {
                let guidance = Guidance { id: "g".to_owned(), text: "g".to_owned(), images: Vec::new() };
                self.log.append(&turn(), vec![Body::Guidance(guidance)]);
            }
            82..84 if self.text.is_empty() && self.claimed.is_none() => {
                self.log.append(&turn(), vec![Body::Note(Note { text: "n".to_owned() })]);
            }
            84..86 if self.claimed.is_none() => self.start_again(),
            86..90 if self.claimed.is_none() => self.answer(),
            90..93 if self.claimed.is_none() => self.withdraw(),
            _ => self.commit(),
        }
        self.follow();
        assert_eq!(self.log.streamed().text, if self.claimed.is_some() { "" } else { &self.text });
    }

    /// A turn that is closed starts once more and keeps what streamed.
    fn start_again(&mut self) {
        let started = Started {
            attempt: 4,
            mode: seekclaw_protocol::Mode::Auto,
            reasoning: ReasoningLevel::None,
            model: String::new(),
        };
        self.log.append(&turn(), vec![Body::Started(started)]);
    }

    fn stream(&mut self) {
        let size = match self.dice.below(40) {
            0 => 60_000,
            1 => 3,
            _ => 1,
        };
        let letter = ["ä", "b", "雨", "🌧"][usize::try_from(self.dice.below(4)).unwrap()];
        let text = letter.repeat(size);
        self.text.push_str(&text);
        assert!(self.log.stream(FENCE, &turn(), Streamed::Text, text));
    }

    fn answer(&mut self) {
        let streamed = self.log.streamed();
        // As after a real stream, a notice comes between.
        self.log.publish(FENCE, &turn(), record::status("usage"));
        let answer = Answer {
            step: 1,
            model: String::new(),
            thinking: streamed.thinking,
            text: streamed.text,
            marks: streamed.marks,
            calls: Vec::new(),
            viewed: Vec::new(),
            end: AnswerEnd::Complete,
        };
        self.log.append(&turn(), vec![Body::Answer(answer)]);
        self.claimed = Some(std::mem::take(&mut self.text));
    }

    fn withdraw(&mut self) {
        let streamed = self.log.streamed();
        self.log.withdraw_text();
        self.text.clear();
        if let (Some(first), Some(last)) = (streamed.marks.first(), streamed.marks.last()) {
            self.withdrawn.push((first.seq, last.seq));
        }
        self.log.publish(FENCE, &turn(), record::workflow(1, WorkflowKind::Think, "retry"));
    }

    /// Begins a commit, or ends the one that is on its way: well, or badly now and then.
    fn commit(&mut self) {
        let Some((entries, covered)) = self.flight.take() else {
            self.flight = Some(self.log.take_unstored());
            return;
        };
        let answered = entries.iter().any(|entry| matches!(entry.body, Body::Answer(_)));
        if self.dice.below(5) == 0 {
            self.log.failed(covered, entries);
            if answered {
                self.text = self.claimed.take().unwrap();
                self.withdraw();
            }
        } else {
            self.store(vec![Write::Append { session: UID, entries }]);
            self.log.committed(covered);
            if answered {
                self.claimed = None;
            }
        }
    }

    fn settle(&mut self) {
        while self.flight.is_some() {
            self.commit();
        }
        if self.claimed.is_none() {
            self.withdraw();
        }
        self.follow();
        let (entries, covered) = self.log.take_unstored();
        self.store(vec![Write::Append { session: UID, entries }]);
        self.log.committed(covered);
        self.claimed = None;
        self.follow();
    }

    /// Reads on as somebody who is never slow.
    fn follow(&mut self) {
        let limit = usize::try_from(1 + self.dice.below(5)).unwrap();
        while self.cursor < self.log.head() {
            let RingPage::Events(events, reached) = self.log.page(self.cursor, None, limit) else {
                panic!("not slow, and yet behind")
            };
            assert!(reached > self.cursor && events.len() <= limit);
            for event in events {
                assert!(event.seq > self.cursor && event.seq <= reached, "order");
                assert!(self.seen.insert(event.seq, event.event.clone()).is_none(), "seen twice");
            }
            self.cursor = reached;
        }
    }

    /// What somebody gets who stopped at `cursor` and asks again, in pages.
    fn missed(&self, mut cursor: u64) -> BTreeMap<u64, Event> {
        let mut missed = BTreeMap::new();
        while cursor < self.log.head() {
            let (events, reached) = match self.log.page(cursor, None, 100) {
                RingPage::Events(events, reached) => (events, reached),
                RingPage::Behind(until) => page(&self.reader, UID, cursor, until).unwrap(),
            };
            assert!(reached > cursor, "it gets on");
            for event in events {
                assert!(event.seq > cursor && event.seq <= reached, "{} in {cursor}..{reached}", event.seq);
                assert!(missed.insert(event.seq, event.event.clone()).is_none(), "given twice");
            }
            cursor = reached;
        }
        missed
    }

    fn lasting(&self, events: impl Iterator<Item = (u64, Event)>) -> BTreeMap<u64, Event> {
        let gone = |seq: u64, event: &Event| {
            event.is_text() && self.withdrawn.iter().any(|(first, last)| (*first..=*last).contains(&seq))
        };
        events.filter(|(seq, event)| !gone(*seq, event)).collect()
    }
}

fn turn() -> TurnId {
    TurnId::from_bits(1)
}

fn turn_of_another() -> TurnId {
    TurnId::from_bits(2)
}

fn prompt() -> Body {
    Body::Prompt(Prompt { text: "p".to_owned(), images: Vec::new(), client: String::new() })
}

fn row() -> SessionRow {
    SessionRow {
        uid: UID,
        key: SessionKey { scope: "global".to_owned(), id: "s".to_owned() },
        workspace: String::new(),
        title: String::new(),
        archived: false,
        reasoning: ReasoningLevel::None,
        network: false,
        llm_rounds: 0,
        execution_steps: 0,
        input_tokens: 0,
        total_input_tokens: 0,
        cached_input_tokens: 0,
        output_tokens: 0,
        output_elapsed_ms: 0,
        created_at: 0,
        updated_at: 0,
        generation: 0,
        seq_reserved: 1,
        messages: 0,
    }
}

#[test]
fn at_every_cursor_a_reader_gets_exactly_what_it_missed() {
    let mut behind = 0;
    for seed in 1..=6_u64 {
        let mut world = World::new(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        for _ in 0..3000 {
            world.step();
        }
        world.settle();
        let seen = world.seen.clone();
        let head = world.log.head();
        for cursor in (0..head).step_by(17).chain(head.saturating_sub(40)..=head) {
            behind += usize::from(matches!(world.log.page(cursor, None, 1), RingPage::Behind(_)));
            let missed = world.lasting(world.missed(cursor).into_iter());
            let after = seen.range(cursor + 1..).map(|(seq, event)| (*seq, event.clone()));
            let expected = world.lasting(after);
            assert!(missed == expected, "seed {seed}, cursor {cursor}: {}", difference(&missed, &expected));
        }
    }
    assert!(behind > 100, "the store was needed: {behind}");
}

fn difference(got: &BTreeMap<u64, Event>, expected: &BTreeMap<u64, Event>) -> String {
    let missing: Vec<_> = expected.keys().filter(|seq| !got.contains_key(seq)).take(10).collect();
    let extra: Vec<_> = got.keys().filter(|seq| !expected.contains_key(seq)).take(10).collect();
    let other: Vec<_> =
        got.iter().filter(|(seq, event)| expected.get(seq).is_some_and(|e| e != *event)).collect();
    format!("missing {missing:?}, extra {extra:?}, {} differ", other.len())
}

#[test]
fn a_page_of_a_long_answer_ends_inside_of_it_and_the_next_one_goes_on_there() {
    let mut world = World::new(3);
    for _ in 0..20_000 {
        world.text.push('x');
        world.log.stream(FENCE, &turn(), Streamed::Text, "x".to_owned());
    }
    world.answer();
    world.settle();
    let RingPage::Behind(until) = world.log.page(0, None, 1) else { panic!("all of it is in the ring") };
    assert!(until < 20_000, "the ring begins inside of the answer: {until}");
    for cursor in [0, 1, until - 1, until, until + 1, 19_999, 20_000] {
        let text = world.missed(cursor).into_values().filter(Event::is_text).count() as u64;
        assert_eq!(text, 20_000 - cursor, "cursor {cursor}");
    }
}
