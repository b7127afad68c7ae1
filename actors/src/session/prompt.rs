//! Prompts and guidance on their way in: accepted once they are stored, refused at once otherwise.

use std::sync::Arc;

use std::time::Duration;

use ractor::concurrency::oneshot;
use ractor::{ActorCell, ActorRef, RpcReplyPort};
use seekclaw_protocol::limits::{MAX_QUEUED_GUIDANCE, MAX_QUEUED_PROMPTS};
use seekclaw_protocol::{ErrorCode, Mode, ReasoningLevel, SessionId, TurnId, WireError};
use seekclaw_storage::record::log::{Body, Finished, Guidance, ImageRef, Notice, Prompt, Returned};
use seekclaw_storage::record::turn::TurnRow;
use seekclaw_storage::store::Write;

use super::change::Change;
use super::commit::Waiter;
use super::guidance::GuidanceReply;
use super::log::{SessionLog, now};
use super::run::Phase;
use super::{Live, SessionMsg};
use crate::supervision::{answer, tell};
use crate::turn::{SteerAnswer, TurnMsg};

/// Characters of the first prompt that make a title (contract 11).
const TITLE_CHARS: usize = 42;
/// How long a decision about guidance may take: a commit on a busy disk and some more.
const STEER_LIMIT: Duration = Duration::from_secs(20);
/// What somebody hears who guides a turn at its end (contract 2.3).
pub(super) const FINISHING: &str = "The active turn is already finishing";

/// An image on its way in.
#[derive(Clone, Debug)]
pub(crate) struct NewImage {
    pub(crate) image: ImageRef,
    pub(crate) bytes: Vec<u8>,
}

/// A prompt on its way in.
pub(crate) struct NewPrompt {
    pub(crate) text: String,
    pub(crate) images: Vec<NewImage>,
    /// A level that differs is saved to the session first (contract 2.3).
    pub(crate) reasoning: Option<ReasoningLevel>,
    pub(crate) mode: Option<Mode>,
    pub(crate) model: Option<String>,
    /// Client id of a client that said hello.
    pub(crate) client: Option<Arc<str>>,
    /// The connection whose end cancels the turn.
    pub(crate) owner: Option<ActorCell>,
}

/// Guidance on its way in.
#[derive(Debug)]
pub(crate) struct NewGuidance {
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) images: Vec<NewImage>,
}

/// An accepted prompt: stored, and where its events are found.
#[derive(Clone)]
pub(crate) struct Accepted {
    pub(crate) session: ActorRef<SessionMsg>,
    pub(crate) id: SessionId,
    pub(crate) uid: u64,
    pub(crate) turn: TurnId,
    pub(crate) log: Arc<SessionLog>,
    /// The turn's events come after this number.
    pub(crate) after: u64,
}

/// A prompt that waits for its turn.
pub(super) struct Pending {
    pub(super) turn: TurnId,
    pub(super) row: TurnRow,
    /// Stored: may start.
    pub(super) confirmed: bool,
    /// Found after a crash and not to be run: why.
    pub(super) returned: Option<String>,
}

impl Live {
    pub(super) fn prompt(&mut self, prompt: NewPrompt, reply: RpcReplyPort<Result<Accepted, WireError>>) {
        if let Err(refusal) = self.admit() {
            return answer(reply, Err(refusal));
        }
        let turn = TurnId::from_bits(random());
        let ahead = self.queue.len() + usize::from(self.running.is_some());
        let accepted = Box::new(self.accepted(&turn));
        let named = self.row.title.is_empty().then(|| title(&prompt.text));
        let change = Change { title: named, reasoning: prompt.reasoning, ..Change::default() };
        change.apply_to(&mut self.row);
        let row = self.turn_row(&turn, &prompt);
        let mut writes = self.image_writes(&prompt.images);
        writes.push(Write::PutTurn(row.clone()));
        let mut bodies = vec![Body::Prompt(Prompt {
            text: prompt.text,
            images: prompt.images.iter().map(|new| new.image.clone()).collect(),
            client: row.client.clone(),
        })];
        if ahead > 0 {
            let position = u32::try_from(ahead).unwrap_or(u32::MAX);
            bodies.push(Body::Notice(Notice::Status { label: "Queued".to_owned(), position, wait_ms: 0 }));
        }
        self.queue.push_back(Pending { turn: turn.clone(), row, confirmed: false, returned: None });
        self.watch_owner(&turn, prompt.owner);
        self.record(&turn.clone(), bodies, writes, Waiter::Prompt(turn, reply, accepted, change));
    }

