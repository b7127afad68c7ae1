//! Opening a session: its row and its open turns, and what becomes of turns that a crash left open.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use seekclaw_protocol::{ErrorCode, TurnId, WireError};
use seekclaw_storage::record::log::{Body, Entry};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::record::turn::TurnRow;
use seekclaw_storage::store::{ReadError, Reader};

use tokio_util::sync::CancellationToken;

use super::commit::Pipeline;
use super::guidance::GuidanceBook;
use super::log::{LogOwner, SessionLog, now};
use super::prompt::Pending;
use super::run::Running;
use super::{Live, SessionArgs, SessionMsg, State, refuse};
use crate::supervision::Tasks;
use crate::turn::{Order, TurnFailure};

/// Messages kept while the row is read; senders hold permits, so more is a defect.
const MAX_STASH: usize = 1024;
/// A turn interrupted longer ago than this is closed (extensions 6).
const RECENT: Duration = Duration::from_mins(10);
/// Deaths of the daemon after which a turn is closed (ruling 10).
const MAX_DEATHS: u32 = 3;

/// How long commands of an earlier daemon may take to end; they are killed long before.
const ORPHANS_LIMIT: Duration = Duration::from_secs(10);

/// What the store has.
#[derive(Debug)]
pub(crate) struct Loaded {
    row: SessionRow,
    open: Vec<TurnRow>,
    /// What the log says about guidance of the open turns.
    guidance: Vec<Entry>,
}

/// What becomes of a turn that was found open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Resume,
    Close,
}

/// Reads the row and the open turns of the session, as its last incarnation left them.
pub(super) fn job(
    args: &SessionArgs,
) -> impl Future<Output = Result<Box<Loaded>, WireError>> + Send + 'static {
    let (store, key) = (args.services.store.clone(), args.key.clone());
    let orphans_gone = args.services.orphans_gone.clone();
    async move {
        let missing = WireError::new(ErrorCode::NotFound, format!("Session not found: {}", key.id));
        store.settled().await;
        let reader = store.reader().clone();
        match tokio::task::spawn_blocking(move || read(&reader, &key)).await {
            Ok(Ok(found)) => {
                if found.as_ref().is_some_and(|loaded| !loaded.open.is_empty()) {
                    wait_for_orphans(&orphans_gone).await;
                }
                found.map(Box::new).ok_or(missing)
            }
            Ok(Err(error)) => Err(unreadable(&error)),
            Err(error) => Err(unreadable(&error)),
        }
    }
}

/// A command of the open turn may still be running: the turn must not go on beside it.
async fn wait_for_orphans(gone: &CancellationToken) {
    if tokio::time::timeout(ORPHANS_LIMIT, gone.cancelled()).await.is_err() {
        tracing::error!("commands of an earlier daemon cannot be ended: its turns go on all the same");
    }
}

