//! The Session actor: one live session, with its log, its queue of prompts and its running turn.
//!
//! It alone appends to the log and asks for commits, one at a time, so that everything waiting shares the
//! next one. It tells nobody anything that is not stored. It supervises the turn: restarts after 250 ms,
//! 1 s and 5 s, then closes it. It is started by Sessions, and again when it fails.

mod change;
mod commit;
mod guidance;
mod load;
pub(crate) mod log;
mod prompt;
pub(crate) mod record;
pub(crate) mod replay;
mod restart;
mod run;

use std::collections::VecDeque;
use std::sync::Arc;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use seekclaw_protocol::{SessionId, TurnId, WireError};
use seekclaw_storage::record::log::Body;
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::store::WriteError;

use crate::services::Services;
use crate::supervision::{Tasks, answer};
use crate::tools::{Survivor, bash};
use crate::turn::state::Totals;
use crate::turn::{Capture, TurnFailure, TurnMsg};
use log::LogOwner;

pub(crate) use change::Change;
pub(crate) use commit::storage_error;
pub(crate) use guidance::applied;
#[cfg(test)]
pub(crate) use prompt::no_turn;
pub(crate) use prompt::{Accepted, NewGuidance, NewImage, NewPrompt, random};
pub(crate) use run::TurnInfo;

/// What a live session is asked for.
pub(crate) enum SessionMsg {
    /// The row and the open turns have been read.
    Loaded(Result<Box<load::Loaded>, WireError>),
    /// A new prompt; answered once it is stored.
    Prompt(Box<NewPrompt>, RpcReplyPort<Result<Accepted, WireError>>),
    /// Guidance for a turn; answered once it is stored or refused.
    Steer(TurnId, Arc<NewGuidance>, RpcReplyPort<Result<(), WireError>>),
    /// End a turn, running or queued; answers whether there was one.
    Cancel(TurnId, RpcReplyPort<bool>),
    /// The turn wants this to be durable.
    Commit(Commit, ActorRef<TurnMsg>),
    /// The commit in flight has ended.
    Stored(Result<(), WriteError>),
    /// What the next turn will work with is known.
    Captured(TurnId, Result<Arc<Capture>, TurnFailure>),
    /// The actor of a turn has ended, and all it had said before has been heard.
    TurnEnded(ActorId, TurnFailure),
    /// The wait before a restart is over.
    Restart(u64),
    /// Try again to store what a failed commit left behind.
    StoreAgain,
    /// The connection that owns a turn has gone.
    OwnerGone(TurnId),
    /// Change the session's own fields.
    Change(Change, RpcReplyPort<Result<SessionRow, WireError>>),
    /// Keep only so many messages; answers how many are left.
    Truncate(u64, RpcReplyPort<Result<u64, WireError>>),
    /// Remove the session and all that belongs to it.
    Delete(RpcReplyPort<Result<(), WireError>>),
    /// End all turns and answer when that is done.
    Drain(RpcReplyPort<()>),
    /// A command of a turn left these processes behind.
    Survived(TurnId, Vec<Survivor>),
    /// Which turns are open.
    Turns(RpcReplyPort<Vec<TurnInfo>>),
}

/// Records that a turn wants to be durable.
pub(crate) struct Commit {
    pub(crate) fence: u64,
    pub(crate) turn: TurnId,
    pub(crate) bodies: Vec<Body>,
    pub(crate) ticket: u64,
    /// With the records that end the turn: what it used.
    pub(crate) totals: Option<Totals>,
    /// Guidance whose images belong to the records.
    pub(crate) guidance: Option<Arc<NewGuidance>>,
}

/// What a session is started with.
pub(crate) struct SessionArgs {
    pub(crate) key: SessionKey,
    pub(crate) id: SessionId,
    pub(crate) services: Services,
}

/// The actor.
pub(crate) struct Session;

/// Before and after the row is known.
#[expect(clippy::large_enum_variant, reason = "one per actor, and live for nearly all of its life")]
pub(crate) enum State {
    Loading { args: SessionArgs, stash: VecDeque<SessionMsg>, tasks: Tasks },
    Live(Live),
    Missing(WireError),
}

