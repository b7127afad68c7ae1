//! The event log of one live session, as its writers and readers share it.
//!
//! Order is decided once, when an event gets its number. An event becomes visible when everything before
//! it is visible and, if it must be durable, when its commit is. Readers hold a cursor and pull; the log
//! holds no queue per reader and only wakes them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use seekclaw_protocol::limits::{RING_BYTES, RING_EVENTS};
use seekclaw_protocol::{Event, SessionId, Timestamp, TurnId, jsonl};
use seekclaw_storage::record::log::{Body, Entry, Mark, Notice, Streamed};
use tokio::sync::Notify;

use super::record;

/// Numbers reserved ahead with each commit: more than one answer can stream, since no model writes more
/// than a million tokens (contract 2.6) and a delta holds at least one.
pub(crate) const SEQ_RESERVE: u64 = 1 << 20;

/// Events that stay in memory while no turn runs: enough for a reader that is a moment late.
const RING_AT_REST: usize = 64;

/// One event with its place in the order.
#[derive(Debug)]
pub(crate) struct Published {
    /// Its number.
    pub(crate) seq: u64,
    /// When it happened.
    pub(crate) at: Timestamp,
    /// Its turn.
    pub(crate) turn: TurnId,
    /// What happened.
    pub(crate) event: Event,
    tail: OnceLock<Bytes>,
    stamp: OnceLock<Bytes>,
}

impl Published {
    pub(crate) fn new(seq: u64, at: Timestamp, turn: TurnId, event: Event) -> Self {
        Self { seq, at, turn, event, tail: OnceLock::new(), stamp: OnceLock::new() }
    }

    /// The JSONL line after its id, encoded once for all readers.
    pub(crate) fn tail(&self, session: &SessionId) -> &Bytes {
        self.tail.get_or_init(|| {
            let mut out = Vec::with_capacity(192);
            jsonl::event_tail(&self.event, session.as_str(), &mut out);
            out.into()
        })
    }

    /// Cursor, time and turn for clients that said hello, encoded once for all readers.
    pub(crate) fn stamp(&self, generation: u64) -> &Bytes {
        self.stamp.get_or_init(|| {
            let mut out = Vec::with_capacity(128);
            jsonl::cursor_tail(generation, self.seq, self.at, self.turn.as_str(), &mut out);
            out.into()
        })
    }

    /// What it weighs in the ring: its text and about as much again as an event without text needs.
    fn weight(&self) -> usize {
        const REST: usize = 256;
        let text = match &self.event {
            Event::Thinking { text } | Event::Delta { text } | Event::Steer { text } => text.len(),
            Event::FileDiff { diff, .. } => diff.len(),
            Event::Done { text } | Event::Cancelled { text } => text.len(),
            Event::Error { message, .. } => message.len(),
            Event::ToolDone { summary, .. } | Event::ToolStart { summary, .. } => summary.len(),
            Event::Status { .. }
            | Event::Workflow { .. }
            | Event::ModelStart { .. }
            | Event::Usage { .. }
            | Event::ImageView { .. }
            | Event::Retry { .. }
            | Event::Warning { .. }
            | Event::ProviderSwitched { .. }
            | Event::Verification { .. }
            | Event::Recovered { .. } => 0,
        };
        REST + 2 * text
    }
}

/// What a reader gets for its cursor.
#[derive(Debug)]
pub(crate) enum Page {
    /// Events after the cursor, oldest first, and the cursor after them. May be empty.
    Events(Vec<Arc<Published>>, u64),
    /// The ring no longer holds what follows the cursor: read the store up to this number first.
    Behind(u64),
}

/// Text that streamed in the current step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StreamedText {
    /// Reasoning.
    pub(crate) thinking: String,
    /// Answer.
    pub(crate) text: String,
    /// Boundaries.
    pub(crate) marks: Vec<Mark>,
}

/// The log. Locks are held for a few moves of memory and never across a wait.
pub(crate) struct SessionLog {
    session: SessionId,
    generation: u64,
    head: AtomicU64,
    closed: AtomicBool,
    inner: Mutex<Inner>,
}

/// The session's own hold of its log: when it lets go, however it ends, the readers are told.
#[derive(Debug)]
pub(crate) struct LogOwner(pub(crate) Arc<SessionLog>);

impl Drop for LogOwner {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.lock().wake();
    }
}

impl std::ops::Deref for LogOwner {
    type Target = Arc<SessionLog>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

struct Inner {
    next: u64,
    fence: u64,
    ring: VecDeque<Arc<Published>>,
    weight: usize,
    evicted: u64,
    unstored: Vec<Entry>,
    waiting: VecDeque<Batch>,
    stored: u64,
    text_from: Option<u64>,
    /// Number of the answer that holds the streamed text, until its commit has ended.
    claimed: Option<u64>,
    watchers: Vec<Weak<Notify>>,
}

/// A durable append that is not committed yet.
struct Batch {
    first: u64,
    last: u64,
    /// It ends a turn: it is kept and shown even if it cannot be stored now.
    ends: bool,
}

impl Batch {
    fn holds(&self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }
}

impl std::fmt::Debug for SessionLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionLog").field("session", &self.session).field("head", &self.head()).finish()
    }
}

