//! The turns that a connection started: what `agent.cancel` and `agent.steer` can reach from it, and, after
//! a hello, those of everybody else (extensions 4).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ractor::concurrency::oneshot;
use ractor::{ActorRef, RpcReplyPort};
use seekclaw_protocol::chat::{
    CancelParams, GUIDANCE_QUEUED, NO_ACTIVE_TURN, SteerParams, cancel_requested, cancel_requested_for_all,
    no_turn_to_steer,
};
use seekclaw_protocol::{ErrorCode, RequestId, TurnId, WireError, jsonl};

use crate::dispatch::chat::new_images;
use crate::services::Services;
use crate::session::{Accepted, NewGuidance, SessionMsg};
use crate::sessions::SessionsMsg;
use crate::supervision::tell;

/// How long a session may take to answer about a turn: it only waits for a commit.
const ASK_LIMIT: Duration = Duration::from_secs(25);

/// A `chat` on its way into a session, shared with the lane that carries it.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) number: u64,
    cancelled: Arc<AtomicBool>,
}

impl Token {
    /// Whether it was cancelled before it got anywhere.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }
}

struct OwnTurn {
    request: RequestId,
    token: Token,
    accepted: Option<Accepted>,
}

/// Turns of this connection, oldest first.
#[derive(Default)]
pub(super) struct OwnTurns {
    turns: BTreeMap<u64, OwnTurn>,
    next: u64,
}

/// How `agent.steer` went, with the session that its answer names.
pub(super) struct Steered {
    result: Result<(), WireError>,
    session: Option<String>,
}

impl Steered {
    /// The answer line.
    pub(super) fn line(&self, id: RequestId) -> Bytes {
        match (&self.result, &self.session) {
            (Ok(()), Some(session)) => jsonl::answer_in_session(id, "result", GUIDANCE_QUEUED, session),
            (Ok(()), None) => jsonl::answer(id, "result", GUIDANCE_QUEUED),
            (Err(error), session) => jsonl::error(id, error, session.as_deref()),
        }
    }
}

type Later<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl OwnTurns {
    /// Notes a `chat` at its arrival, so that a cancel right behind it finds it.
    pub(super) fn begin(&mut self, request: RequestId) -> Token {
        self.next += 1;
        let token = Token { number: self.next, cancelled: Arc::default() };
        self.turns.insert(self.next, OwnTurn { request, token: token.clone(), accepted: None });
        token
    }

    pub(super) fn accepted(&mut self, token: u64, accepted: Accepted) {
        let Some(own) = self.turns.get_mut(&token) else { return };
        if own.token.is_cancelled() {
            cancel_turn(&accepted.session, accepted.turn.clone());
        }
        own.accepted = Some(accepted);
    }

    pub(super) fn over(&mut self, token: u64) {
        self.turns.remove(&token);
    }

    /// Cancels; the text of the answer comes when it is known.
    pub(super) fn cancel(&mut self, params: CancelParams, abroad: Option<Services>) -> Later<String> {
        let named = params.turn_id.is_some() || params.session_id.is_some();
        if let (true, Some(services)) = (named, &abroad) {
            return Box::pin(cancel_abroad(services.clone(), params));
        }
        let mine = self.turns.values().filter(|own| params.request_id.is_none_or(|id| own.request == id));
        let count = mine.map(cancel_own).count();
        let text = match params.request_id {
            Some(request) if count > 0 => cancel_requested(request),
            Some(_) => NO_ACTIVE_TURN.to_owned(),
            None => cancel_requested_for_all(count),
        };
        Box::pin(async move { text })
    }

    /// Cancels all of them: their client has gone.
    pub(super) fn cancel_all(&self) {
        self.turns.values().for_each(cancel_own);
    }

    /// Whether none is open.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Hands guidance over at once, so that two of them keep their order; the answer comes later.
    pub(super) fn steer(&mut self, params: SteerParams, abroad: Option<Services>) -> Later<Steered> {
        let mut targets = self.steer_targets(&params).into_iter();
        match (targets.next(), abroad) {
            (Some(first), _) => {
                let guidance = guidance(params);
                let answered = hand_over(&first, Arc::clone(&guidance));
                Box::pin(steer_first_open(answered, first, targets, guidance))
            }
            (None, Some(services)) => Box::pin(steer_abroad(services, params)),
            (None, None) => {
                let session = params.session_id;
                Box::pin(async move { Steered { result: Err(no_turn_to_steer()), session } })
            }
        }
    }

    /// Turns that are meant, oldest first: of a session that is the one that runs, the others wait.
    fn steer_targets(&self, params: &SteerParams) -> Vec<Target> {
        let fits =
            |own: &&OwnTurn| match (&own.accepted, params.request_id, &params.turn_id, &params.session_id) {
                (Some(_), Some(request), ..) => own.request == request,
                (Some(accepted), None, Some(turn), _) => accepted.turn == *turn,
                (Some(accepted), None, None, Some(session)) => {
                    accepted.id.as_str().eq_ignore_ascii_case(session)
                }
                (None, ..) | (Some(_), None, None, None) => false,
            };
        let accepted = self.turns.values().filter(fits).filter_map(|own| own.accepted.as_ref());
        let target = |accepted: &Accepted| Target {
            session: accepted.session.clone(),
            name: accepted.id.to_string(),
            turn: accepted.turn.clone(),
        };
        accepted.map(target).collect()
    }
}