/// A loaded session.
pub(crate) struct Live {
    me: ActorRef<SessionMsg>,
    id: SessionId,
    row: SessionRow,
    stored_row: SessionRow,
    log: LogOwner,
    queue: VecDeque<prompt::Pending>,
    running: Option<run::Running>,
    guidance: guidance::GuidanceBook,
    /// Processes that commands left behind, with the turn that started them (ruling 18).
    survivors: Vec<(TurnId, Survivor)>,
    owners: run::OwnerWatches,
    fence: u64,
    commits: commit::Pipeline,
    deleting: Option<RpcReplyPort<Result<(), WireError>>>,
    draining: Vec<RpcReplyPort<()>>,
    /// The daemon stops: no new prompts.
    stopping: bool,
    tasks: Tasks,
    services: Services,
}

impl Actor for Session {
    type Msg = SessionMsg;
    type State = State;
    type Arguments = SessionArgs;

    async fn pre_start(
        &self,
        me: ActorRef<SessionMsg>,
        args: SessionArgs,
    ) -> Result<State, ActorProcessingErr> {
        let mut tasks = Tasks::default();
        let job = load::job(&args);
        tasks.spawn(async move { crate::supervision::tell(&me, SessionMsg::Loaded(job.await)) });
        Ok(State::Loading { args, stash: VecDeque::new(), tasks })
    }

    async fn handle(
        &self,
        me: ActorRef<SessionMsg>,
        message: SessionMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match state {
            State::Loading { .. } => load::receive(&me, message, state),
            State::Live(live) => live.receive(message),
            State::Missing(error) => refuse(message, error),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<SessionMsg>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        if let State::Live(live) = state {
            live.turn_event(event);
        }
        Ok(())
    }

    async fn post_stop(&self, me: ActorRef<SessionMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        crate::supervision::stop_in_order(me.get_children(), "session stops", run::STOP_BUDGET).await;
        match state {
            State::Loading { tasks, .. } => tasks.shutdown().await,
            State::Live(live) => {
                live.tasks.shutdown().await;
                bash::end_survivors(live.survivors.drain(..).map(|(_, left)| left).collect()).await;
            }
            State::Missing(_) => {}
        }
        Ok(())
    }
}

impl Live {
    fn receive(&mut self, message: SessionMsg) {
        match message {
            SessionMsg::Loaded(_) => {}
            SessionMsg::Prompt(prompt, reply) => self.prompt(*prompt, reply),
            SessionMsg::Steer(turn, guidance, reply) => self.steer(&turn, guidance, reply),
            SessionMsg::Cancel(turn, reply) => answer(reply, self.cancel(&turn)),
            SessionMsg::Commit(commit, from) => self.commit(commit, from),
            SessionMsg::Stored(result) => self.stored(result),
            SessionMsg::Captured(turn, capture) => self.captured(&turn, capture),
            SessionMsg::TurnEnded(id, failure) => self.turn_ended(id, failure),
            SessionMsg::Restart(fence) => self.restart(fence),
            SessionMsg::StoreAgain => self.store_again(),
            SessionMsg::OwnerGone(turn) => self.owner_gone(&turn),
            SessionMsg::Change(change, reply) => self.change(change, reply),
            SessionMsg::Truncate(keep, reply) => self.truncate(keep, reply),
            SessionMsg::Delete(reply) => self.delete(reply),
            SessionMsg::Drain(reply) => self.drain(reply),
            SessionMsg::Survived(turn, left) => self.survived(&turn, left),
            SessionMsg::Turns(reply) => answer(reply, self.turns()),
        }
    }
}

/// Answers everything that a session that does not exist is asked.
fn refuse(message: SessionMsg, error: &WireError) {
    match message {
        SessionMsg::Prompt(_, reply) => answer(reply, Err(error.clone())),
        SessionMsg::Steer(_, _, reply) => answer(reply, Err(error.clone())),
        SessionMsg::Cancel(_, reply) => answer(reply, false),
        SessionMsg::Change(_, reply) => answer(reply, Err(error.clone())),
        SessionMsg::Truncate(_, reply) => answer(reply, Err(error.clone())),
        SessionMsg::Delete(reply) => answer(reply, Err(error.clone())),
        SessionMsg::Drain(reply) => answer(reply, ()),
        SessionMsg::Turns(reply) => answer(reply, Vec::new()),
        SessionMsg::Loaded(_)
        | SessionMsg::Commit(..)
        | SessionMsg::Stored(_)
        | SessionMsg::Captured(..)
        | SessionMsg::TurnEnded(..)
        | SessionMsg::Restart(_)
        | SessionMsg::StoreAgain
        | SessionMsg::Survived(..)
        | SessionMsg::OwnerGone(_) => {}
    }
}

#[cfg(test)]
mod tests;