impl SessionLog {
    /// A log whose first event gets the number `next`; everything before it is in the store.
    pub(crate) fn new(session: SessionId, generation: u64, next: u64) -> Self {
        let stored = next.saturating_sub(1);
        let inner = Inner {
            next,
            fence: 0,
            ring: VecDeque::new(),
            weight: 0,
            evicted: stored,
            unstored: Vec::new(),
            waiting: VecDeque::new(),
            stored,
            text_from: None,
            claimed: None,
            watchers: Vec::new(),
        };
        Self {
            session,
            generation,
            head: AtomicU64::new(stored),
            closed: AtomicBool::new(false),
            inner: Mutex::new(inner),
        }
    }

    /// The session.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// The incarnation, for cursors.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Number of the last visible event.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    /// Whether the session has let go: nothing new will come.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The number that the next event will get.
    pub(crate) fn next_seq(&self) -> u64 {
        self.lock().next
    }

    /// From here on only the turn incarnation that holds `fence` may publish.
    pub(crate) fn set_fence(&self, fence: u64) {
        self.lock().fence = fence;
    }

    /// Wakes `watcher` whenever there is something new, as long as it lives.
    pub(crate) fn watch(&self, watcher: &Arc<Notify>) {
        let mut inner = self.lock();
        inner.watchers.retain(|known| known.strong_count() > 0);
        let watcher = Arc::downgrade(watcher);
        if !inner.watchers.iter().any(|known| known.ptr_eq(&watcher)) {
            inner.watchers.push(watcher);
        }
    }

    /// Publishes an event that need not be durable; false if `fence` is not the current one.
    pub(crate) fn publish(&self, fence: u64, turn: &TurnId, notice: Notice) -> bool {
        let mut inner = self.lock();
        if inner.fence != fence {
            return false;
        }
        let (seq, at) = (inner.take_seq(), now());
        let body = Body::Notice(notice);
        if let Some(event) = record::event_of(&body) {
            inner.push(Published::new(seq, at, turn.clone(), event));
        }
        inner.unstored.push(Entry { seq, at: at.0, turn: turn.as_str().to_owned(), body });
        self.reveal(&mut inner);
        true
    }

    /// Publishes streamed text: in memory until its step ends; false if `fence` is not the current one.
    pub(crate) fn stream(&self, fence: u64, turn: &TurnId, kind: Streamed, text: String) -> bool {
        let mut inner = self.lock();
        if inner.fence != fence {
            return false;
        }
        let event = match kind {
            Streamed::Thinking => Event::Thinking { text },
            Streamed::Text => Event::Delta { text },
        };
        let seq = inner.take_seq();
        inner.text_from.get_or_insert(seq);
        inner.push(Published::new(seq, now(), turn.clone(), event));
        self.reveal(&mut inner);
        true
    }

    /// Gives `bodies` their numbers; they become visible with [`SessionLog::committed`].
    pub(crate) fn append(&self, turn: &TurnId, bodies: Vec<Body>) -> Vec<Entry> {
        let mut inner = self.lock();
        let (first, at) = (inner.next, now());
        let ends = bodies.iter().any(|body| matches!(body, Body::Finished(_)));
        let mut entries = Vec::with_capacity(bodies.len());
        for body in bodies {
            let seq = inner.take_seq();
            if let Some(event) = record::event_of(&body) {
                inner.push(Published::new(seq, at, turn.clone(), event));
            }
            if matches!(body, Body::Answer(_)) {
                inner.claimed = Some(seq);
            }
            entries.push(Entry { seq, at: at.0, turn: turn.as_str().to_owned(), body });
        }
        inner.unstored.extend(entries.iter().cloned());
        if inner.next > first {
            let last = inner.next - 1;
            inner.waiting.push_back(Batch { first, last, ends });
        }
        entries
    }

    /// All that is not stored yet, in order, and the last number that it covers.
    pub(crate) fn take_unstored(&self) -> (Vec<Entry>, u64) {
        let mut inner = self.lock();
        (std::mem::take(&mut inner.unstored), inner.next - 1)
    }

    /// Everything up to `covered` is in the store: shows it.
    pub(crate) fn committed(&self, covered: u64) {
        let mut inner = self.lock();
        while inner.waiting.front().is_some_and(|batch| batch.last <= covered) {
            inner.waiting.pop_front();
        }
        inner.stored = inner.stored.max(covered);
        if let Some(answer) = inner.ended_claim(covered) {
            inner.text_from = inner.first_text_after(answer);
        }
        inner.evict();
        self.reveal(&mut inner);
    }