/// A turn that guidance may be meant for.
struct Target {
    session: ActorRef<SessionMsg>,
    name: String,
    turn: TurnId,
}

/// Goes on to the next turn where one has ended meanwhile.
async fn steer_first_open(
    mut answered: Later<Result<(), WireError>>,
    mut target: Target,
    mut others: std::vec::IntoIter<Target>,
    guidance: Arc<NewGuidance>,
) -> Steered {
    loop {
        let result = answered.await;
        let ended = matches!(&result, Err(error) if error.code == ErrorCode::NotFound);
        match others.next() {
            Some(next) if ended => {
                answered = hand_over(&next, Arc::clone(&guidance));
                target = next;
            }
            Some(_) | None => return Steered { result, session: Some(target.name) },
        }
    }
}

fn cancel_own(own: &OwnTurn) {
    own.token.cancelled.store(true, Ordering::Release);
    if let Some(accepted) = &own.accepted {
        cancel_turn(&accepted.session, accepted.turn.clone());
    }
}

fn cancel_turn(session: &ActorRef<SessionMsg>, turn: TurnId) {
    let (port, _) = oneshot();
    tell(session, SessionMsg::Cancel(turn, RpcReplyPort::from(port)));
}

fn guidance(params: SteerParams) -> Arc<NewGuidance> {
    Arc::new(NewGuidance {
        id: format!("{:016x}", crate::session::random()),
        text: params.message,
        images: new_images(params.images),
    })
}

/// Casts now, answers later.
fn hand_over(target: &Target, guidance: Arc<NewGuidance>) -> Later<Result<(), WireError>> {
    let (port, answered) = oneshot();
    tell(&target.session, SessionMsg::Steer(target.turn.clone(), guidance, RpcReplyPort::from(port)));
    Box::pin(async move {
        match tokio::time::timeout(ASK_LIMIT, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => {
                let text = "The session was interrupted, and whether it took the guidance is uncertain";
                Err(WireError::new(ErrorCode::Uncertain, text))
            }
            Err(_) => {
                Err(WireError::new(ErrorCode::Timeout, "The session did not take the guidance in time"))
            }
        }
    })
}

/// An open turn of any connection.
struct Found {
    target: Target,
    running: bool,
}

async fn find(services: &Services, session: Option<&str>, turn: Option<&TurnId>) -> Vec<Found> {
    let live = services.sessions.ask(SessionsMsg::Live, ASK_LIMIT).await.unwrap_or_default();
    let mut found = Vec::new();
    for (key, actor) in live {
        if session.is_some_and(|wanted| !key.id.eq_ignore_ascii_case(wanted)) {
            continue;
        }
        let Ok(ractor::rpc::CallResult::Success(turns)) =
            actor.call(SessionMsg::Turns, Some(ASK_LIMIT)).await
        else {
            continue;
        };
        let wanted = turns.into_iter().filter(|info| turn.is_none_or(|id| info.turn == *id));
        found.extend(wanted.map(|info| Found {
            target: Target { session: actor.clone(), name: key.id.clone(), turn: info.turn },
            running: info.running,
        }));
    }
    found
}

async fn cancel_abroad(services: Services, params: CancelParams) -> String {
    let found = find(&services, params.session_id.as_deref(), params.turn_id.as_ref()).await;
    for Found { target, .. } in &found {
        cancel_turn(&target.session, target.turn.clone());
    }
    cancel_requested_for_all(found.len())
}

async fn steer_abroad(services: Services, params: SteerParams) -> Steered {
    if params.session_id.is_none() && params.turn_id.is_none() {
        return Steered { result: Err(no_turn_to_steer()), session: None };
    }
    let mut found = find(&services, params.session_id.as_deref(), params.turn_id.as_ref()).await;
    found.sort_by_key(|turn| !turn.running);
    match found.into_iter().next() {
        Some(Found { target, .. }) => {
            let result = hand_over(&target, guidance(params)).await;
            Steered { result, session: Some(target.name) }
        }
        None => Steered { result: Err(no_turn_to_steer()), session: params.session_id },
    }
}
