//! Who holds which file and who waits for it: plain data, free entries do not exist.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};

use ractor::{ActorCell, ActorId};
use seekclaw_protocol::Timestamp;
use tokio::sync::oneshot;

use super::{HeldLock, MAX_WAITERS};

/// What somebody asks for.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) workspace: PathBuf,
    pub(super) owner: String,
    pub(super) holder: ActorCell,
    pub(super) granted: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    files: HashMap<PathBuf, File>,
    last_ticket: u64,
}

#[derive(Debug)]
struct File {
    held: Held,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Held {
    ticket: u64,
    workspace: PathBuf,
    owner: String,
    holder: ActorCell,
    acquired_at: Timestamp,
    in_effect: bool,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    claim: Claim,
}

impl Table {
    /// Grants the file or queues for it; the ticket is used to release either. `None`: the queue is full.
    pub(super) fn request(&mut self, file: PathBuf, claim: Claim) -> Option<u64> {
        self.last_ticket += 1;
        let waiter = Waiter { ticket: self.last_ticket, claim };
        match self.files.entry(file) {
            Entry::Occupied(file) if file.get().waiting.len() >= MAX_WAITERS => return None,
            Entry::Occupied(mut file) => file.get_mut().waiting.push_back(waiter),
            Entry::Vacant(place) => {
                if let Some(held) = waiter.grant() {
                    place.insert(File { held, waiting: VecDeque::new() });
                }
            }
        }
        Some(self.last_ticket)
    }

    /// Takes a claim back, held or waiting; one that is neither any more changes nothing.
    pub(super) fn release(&mut self, file: &Path, ticket: u64) {
        self.withdraw(file, |held| held.ticket == ticket, |waiter| waiter.ticket == ticket);
    }

    /// Takes back all claims of an actor that has ended, but for effects that have begun.
    pub(super) fn forget(&mut self, holder: ActorId) {
        let files: Vec<PathBuf> = self.files.keys().cloned().collect();
        for file in files {
            self.withdraw(
                &file,
                |held| held.holder.get_id() == holder && !held.in_effect,
                |waiter| waiter.claim.holder.get_id() == holder,
            );
        }
    }

    /// Keeps the lock for `ticket` until it is released; false if it has another holder by now.
    pub(super) fn begin_effect(&mut self, file: &Path, ticket: u64) -> bool {
        let held = self.files.get_mut(file).map(|file| &mut file.held).filter(|held| held.ticket == ticket);
        held.map(|held| held.in_effect = true).is_some()
    }

    /// Who holds `file`.
    pub(super) fn owner(&self, file: &Path) -> Option<String> {
        self.files.get(file).map(|file| file.held.owner.clone())
    }

    /// All actors that hold or wait; one may be there more than once.
    pub(super) fn holders(&self) -> Vec<ActorCell> {
        let waiting = self.files.values().flat_map(|file| &file.waiting).map(|waiter| &waiter.claim.holder);
        self.files.values().map(|file| &file.held.holder).chain(waiting).cloned().collect()
    }

    /// Held files by workspace and path.
    pub(super) fn list(&self) -> Vec<HeldLock> {
        let row = |(path, file): (&PathBuf, &File)| HeldLock {
            workspace: file.held.workspace.clone(),
            file: path.clone(),
            owner: file.held.owner.clone(),
            acquired_at: file.held.acquired_at,
        };
        let mut rows: Vec<HeldLock> = self.files.iter().map(row).collect();
        rows.sort_by(|a, b| (&a.workspace, &a.file).cmp(&(&b.workspace, &b.file)));
        rows
    }

    /// How many wait for `file`.
    #[cfg(test)]
    pub(super) fn waiting(&self, file: &Path) -> usize {
        self.files.get(file).map_or(0, |file| file.waiting.len())
    }

    fn withdraw(&mut self, path: &Path, held: impl Fn(&Held) -> bool, waiting: impl Fn(&Waiter) -> bool) {
        let Some(file) = self.files.get_mut(path) else { return };
        file.waiting.retain(|waiter| !waiting(waiter));
        if !held(&file.held) {
            return;
        }
        match std::iter::from_fn(|| file.waiting.pop_front()).find_map(Waiter::grant) {
            Some(next) => file.held = next,
            None => drop(self.files.remove(path)),
        }
    }
}

impl Waiter {
    /// Hands the file over; `None` if nobody waits at the other end.
    fn grant(self) -> Option<Held> {
        let Claim { workspace, owner, holder, granted } = self.claim;
        granted.send(()).ok()?;
        let acquired_at = Timestamp(chrono::Utc::now().timestamp_millis());
        Some(Held { ticket: self.ticket, workspace, owner, holder, acquired_at, in_effect: false })
    }
}