    /// The commit of `entries`, up to `covered`, failed. What ends a turn is kept and shown all the same, and
    /// so are single notices: they wait for the next commit. All else that had to be durable is gone.
    pub(crate) fn failed(&self, covered: u64, entries: Vec<Entry>) {
        let mut inner = self.lock();
        let waiting = std::mem::take(&mut inner.waiting);
        let (ended, waiting) = waiting.into_iter().partition(|batch| batch.last <= covered);
        inner.waiting = waiting;
        let ended: VecDeque<Batch> = ended;
        let lost = |seq| ended.iter().any(|batch| !batch.ends && batch.holds(seq));
        inner.forget(lost);
        inner.ended_claim(covered);
        let kept: Vec<Entry> = entries.into_iter().filter(|entry| !lost(entry.seq)).collect();
        let newer = std::mem::replace(&mut inner.unstored, kept);
        inner.unstored.extend(newer);
        self.reveal(&mut inner);
    }

    /// The text that streamed since the last settled step and is in no answer yet.
    pub(crate) fn streamed(&self) -> StreamedText {
        let inner = self.lock();
        let mut streamed = StreamedText::default();
        let Some(from) = inner.text_from else { return streamed };
        let before = inner.claimed.unwrap_or(from - 1);
        for published in inner.ring.iter().skip(inner.index_after(before)) {
            let (kind, text) = if let Event::Thinking { text } = &published.event {
                streamed.thinking.push_str(text);
                (Streamed::Thinking, text)
            } else if let Event::Delta { text } = &published.event {
                streamed.text.push_str(text);
                (Streamed::Text, text)
            } else {
                continue;
            };
            let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
            streamed.marks.push(Mark { seq: published.seq, kind, bytes });
        }
        streamed
    }

    /// No turn is running: what the store can give again need not stay in memory.
    pub(crate) fn rest(&self) {
        self.lock().evict_to(RING_AT_REST, usize::MAX);
    }

    /// The streamed text is withdrawn.
    pub(crate) fn withdraw_text(&self) {
        self.lock().text_from = None;
    }

    /// Up to `limit` visible events after `cursor` (of `turn` only, if given).
    pub(crate) fn page(&self, cursor: u64, turn: Option<&TurnId>, limit: usize) -> Page {
        let inner = self.lock();
        if cursor < inner.evicted {
            return Page::Behind(inner.evicted);
        }
        let head = self.head();
        let mut events = Vec::new();
        // Records without an event have numbers too: the cursor moves past them.
        let mut reached = head.max(cursor);
        for published in inner.ring.iter().skip(inner.index_after(cursor)) {
            if published.seq > head {
                break;
            }
            if events.len() >= limit {
                reached = published.seq - 1;
                break;
            }
            if turn.is_none_or(|wanted| *wanted == published.turn) {
                events.push(Arc::clone(published));
            }
        }
        Page::Events(events, reached)
    }

    /// Recomputes what is visible and wakes the readers if that grew.
    fn reveal(&self, inner: &mut Inner) {
        let head = inner.waiting.front().map_or(inner.next, |batch| batch.first) - 1;
        if self.head.swap(head, Ordering::AcqRel) != head {
            inner.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn wake(&self) {
        for watcher in self.watchers.iter().filter_map(Weak::upgrade) {
            watcher.notify_one();
        }
    }

    fn take_seq(&mut self) -> u64 {
        let seq = self.next;
        self.next += 1;
        seq
    }

    fn push(&mut self, published: Published) {
        self.weight += published.weight();
        self.ring.push_back(Arc::new(published));
        self.evict();
    }

    fn evict(&mut self) {
        self.evict_to(RING_EVENTS, RING_BYTES);
    }

    /// Lets go of the oldest events beyond the bounds, as far as the store can give them again.
    fn evict_to(&mut self, events: usize, bytes: usize) {
        let floor = self.text_from.map_or(self.stored, |from| self.stored.min(from - 1));
        while self.ring.len() > events || self.weight > bytes {
            let Some(oldest) = self.ring.front().filter(|oldest| oldest.seq <= floor) else { return };
            self.weight = self.weight.saturating_sub(oldest.weight());
            self.evicted = oldest.seq;
            self.ring.pop_front();
        }
    }

    /// The answer that holds the streamed text, if it was part of the commit that ended.
    fn ended_claim(&mut self, covered: u64) -> Option<u64> {
        self.claimed.take_if(|answer| *answer <= covered)
    }

    fn first_text_after(&self, seq: u64) -> Option<u64> {
        let mut later = self.ring.iter().skip(self.index_after(seq));
        later.find(|published| published.event.is_text()).map(|published| published.seq)
    }

    /// Takes events out that nobody has seen.
    fn forget(&mut self, lost: impl Fn(u64) -> bool) {
        let weight = &mut self.weight;
        self.ring.retain(|event| {
            let keep = !lost(event.seq);
            if !keep {
                *weight = weight.saturating_sub(event.weight());
            }
            keep
        });
    }

    fn index_after(&self, cursor: u64) -> usize {
        self.ring.partition_point(|published| published.seq <= cursor)
    }
}

/// The wall clock in the unit of the records.
pub(crate) fn now() -> Timestamp {
    Timestamp(chrono::Utc::now().timestamp_millis())
}

#[cfg(test)]
mod tests;
