//! What every actor of the tree shares: the one restart policy, tasks that end with their owner, and
//! sends that never fail silently.

use std::future::Future;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{ActorCell, ActorRef, Message, MessagingErr, RpcReplyPort};
use tokio::task::{AbortHandle, JoinSet};

/// Waits before the first, second and third restart of a failed child.
pub const RESTART_DELAYS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(5)];

/// A child that lived this long without failing starts afresh.
pub const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// What to do about a failed child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Start it again after `delay`; this is restart number `attempt`, from 1.
    Restart {
        /// How long to wait.
        delay: Duration,
        /// Which restart this is.
        attempt: u32,
    },
    /// The last restart failed too.
    GiveUp,
}

/// The one restart policy (architecture, rule 2): 250 ms, 1 s, 5 s, then give up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    failures: usize,
}

impl Backoff {
    /// Counts a failure of a child that had been up for `uptime` and decides.
    pub fn failed(&mut self, uptime: Duration) -> Verdict {
        if uptime >= HEALTHY_AFTER {
            self.failures = 0;
        }
        let Some(delay) = RESTART_DELAYS.get(self.failures).copied() else { return Verdict::GiveUp };
        self.failures += 1;
        Verdict::Restart { delay, attempt: u32::try_from(self.failures).unwrap_or(u32::MAX) }
    }

    /// Forgets all failures: the child made real progress.
    pub fn progressed(&mut self) {
        self.failures = 0;
    }
}

/// Sends `message`; an actor that has ended is no failure of the sender, so it is only logged.
pub fn tell<M: Message>(actor: &ActorRef<M>, message: M) {
    if actor.cast(message).is_err() {
        tracing::debug!(actor = ?actor.get_id(), message = std::any::type_name::<M>(), "not delivered: actor has ended");
    }
}

/// Answers `reply`; a caller that has gone is only logged.
pub fn answer<T: Send + 'static>(reply: RpcReplyPort<T>, value: T) {
    if reply.send(value).is_err() {
        tracing::debug!(value = std::any::type_name::<T>(), "not answered: caller has gone");
    }
}

/// Tasks that end with their owner: aborted when dropped, and awaited by `shutdown` in `post_stop`.
#[derive(Debug, Default)]
pub struct Tasks(JoinSet<()>);

impl Tasks {
    /// Starts `task` on the runtime, owned by `self`.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        while self.0.try_join_next().is_some() {}
        self.0.spawn(task)
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is running.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Aborts all and waits until they are gone.
    pub async fn shutdown(&mut self) {
        self.0.shutdown().await;
    }
}

/// Where a service of the tree is reached: re-pointed by its supervisor after a restart, so that holders
/// of a slot never keep a dead reference.
pub struct Slot<M>(Arc<RwLock<Option<ActorRef<M>>>>);

impl<M> Clone for Slot<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M> std::fmt::Debug for Slot<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

impl<M> Default for Slot<M> {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(None)))
    }
}

impl<M: Message> Slot<M> {
    /// Points the slot at `actor`.
    pub fn point(&self, actor: Option<ActorRef<M>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = actor;
    }

    /// The actor that serves now, if any.
    #[must_use]
    pub fn get(&self) -> Option<ActorRef<M>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends `message`, or gives it back when nobody serves.
    ///
    /// # Errors
    /// The message, when there is no living actor.
    pub fn send(&self, message: M) -> Result<(), M> {
        let Some(actor) = self.get() else { return Err(message) };
        match actor.cast(message) {
            Ok(()) => Ok(()),
            Err(MessagingErr::SendErr(message)) => Err(message),
            Err(MessagingErr::ChannelClosed | MessagingErr::InvalidActorType) => Ok(()),
        }
    }

    /// Asks with a limit; `None` when nobody serves, the actor ends first, or the time is over.
    pub async fn ask<T: Send + 'static>(
        &self,
        message: impl FnOnce(RpcReplyPort<T>) -> M,
        limit: Duration,
    ) -> Option<T> {
        let actor = self.get()?;
        match actor.call(message, Some(limit)).await {
            Ok(CallResult::Success(value)) => Some(value),
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => None,
        }
    }
}

/// Stops `children` of an actor in the order given, each gently within `budget`, then by force.
pub async fn stop_in_order(children: Vec<ActorCell>, why: &str, budget: Duration) {
    for child in children {
        child.stop(Some(why.to_owned()));
        if tokio::time::timeout(budget, child.wait(None)).await.is_err() {
            tracing::warn!(actor = ?child.get_id(), name = ?child.get_name(), "did not stop in time: killed");
            child.kill();
        }
    }
}

/// Stops `children` that do not depend on each other all at once, gently within `budget`, then by force.
pub async fn stop_together(children: Vec<ActorCell>, why: &str, budget: Duration) {
    let stopping = children.into_iter().map(|child| stop_in_order(vec![child], why, budget));
    futures_util::future::join_all(stopping).await;
}

/// Starts a task whose owner keeps the handle and ends it: for the one task of an actor that outlives the
/// others, because it flushes what they left.
pub fn attached(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    #[expect(clippy::disallowed_methods, reason = "the handle goes to the owner, who awaits or aborts it")]
    tokio::spawn(task)
}

#[cfg(test)]
mod tests;