    /// One turn runs, a bounded number waits (ruling 8).
    fn admit(&self) -> Result<(), WireError> {
        if self.deleting.is_some() {
            return Err(WireError::new(ErrorCode::NotFound, format!("Session {} not found", self.id)));
        }
        if self.stopping {
            return Err(WireError::new(ErrorCode::ShuttingDown, "The daemon is stopping"));
        }
        let waiting = self.queue.len() - usize::from(self.running.is_none() && !self.queue.is_empty());
        if waiting >= MAX_QUEUED_PROMPTS {
            let text =
                format!("Session {} is busy: {MAX_QUEUED_PROMPTS} messages are already waiting", self.id);
            return Err(WireError::new(ErrorCode::QueueFull, text));
        }
        Ok(())
    }

    fn accepted(&self, turn: &TurnId) -> Accepted {
        Accepted {
            session: self.me.clone(),
            id: self.id.clone(),
            uid: self.row.uid,
            turn: turn.clone(),
            log: Arc::clone(&self.log),
            after: self.log.next_seq() - 1,
        }
    }

    fn turn_row(&self, turn: &TurnId, prompt: &NewPrompt) -> TurnRow {
        let at = now().0;
        TurnRow {
            session: self.row.uid,
            key: self.row.key.clone(),
            turn: turn.as_str().to_owned(),
            prompt_seq: self.log.next_seq(),
            running: false,
            client_owned: prompt.owner.is_some(),
            client: prompt.client.as_deref().unwrap_or_default().to_owned(),
            accepted_at: at,
            touched_at: at,
            deaths: 0,
            mode: prompt.mode.map(|mode| mode.to_string()).unwrap_or_default(),
            model: prompt.model.clone().unwrap_or_default(),
        }
    }

    pub(super) fn image_writes(&self, images: &[NewImage]) -> Vec<Write> {
        let session = self.row.uid;
        let write =
            |new: &NewImage| Write::PutImage { session, id: new.image.id.clone(), bytes: new.bytes.clone() };
        images.iter().map(write).collect()
    }

    /// A turn of a client that said no hello ends with its connection, however that ends (ruling 2).
    fn watch_owner(&mut self, turn: &TurnId, owner: Option<ActorCell>) {
        let Some(owner) = owner else { return };
        let (me, owned) = (self.me.clone(), turn.clone());
        let watch = self.tasks.spawn(async move {
            if owner.wait(None).await.is_err() {
                tracing::debug!("waiting for the end of a connection was cut off");
            }
            tell(&me, SessionMsg::OwnerGone(owned));
        });
        self.owners.insert(turn.clone(), watch);
    }

    /// The prompt is stored: it may start.
    pub(super) fn confirm(&mut self, turn: &TurnId) {
        if let Some(pending) = self.queue.iter_mut().find(|pending| pending.turn == *turn) {
            pending.confirmed = true;
        }
    }

    /// The turn's mailbox decides. While it has none, because it waits or restarts, the session accepts, and
    /// the next actor finds it in the log.
    pub(super) fn steer(&mut self, turn: &TurnId, new: Arc<NewGuidance>, reply: GuidanceReply) {
        let Some(reply) = self.guidance.repeated(&new.id, reply) else { return };
        let Some(running) = self.running.as_mut().filter(|running| running.turn == *turn) else {
            let queued = self.queue.iter().any(|pending| pending.turn == *turn);
            return if queued {
                self.keep_guidance(turn, &new, reply)
            } else {
                answer(reply, Err(no_turn()))
            };
        };
        match &mut running.phase {
            Phase::Up { actor, .. } => {
                let actor = actor.clone();
                self.hand_over(&actor, turn, new, reply);
            }
            Phase::Starting(stash) if stash.len() < MAX_QUEUED_GUIDANCE => stash.push((new, reply)),
            Phase::Starting(_) => answer(reply, Err(full())),
            Phase::Over => answer(reply, Err(WireError::new(ErrorCode::Conflict, FINISHING))),
            Phase::Capturing | Phase::Ended { .. } | Phase::Waiting => self.keep_guidance(turn, &new, reply),
        }
    }

