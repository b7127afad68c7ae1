//! From a command to the room that does it: one match, one line per method.

pub(crate) mod chat;
mod scope;
mod session;

use bytes::Bytes;
use ractor::ActorCell;
use seekclaw_protocol::basics::ProtocolInfo;
use seekclaw_protocol::doctor::report;
use seekclaw_protocol::lock::LockView;
use seekclaw_protocol::method::{Command, not_yet};
use seekclaw_protocol::{ErrorCode, Mode, RequestId, WireError, jsonl};
use seekclaw_storage::record::session::SessionKey;
use serde::Serialize;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::admin;
use crate::connection::{Answer, Token};
use crate::daemon::DaemonMsg;
use crate::services::Services;
use crate::sessions::DRAIN_LIMIT;

/// Who asks.
pub(crate) struct Caller {
    /// Client id, after a hello.
    pub(crate) client: Option<Arc<str>>,
    /// The connection, which owns turns of a client that said no hello.
    pub(crate) cell: ActorCell,
    /// Set for a `chat`.
    pub(crate) token: Option<Token>,
}

/// Runs a command of the lane.
#[expect(clippy::wildcard_enum_match_arm, reason = "what only reads has a match of its own")]
pub(crate) async fn run(
    services: &Services,
    bound: &mut Option<SessionKey>,
    caller: &Caller,
    id: RequestId,
    command: Command,
) -> Answer {
    if services.stopping.load(Ordering::Acquire) && command.method().mutating() {
        return line::<()>(id, Err(WireError::new(ErrorCode::ShuttingDown, "The daemon is stopping")));
    }
    match command {
        Command::Chat(params) => chat::chat(services, bound, caller, id, params).await,
        Command::Shutdown(_) => shutdown(services, id).await,
        Command::SessionList(params) => line(id, session::list(services, params).await),
        Command::SessionGet(params) => line(id, session::get(services, params).await),
        Command::SessionUpdate(params) => line(id, session::update(services, params).await),
        Command::SessionArchive(params) => line(id, session::archive(services, bound, params).await),
        Command::SessionDelete(params) => text(id, session::delete(services, bound, params).await),
        Command::SessionTruncate(params) => text(id, session::truncate(services, params).await),
        Command::SessionResume(params) => text(id, session::resume(services, bound, params).await),
        Command::SessionNew(params) => text(id, session::new(services, bound, params).await),
        Command::WorkspaceGet(_) => line(id, admin::workspace::get(&services.admin()).await),
        Command::WorkspaceOpen(params) => {
            *bound = None;
            line(id, admin::workspace::open(params, &services.admin()).await)
        }
        Command::WorkspaceInit(_) => line(id, admin::workspace::init(&services.admin()).await),
        Command::AgentModeGet(_) => text(id, admin::mode::get(&services.admin()).await.map(Mode::as_str)),
        Command::AgentModeSwitch(params) => {
            text(id, admin::mode::switch(params, &services.admin()).await.map(Mode::as_str))
        }
        Command::ModelList(_) => line(id, admin::model::list(&services.admin()).await),
        Command::ModelCatalog(_) => line(id, admin::model::catalog(&services.admin()).await),
        Command::ModelSwitch(params) => text(id, admin::model::switch(params, &services.admin()).await),
        Command::ProviderList(_) => line(id, admin::provider::list(&services.admin()).await),
        Command::ProviderUpsert(params) => line(id, admin::provider::upsert(params, &services.admin()).await),
        Command::ProviderUse(params) => text(id, admin::provider::select(params, &services.admin()).await),
        Command::ProviderRemove(params) => text(id, admin::provider::remove(params, &services.admin()).await),
        Command::NotYet(method) => line::<()>(id, Err(not_yet(method))),
        other => Answer::Line(read_only(services, id, other).await),
    }
}

/// Runs a command that changes nothing, beside the lane.
#[expect(clippy::wildcard_enum_match_arm, reason = "the lane never sends anything else here")]
pub(crate) async fn read_only(services: &Services, id: RequestId, command: Command) -> Bytes {
    match command {
        Command::ProtocolInfo(_) => jsonl::json_result(id, &ProtocolInfo::current()),
        Command::LockList(_) => jsonl::json_result(id, &locks(services)),
        Command::ModelTest(params) => finished(id, admin::model::test(params, &services.admin()).await),
        Command::ProviderTest(params) => finished(id, admin::provider::test(params, &services.admin()).await),
        Command::Doctor(_) => match admin::doctor::local_checks(&services.admin()).await {
            Ok(checks) => jsonl::answer(id, "result", &report(&checks)),
            Err(error) => jsonl::error(id, &error, None),
        },
        other => {
            let text = format!("{} was sent to the wrong room", other.method().name());
            jsonl::error(id, &WireError::new(ErrorCode::Internal, text), None)
        }
    }
}

fn locks(services: &Services) -> Vec<LockView> {
    let held = services.locks.list();
    let view = |lock: crate::locks::HeldLock| LockView {
        workspace: lock.workspace.to_string_lossy().into_owned(),
        file: lock.file.to_string_lossy().into_owned(),
        owner: lock.owner,
        acquired_at: lock.acquired_at,
    };
    held.into_iter().map(view).collect()
}

/// Ends all turns, then says bye; the caller stops the daemon once that is written (contract 4.6).
async fn shutdown(services: &Services, id: RequestId) -> Answer {
    let drained = services.daemon.ask(DaemonMsg::Drain, 2 * DRAIN_LIMIT).await;
    if drained.is_none() {
        tracing::warn!("not all turns ended in time");
    }
    Answer::Bye(jsonl::answer(id, "bye", ""))
}

/// Stops the daemon.
pub(crate) fn stop(services: &Services) {
    if services.daemon.send(DaemonMsg::Stop).is_err() {
        tracing::debug!("the daemon is stopping already");
    }
}

fn finished<T: Serialize>(id: RequestId, result: Result<T, WireError>) -> Bytes {
    match result {
        Ok(value) => jsonl::json_result(id, &value),
        Err(error) => jsonl::error(id, &error, None),
    }
}

fn line<T: Serialize>(id: RequestId, result: Result<T, WireError>) -> Answer {
    Answer::Line(finished(id, result))
}

fn text(id: RequestId, result: Result<impl AsRef<str>, WireError>) -> Answer {
    Answer::Line(match result {
        Ok(text) => jsonl::answer(id, "result", text.as_ref()),
        Err(error) => jsonl::error(id, &error, None),
    })
}
