//! The Config actor: the one owner of `config.json` and of the daemon's current workspace.
//! Everyone may hold a [`ConfigHandle`]: readers take the published [`Settings`] and never wait for anyone.
//! It promises that changes apply whole, one after another in order of arrival, and only to a file it can read.
//! It holds nothing itself: the desk lives in the handle, so its supervisor starts it again and nothing is lost.

mod desk;
mod handle;
mod settings;

use std::collections::VecDeque;
use std::time::Duration;

use ractor::{Actor, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::OwnedSemaphorePermit;

use crate::supervision::{Tasks, tell};

pub use desk::LastGood;
pub use handle::{ConfigHandle, Start};
pub use settings::{OwnConfig, Settings};

use desk::Desk;

/// How often a file that does not parse is looked at again; only then does the actor wake up by itself.
/// Ruling 41 allows 10 s.
const LOOK_AGAIN: Duration = Duration::from_secs(4);

type Work = Box<dyn FnOnce(&mut Desk) + Send>;

/// Something to do with the files of the configuration; it answers its caller itself.
pub struct Job {
    work: Work,
    /// Keeps the queue bounded; comes back when the work is done.
    permit: Option<OwnedSemaphorePermit>,
}

/// What the Config actor is told.
pub enum ConfigMsg {
    /// Do this when it is its turn.
    Do(Job),
    /// What was being done has ended.
    Ended,
    /// A file that did not parse may have been repaired.
    Look,
}

/// The Config actor; its arguments are the handle that everyone else has, too.
#[derive(Debug)]
pub struct Config;

/// Work that waits, and what is under way.
pub struct State {
    desk: ConfigHandle,
    waiting: VecDeque<Job>,
    busy: bool,
    tasks: Tasks,
    look: Option<tokio::task::AbortHandle>,
}

impl Actor for Config {
    type Msg = ConfigMsg;
    type State = State;
    type Arguments = ConfigHandle;

    async fn pre_start(
        &self,
        myself: ActorRef<ConfigMsg>,
        desk: ConfigHandle,
    ) -> Result<State, ActorProcessingErr> {
        desk.serve(&myself);
        let (waiting, tasks) = (VecDeque::new(), Tasks::default());
        let mut state = State { desk, waiting, busy: false, tasks, look: None };
        watch_broken(&myself, &mut state);
        Ok(state)
    }

    async fn handle(
        &self,
        myself: ActorRef<ConfigMsg>,
        message: ConfigMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ConfigMsg::Do(job) => enqueue(&myself, state, job),
            ConfigMsg::Ended => ended(&myself, state),
            ConfigMsg::Look => look(&myself, state),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<ConfigMsg>,
        _: SupervisionEvent,
        _: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ConfigMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        if let Some(look) = state.look.take() {
            look.abort();
        }
        state.waiting.clear();
        state.tasks.shutdown().await;
        Ok(())
    }
}

fn enqueue(myself: &ActorRef<ConfigMsg>, state: &mut State, job: Job) {
    state.waiting.push_back(job);
    start_next(myself, state);
}

fn ended(myself: &ActorRef<ConfigMsg>, state: &mut State) {
    state.busy = false;
    watch_broken(myself, state);
    start_next(myself, state);
}

fn look(myself: &ActorRef<ConfigMsg>, state: &mut State) {
    state.look = None;
    if state.desk.current().broken.is_some() {
        let work: Work = Box::new(|desk| drop(desk.refresh()));
        enqueue(myself, state, Job { work, permit: None });
    }
}

fn start_next(myself: &ActorRef<ConfigMsg>, state: &mut State) {
    if state.busy {
        return;
    }
    let Some(Job { work, permit }) = state.waiting.pop_front() else { return };
    state.busy = true;
    let (desk, myself) = (state.desk.clone(), myself.clone());
    state.tasks.spawn(async move {
        let done = tokio::task::spawn_blocking(move || desk.at_desk(work)).await;
        if let Err(error) = done {
            tracing::error!(%error, "work on the configuration failed");
        }
        drop(permit);
        tell(&myself, ConfigMsg::Ended);
    });
}

fn watch_broken(myself: &ActorRef<ConfigMsg>, state: &mut State) {
    if state.look.is_none() && state.desk.current().broken.is_some() {
        state.look = Some(myself.send_after(LOOK_AGAIN, || ConfigMsg::Look).abort_handle());
    }
}

#[cfg(test)]
pub(crate) mod kit;
#[cfg(test)]
mod tests;
