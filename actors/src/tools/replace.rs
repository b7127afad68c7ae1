//! The one way in which a tool changes a file: under its lock from before it is read until after it was
//! replaced, declared before the effect, atomic, and only if it still is what the tool has judged.

mod effect;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use seekclaw_storage::record::log::{Effect, Outcome, Seen};

use self::effect::put;
use super::paths::{Refusal, WriteTarget, display_path, resolve_write};
use super::text::hash;
use super::{FileChange, ToolContext, ToolReport, blocking, diff};
use crate::locks::{FileLock, LockRefused};

/// Largest file that is edited: it is held in memory a few times over.
pub(super) const MAX_EDITED_BYTES: u64 = 32 * 1024 * 1024;

/// A file as it is under the lock.
#[derive(Debug)]
pub(super) struct Current {
    /// Canonical path.
    pub(super) path: PathBuf,
    /// Path for people and the model.
    pub(super) shown: String,
    /// Its bytes; `None` if there is no such file.
    pub(super) bytes: Option<Vec<u8>>,
}

impl Current {
    /// What [`Seen`] says of it.
    pub(super) fn hash(&self) -> String {
        self.bytes.as_deref().map(hash).unwrap_or_default()
    }
}

/// What shall become of it.
#[derive(Debug)]
pub(super) struct Decision {
    /// The new content.
    pub(super) bytes: Vec<u8>,
    /// Text of the result, once it is done.
    pub(super) text: String,
    /// Bytes that were left out of the text.
    pub(super) omitted: u64,
    /// Unified diff.
    pub(super) diff: String,
}

/// A decision that waits for its intent to be durable.
struct Prepared {
    target: WriteTarget,
    lock: FileLock,
    decision: Decision,
    shown: String,
    before: Option<String>,
    after: String,
}

type Refused = Box<ToolReport>;

/// Replaces the file at `path` by what `decide` makes of it. `decide` runs off the runtime; its refusal is
/// the result of the call.
pub(super) async fn replace<D>(ctx: &ToolContext, path: &str, decide: D) -> ToolReport
where
    D: FnOnce(&Current) -> Result<Decision, Refused> + Send + 'static,
{
    match try_replace(ctx, path, decide).await {
        Ok(report) => report,
        Err(refused) => *refused,
    }
}

async fn try_replace<D>(ctx: &ToolContext, path: &str, decide: D) -> Result<ToolReport, Refused>
where
    D: FnOnce(&Current) -> Result<Decision, Refused> + Send + 'static,
{
    let (resolving, asked) = (ctx.clone(), path.to_owned());
    let file =
        blocking::run(move || resolve(&resolving, &asked).map(|target| target.path().to_path_buf())).await?;
    let lock = acquire(ctx, file.clone()).await?;
    let (preparing, asked) = (ctx.clone(), path.to_owned());
    let prepared = blocking::run(move || prepare(&preparing, &asked, &file, lock, decide)).await?;
    declare(ctx, &prepared).await?;
    let seen = ctx.seen.clone();
    Ok(blocking::run(move || prepared.carry_out(|now| seen.note(now))).await)
}

fn resolve(ctx: &ToolContext, path: &str) -> Result<WriteTarget, Refused> {
    resolve_write(&ctx.reach, path).map_err(|refusal: Refusal| Box::new(refusal.into()))
}

async fn acquire(ctx: &ToolContext, file: PathBuf) -> Result<FileLock, Refused> {
    let shown = display_path(&ctx.reach, &file);
    let workspace = ctx.reach.root.clone();
    let asked =
        ctx.locks.acquire(file, workspace, ctx.owner.clone(), ctx.holder.clone(), ctx.limits.lock_wait);
    let answer = tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => return Err(cancelled("while it waited for the write lock")),
        answer = asked => answer,
    };
    answer.map_err(|refused| match refused {
        LockRefused::Timeout { owner } => failed(lock_timeout(&shown, owner.as_deref())),
        LockRefused::Full => {
            failed(format!("Write lock refused: too many tasks wait to edit {shown} already. Retry later."))
        }
        LockRefused::HolderGone => cancelled("while it waited for the write lock"),
    })
}