fn read(reader: &Reader, key: &SessionKey) -> Result<Option<Loaded>, ReadError> {
    let Some(row) = reader.session(key)? else { return Ok(None) };
    let mut open = reader.open_turns()?;
    open.retain(|turn| turn.session == row.uid);
    open.sort_by_key(|turn| turn.prompt_seq);
    let mut guidance = Vec::new();
    if let Some(first) = open.first() {
        reader.log(row.uid, first.prompt_seq, &mut |entry| {
            let of_open = open.iter().any(|turn| turn.turn == entry.turn);
            if of_open && matches!(entry.body, Body::Guidance(_) | Body::Applied(_)) {
                guidance.push(entry);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(Some(Loaded { row, open, guidance }))
}

fn unreadable(error: &dyn std::error::Error) -> WireError {
    WireError::new(ErrorCode::StorageCorrupt, format!("Cannot read the session: {error}"))
}

/// Keeps what arrives before the row is known, then goes on with it.
pub(super) fn receive(me: &ActorRef<SessionMsg>, message: SessionMsg, state: &mut State) {
    let State::Loading { stash, .. } = state else { return };
    let SessionMsg::Loaded(result) = message else {
        if stash.len() < MAX_STASH {
            stash.push_back(message);
        } else {
            refuse(message, &WireError::new(ErrorCode::Overloaded, "The session is still being opened"));
        }
        return;
    };
    let stash = std::mem::take(stash);
    *state = match (std::mem::replace(state, State::Missing(closed())), result) {
        (State::Loading { args, tasks, .. }, Ok(loaded)) => State::Live(live(me, args, *loaded, tasks)),
        (_, Err(error)) => missing(me, error),
        (other, Ok(_)) => other,
    };
    stash.into_iter().for_each(|message| match state {
        State::Live(live) => live.receive(message),
        State::Missing(error) => refuse(message, error),
        State::Loading { .. } => {}
    });
}

fn missing(me: &ActorRef<SessionMsg>, error: WireError) -> State {
    me.stop(Some("no such session".to_owned()));
    State::Missing(error)
}

fn closed() -> WireError {
    WireError::new(ErrorCode::Internal, "The session is being opened")
}

fn live(me: &ActorRef<SessionMsg>, args: SessionArgs, loaded: Loaded, tasks: Tasks) -> Live {
    let Loaded { row, open, guidance } = loaded;
    let log = SessionLog::new(args.id.clone(), row.generation + 1, row.seq_reserved.max(1));
    let mut live = Live {
        me: me.clone(),
        id: args.id,
        stored_row: row.clone(),
        row,
        log: LogOwner(Arc::new(log)),
        queue: VecDeque::new(),
        running: None,
        guidance: GuidanceBook::found(&guidance),
        owners: HashMap::new(),
        survivors: Vec::new(),
        fence: 0,
        commits: Pipeline::default(),
        deleting: None,
        draining: Vec::new(),
        stopping: false,
        tasks,
        services: args.services,
    };
    live.recover(open);
    live
}

impl Live {
    /// Settles what a crash left open: nothing stays "running" (extensions 6, ruling 31).
    fn recover(&mut self, open: Vec<TurnRow>) {
        let policy = self.services.config.current().config.agent.resume_turns.clone();
        let last_sign = self.row.updated_at;
        for row in open {
            let fate = fate(&row, last_sign, &policy, now().0);
            tracing::info!(session = %self.id, turn = %row.turn, ?fate, "a turn was found open");
            if row.running && self.running.is_none() {
                self.recover_running(row, fate);
            } else {
                self.recover_queued(row, fate);
            }
        }
        self.start_next();
    }

    fn recover_running(&mut self, row: TurnRow, fate: Fate) {
        let (order, reason) = match fate {
            Fate::Resume => (Order::Run, "The daemon was restarted; the turn goes on."),
            Fate::Close => {
                let message = "The daemon was restarted and this turn was not resumed.".to_owned();
                let failure = TurnFailure { code: ErrorCode::TurnFailed, message };
                (Order::Close { failure, marked: true }, "The daemon was restarted; the turn was closed.")
            }
        };
        self.run(Running::recovered(row, order, reason.to_owned()));
    }

    fn recover_queued(&mut self, row: TurnRow, fate: Fate) {
        let returned =
            (fate == Fate::Close).then(|| "the daemon was restarted before its turn came".to_owned());
        self.queue.push_back(Pending { turn: TurnId::from_text(&row.turn), row, confirmed: true, returned });
    }
}

/// Decides by owner, policy, age and history of crashes.
fn fate(row: &TurnRow, last_sign: i64, policy: &str, now: i64) -> Fate {
    let age = now.saturating_sub(last_sign.max(row.touched_at));
    let recent = age < i64::try_from(RECENT.as_millis()).unwrap_or(i64::MAX);
    let wanted = match policy {
        "always" => true,
        "never" => false,
        _ => recent,
    };
    let crashes = row.running && row.deaths + 1 >= MAX_DEATHS;
    if wanted && !row.client_owned && !crashes { Fate::Resume } else { Fate::Close }
}

#[cfg(test)]
mod tests;
