//! The processes of one command: its group, and those that left the group but carry its mark. They are
//! found by looking at the process table, since most of them are no children of the daemon.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use process_wrap::tokio::ChildWrapper;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::time::{Instant, timeout_at};

use super::table;
use crate::tools::Survivor;

/// Environment variable that marks the processes of one command, also those that leave its group.
pub(super) const MARK: &str = "SEEKCLAW_CALL";
/// How long a group may take to end by itself after it was asked to: with the kill and the last commit it
/// must fit into the time that a stopping daemon gives its turns (contract 4.6).
const TERM_GRACE: Duration = Duration::from_millis(400);
/// How long the kernel may take to remove a killed group; with the grace it stays below 2 s.
const KILL_GRACE: Duration = Duration::from_millis(700);
/// How often it is looked whether processes that are no children of ours have gone.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A running command and all it started. Dropping it kills the group, unless it was let go.
#[derive(Debug)]
pub(super) struct Group {
    child: Box<dyn ChildWrapper>,
    leader: Option<Pid>,
    trace: Trace,
    exit: Option<ExitStatus>,
}

/// How processes of a command are recognised.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    /// Process group.
    pub(super) group: u32,
    /// `NAME=value` in the environment.
    pub(super) mark: String,
    /// Processes that started earlier are not looked at.
    pub(super) since: u64,
}

impl Group {
    /// Takes over a child that was started as leader of a new group with `mark` in its environment.
    pub(super) fn new(child: Box<dyn ChildWrapper>, mark: String) -> Self {
        let group = child.id().unwrap_or_default();
        let leader = i32::try_from(group).ok().and_then(Pid::from_raw);
        let since = table::started(group).unwrap_or_default();
        Self { child, leader, trace: Trace { group, mark, since }, exit: None }
    }

    /// The child, to take its pipes.
    pub(super) fn child(&mut self) -> &mut dyn ChildWrapper {
        self.child.as_mut()
    }

    /// Waits until the command itself has ended, whatever it left behind.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.exit {
            return Ok(status);
        }
        // The wrapper would also wait for orphans of the group where the daemon is their reaper.
        let status = self.child.inner_mut().wait().await?;
        self.exit = Some(status);
        Ok(status)
    }

    /// Processes that are still there, and the end of the guard over them.
    pub(super) async fn let_go(mut self) -> Vec<Survivor> {
        let left = self.members().await;
        self.leader = None;
        left
    }

    /// Ends all processes: asks, then kills. Returns those that were there after that.
    pub(super) async fn end(mut self) -> Vec<Survivor> {
        for (signal, grace) in [(Signal::TERM, TERM_GRACE), (Signal::KILL, KILL_GRACE)] {
            self.signal(signal, &self.members().await);
            if self.gone_within(grace, signal).await {
                self.leader = None;
                return Vec::new();
            }
        }
        self.members().await
    }

    fn signal(&self, signal: Signal, members: &[Survivor]) {
        if let Some(leader) = self.leader {
            report(kill_process_group(leader, signal), "group", self.trace.group);
        }
        for member in members.iter().filter(|member| member.group != self.trace.group) {
            let pid = i32::try_from(member.pid).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                report(kill_process(pid, signal), "process", member.pid);
            }
        }
    }

    async fn gone_within(&mut self, grace: Duration, signal: Signal) -> bool {
        let end = Instant::now() + grace;
        loop {
            let look = Instant::now() + LOOK_EVERY;
            // Reaps the leader; an error means that there is nothing to reap.
            let reaped = timeout_at(look, self.wait()).await.is_ok();
            let left = self.members().await;
            if reaped && left.is_empty() {
                return true;
            }
            // What was started while the group was being killed has not got the signal.
            if signal == Signal::KILL {
                self.signal(signal, &left);
            }
            if Instant::now() >= end {
                return false;
            }
            tokio::time::sleep_until(look).await;
        }
    }

    /// Living processes of the command, the leader only as long as it was not reaped.
    async fn members(&self) -> Vec<Survivor> {
        let trace = self.trace.clone();
        // The table is a few hundred small reads: not on the runtime.
        match tokio::task::spawn_blocking(move || table::members(&trace)).await {
            Ok(members) => members,
            Err(error) => {
                tracing::warn!(%error, group = self.trace.group, "cannot look for processes of a command");
                Vec::new()
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(leader) = self.leader else { return };
        // A group whose leader was reaped and that is empty has a number that may be taken again.
        if self.exit.is_none() || test_kill_process_group(leader).is_ok() {
            report(kill_process_group(leader, Signal::KILL), "group", self.trace.group);
        }
    }
}

/// Ends processes that a command left behind: asks, then kills what is still the same process.
pub async fn end_survivors(survivors: Vec<Survivor>) {
    for signal in [Signal::TERM, Signal::KILL] {
        let end = Instant::now() + TERM_GRACE;
        let mut left = same(&survivors).await;
        for pid in left.iter().filter_map(|s| Pid::from_raw(i32::try_from(s.pid).ok()?)) {
            report(kill_process(pid, signal), "process", pid.as_raw_nonzero().get().unsigned_abs());
        }
        while !left.is_empty() && Instant::now() < end {
            tokio::time::sleep(LOOK_EVERY).await;
            left = same(&left).await;
        }
        if left.is_empty() {
            return;
        }
    }
}

async fn same(survivors: &[Survivor]) -> Vec<Survivor> {
    let mut left = survivors.to_vec();
    let alive = tokio::task::spawn_blocking(move || {
        left.retain(table::is_same);
        left
    });
    alive.await.unwrap_or_default()
}

fn report(sent: rustix::io::Result<()>, what: &str, id: u32) {
    match sent {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(%error, what, id, "cannot signal the processes of a command"),
    }
}