/// Once this is cancelled the intent may have been recorded; that it had no effect is certain.
async fn declare(ctx: &ToolContext, prepared: &Prepared) -> Result<(), Refused> {
    let recorded = tokio::select! {
        biased;
        () = ctx.cancel.cancelled() => return Err(cancelled("before it changed anything")),
        recorded = (ctx.declare)(prepared.effect()) => recorded,
    };
    recorded.map_err(|error| failed(format!("Nothing was changed in {}: {error}", prepared.shown)))
}

/// Text of the contract, section 10.
fn lock_timeout(shown: &str, owner: Option<&str>) -> String {
    let owner = owner.map(|owner| format!(" ({owner})")).unwrap_or_default();
    format!(
        "Write lock timeout: {shown} is being edited by another task{owner}. Wait for it to finish, re-read the latest file content, then retry."
    )
}

/// Reads and decides, under the lock. The path is resolved again: it may lead elsewhere since it was.
fn prepare<D>(
    ctx: &ToolContext,
    path: &str,
    locked: &Path,
    lock: FileLock,
    decide: D,
) -> Result<Prepared, Refused>
where
    D: FnOnce(&Current) -> Result<Decision, Refused>,
{
    let target = resolve(ctx, path)?;
    let shown = display_path(&ctx.reach, target.path());
    if target.path() != locked {
        return Err(failed(format!("{path} has come to lead to another file meanwhile. Retry.")));
    }
    let bytes = read_target(&target).map_err(|error| failed(format!("Cannot edit {shown}: {error}")))?;
    let current = Current { path: locked.to_path_buf(), shown, bytes };
    let decision = decide(&current)?;
    let before = current.bytes.as_deref().map(hash);
    let after = hash(&decision.bytes);
    Ok(Prepared { target, lock, decision, shown: current.shown, before, after })
}

impl Prepared {
    fn effect(&self) -> Effect {
        Effect::File {
            path: self.target.path().to_string_lossy().into_owned(),
            before: self.before.clone().unwrap_or_default(),
            after: self.after.clone(),
        }
    }

    /// Has the effect. The lock goes when this returns, not earlier: `note` is called before.
    fn carry_out(mut self, note: impl FnOnce(&Seen)) -> ToolReport {
        if !self.lock.begin_effect() {
            return *cancelled("before it changed anything");
        }
        let done = put(&mut self.target, self.before.as_deref(), &self.decision.bytes);
        let Self { target, lock, decision, shown, after, .. } = self;
        let mut report = match done {
            Ok(()) => ToolReport::ok(decision.text),
            Err(effect::Error::NotDurable(error)) => ToolReport::new(
                Outcome::Uncertain,
                format!("{}, but whether that survives a power cut is uncertain: {error}", decision.text),
            ),
            Err(error) => return *failed(format!("Nothing was changed in {shown}: {error}")),
        };
        let seen = Seen { path: target.path().to_string_lossy().into_owned(), hash: after };
        note(&seen);
        drop(lock);
        report.seen.push(seen);
        report.omitted = decision.omitted;
        report.change =
            (!decision.diff.is_empty()).then_some(FileChange { path: shown, diff: decision.diff });
        report
    }
}

/// Reads the file if it exists and is one that can be edited.
fn read_target(target: &WriteTarget) -> io::Result<Option<Vec<u8>>> {
    let Some(parent) = target.parent() else { return Ok(None) };
    let file = match parent.read(target.name()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    require_regular(&file)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(MAX_EDITED_BYTES)).unwrap_or_default());
    file.take(MAX_EDITED_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_EDITED_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_EDITED_BYTES >> 20)));
    }
    Ok(Some(bytes))
}

/// Refuses directories, pipes and devices.
pub(super) fn require_regular(file: &File) -> io::Result<()> {
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(()),
        (false, true) => Err(io::Error::other("it is a directory")),
        (false, false) => Err(io::Error::other("it is not a regular file")),
    }
}

/// The difference as it is shown for `current`.
pub(super) fn difference(current: &Current, before: &str, after: &str) -> String {
    diff::unified(&current.shown, before, after)
}

pub(super) fn failed(text: impl Into<String>) -> Refused {
    Box::new(ToolReport::failed(text))
}

fn cancelled(when: &str) -> Refused {
    Box::new(ToolReport::new(Outcome::Cancelled, format!("The call was cancelled {when}.")))
}

#[cfg(test)]
mod tests;