    /// Cast here, so that two of them keep their order; the answer comes when the turn has decided.
    fn hand_over(
        &mut self,
        actor: &ActorRef<TurnMsg>,
        turn: &TurnId,
        new: Arc<NewGuidance>,
        reply: GuidanceReply,
    ) {
        let (port, decided) = oneshot();
        tell(actor, TurnMsg::Steer(Arc::clone(&new), RpcReplyPort::from(port)));
        let (me, turn) = (self.me.clone(), turn.clone());
        self.tasks.spawn(async move {
            match tokio::time::timeout(STEER_LIMIT, decided).await {
                Ok(Ok(decision)) => answer(reply, steered(decision)),
                // The turn ended before it decided: whoever serves now decides, once for each id.
                Ok(Err(_)) => tell(&me, SessionMsg::Steer(turn, new, reply)),
                Err(_) => answer(reply, Err(undecided())),
            }
        });
    }

    /// Stores guidance that no turn can decide about yet; the turn will find it in the log.
    fn keep_guidance(&mut self, turn: &TurnId, new: &NewGuidance, reply: GuidanceReply) {
        if self.guidance.open(turn) >= MAX_QUEUED_GUIDANCE {
            return answer(reply, Err(full()));
        }
        let (body, images) = (Body::Guidance(new.record()), self.image_writes(&new.images));
        self.record(turn, vec![body], images, Waiter::Guidance(reply));
    }

    /// Ends a prompt that has not started: it never enters the history (ruling 8).
    pub(super) fn return_prompt(&mut self, turn: &TurnId, unanswered: bool, reason: &str) {
        self.queue.retain(|pending| pending.turn != *turn);
        let finished = if unanswered {
            let message = format!("Not answered: {reason}");
            let code = ErrorCode::TurnFailed.as_str().to_owned();
            Finished::Failed { code, message, retry_after_ms: 0 }
        } else {
            Finished::Cancelled { text: String::new() }
        };
        let mut bodies = vec![Body::Returned(Returned { unanswered, reason: reason.to_owned() })];
        bodies.extend(self.guidance.leftover(turn));
        bodies.push(Body::Finished(finished));
        let settle = self.end_of(turn);
        self.record(turn, bodies, vec![settle], Waiter::Nobody);
    }
}

impl NewGuidance {
    /// The record of it.
    pub(crate) fn record(&self) -> Guidance {
        let images = self.images.iter().map(|image| image.image.clone()).collect();
        Guidance { id: self.id.clone(), text: self.text.clone(), images }
    }
}

/// What the turn decided.
fn steered(decision: SteerAnswer) -> Result<(), WireError> {
    match decision {
        SteerAnswer::Queued => Ok(()),
        SteerAnswer::Finishing => Err(WireError::new(ErrorCode::Conflict, FINISHING)),
        SteerAnswer::Full => Err(full()),
        SteerAnswer::Failed(failure) => Err(WireError::new(failure.code, failure.message)),
    }
}

fn full() -> WireError {
    WireError::new(ErrorCode::QueueFull, "The guidance queue is full")
}

fn undecided() -> WireError {
    WireError::new(ErrorCode::Timeout, "The turn did not say in time whether it takes the guidance")
}

/// Nothing to steer (contract 2.3).
pub(crate) fn no_turn() -> WireError {
    WireError::new(ErrorCode::NotFound, "No active turn found for this session")
}

/// The first prompt names the session (contract 11).
fn title(text: &str) -> String {
    let line = text.trim();
    let mut title: String = line.chars().take(TITLE_CHARS).collect();
    if line.chars().count() > TITLE_CHARS {
        title.push('…');
    }
    title
}

/// 64 random bits; the clock stands in for a system without randomness.
pub(crate) fn random() -> u64 {
    let clock = || chrono::Utc::now().timestamp_nanos_opt().unwrap_or_default().unsigned_abs();
    getrandom::u64().unwrap_or_else(|_| clock())
}
