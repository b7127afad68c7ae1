//! `session.*`: reads go to the store, changes to the session itself (contract 2.12).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;
use ractor::RpcReplyPort;
use ractor::rpc::CallResult;
use seekclaw_protocol::params::Change as Field;
use seekclaw_protocol::session::{
    ImageView, MessageView, Role as ViewRole, SessionArchive, SessionFacts, SessionHeader, SessionList,
    SessionNew, SessionParams, SessionResume, SessionTruncate, SessionUpdate, SessionView, ToolCallView,
    ViewedImage, resumed, session_not_found,
};
use seekclaw_protocol::{ErrorCode, ReasoningLevel, SessionId, Timestamp, WireError};
use seekclaw_storage::record::session::{SessionKey, SessionRow};
use seekclaw_storage::store::{ReadError, Reader, Write};

use super::chat::not_found;
use super::scope::Scope;
use crate::history::fold::History;
use crate::history::{Image, Message, Role};
use crate::services::Services;
use crate::session::log::now;
use crate::session::{Change, SessionMsg, storage_error};
use crate::sessions::SessionsMsg;

/// How long a live session may take to do what it is asked.
const ASK_LIMIT: Duration = Duration::from_secs(30);

pub(super) async fn list(services: &Services, params: SessionList) -> Result<Vec<SessionHeader>, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let archived = params.include_archived;
    let rows = read(services, move |reader| reader.sessions(&scope.key(), archived, None)).await?;
    Ok(rows.iter().map(header).collect())
}

pub(super) async fn get(services: &Services, params: SessionParams) -> Result<SessionView, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let key = scope.session(params.id.as_str());
    let view = read(services, move |reader| {
        let Some(row) = reader.session(&key)? else { return Ok(None) };
        let messages = messages(reader, row.uid)?;
        Ok(Some(header(&row).with_messages(messages)))
    });
    view.await?.ok_or_else(|| session_not_found(&params.id))
}

pub(super) async fn update(services: &Services, params: SessionUpdate) -> Result<SessionHeader, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let key = existing(services, &scope, &params.id).await?;
    let title = match params.title {
        Field::Keep => None,
        Field::Clear => Some(String::new()),
        Field::Set(title) => Some(title),
    };
    let change = Change { title, reasoning: params.reasoning?, network: params.network, archived: None };
    changed(services, key, change).await
}

pub(super) async fn archive(
    services: &Services,
    bound: &mut Option<SessionKey>,
    params: SessionArchive,
) -> Result<SessionHeader, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let key = existing(services, &scope, &params.id).await?;
    unbind(bound, &key);
    let archived = Some(params.archived);
    changed(services, key, Change { archived, ..Change::default() }).await
}

pub(super) async fn delete(
    services: &Services,
    bound: &mut Option<SessionKey>,
    params: SessionParams,
) -> Result<String, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let key = existing(services, &scope, &params.id).await?;
    unbind(bound, &key);
    ask(services, key, SessionMsg::Delete).await??;
    if matches!(scope, Scope::Global) {
        remove_scratch(services, params.id.as_str()).await;
    }
    Ok(params.id.to_string())
}

/// What a global session wrote goes with it (ruling 17).
async fn remove_scratch(services: &Services, id: &str) {
    let folder = services.home.scratch().join(id);
    let removed = tokio::task::spawn_blocking(move || match std::fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    });
    if !matches!(removed.await, Ok(Ok(()))) {
        tracing::warn!(session = id, "the scratch folder of a deleted session was not removed");
    }
}

pub(super) async fn truncate(services: &Services, params: SessionTruncate) -> Result<String, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let Some(row) = row(services, scope.session(params.id.as_str())).await? else {
        return Ok("0".to_owned());
    };
    let left = ask(services, row.key, |port| SessionMsg::Truncate(params.keep, port)).await??;
    Ok(left.to_string())
}

pub(super) async fn resume(
    services: &Services,
    bound: &mut Option<SessionKey>,
    params: SessionResume,
) -> Result<String, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let found = row(services, scope.session(params.id.as_str())).await?;
    let row = found.ok_or_else(|| not_found(params.id.as_str()))?;
    *bound = Some(row.key);
    Ok(resumed(&params.id))
}

pub(super) async fn new(
    services: &Services,
    bound: &mut Option<SessionKey>,
    params: SessionNew,
) -> Result<String, WireError> {
    let scope = Scope::find(services, params.scope).await?;
    let row = create(services, &scope, params.reasoning?, params.network).await?;
    let id = row.key.id.clone();
    *bound = Some(row.key);
    Ok(id)
}

/// Stores a new, empty session.
pub(super) async fn create(
    services: &Services,
    scope: &Scope,
    level: Option<ReasoningLevel>,
    network: bool,
) -> Result<SessionRow, WireError> {
    let default = services.config.current().config.agent.reasoning_level;
    let row = SessionRow {
        uid: crate::session::random(),
        key: scope.session(&new_id()),
        workspace: scope.shown().to_string_lossy().into_owned(),
        title: String::new(),
        archived: false,
        reasoning: level.unwrap_or(default),
        network,
        llm_rounds: 0,
        execution_steps: 0,
        input_tokens: 0,
        total_input_tokens: 0,
        cached_input_tokens: 0,
        output_tokens: 0,
        output_elapsed_ms: 0,
        created_at: now().0,
        updated_at: now().0,
        generation: 0,
        seq_reserved: 1,
        messages: 0,
    };
    let (done, stored) = tokio::sync::oneshot::channel();
    let done = move |result: Result<_, _>| {
        if done.send(result).is_err() {
            tracing::debug!("a new session was stored after its client had gone");
        }
    };
    services.store.write(vec![Write::PutSession(row.clone())], Box::new(done));
    match tokio::time::timeout(ASK_LIMIT, stored).await {
        Ok(Ok(Ok(_))) => Ok(row),
        Ok(Ok(Err(error))) => Err(storage_error(&error)),
        Ok(Err(_)) | Err(_) => Err(WireError::new(ErrorCode::Timeout, "The session was not stored in time")),
    }
}

/// `yyyyMMdd-HHmmss-` and 6 hex digits (contract 11).
fn new_id() -> String {
    let random = crate::session::random() & 0x00ff_ffff;
    format!("{}-{random:06x}", chrono::Utc::now().format("%Y%m%d-%H%M%S"))
}

fn unbind(bound: &mut Option<SessionKey>, key: &SessionKey) {
    if bound.as_ref() == Some(key) {
        *bound = None;
    }
}

async fn existing(services: &Services, scope: &Scope, id: &SessionId) -> Result<SessionKey, WireError> {
    let found = row(services, scope.session(id.as_str())).await?;
    found.map(|row| row.key).ok_or_else(|| session_not_found(id))
}

/// The stored row of a session.
pub(super) async fn row(services: &Services, key: SessionKey) -> Result<Option<SessionRow>, WireError> {
    read(services, move |reader| reader.session(&key)).await
}

/// The newest session of a scope that is not archived.
pub(super) async fn latest(services: &Services, scope: String) -> Result<Option<SessionRow>, WireError> {
    read(services, move |reader| reader.latest_session(&scope)).await
}

/// The live session, opened if need be.
pub(super) async fn open(services: &Services, key: SessionKey) -> Result<ActorRef<SessionMsg>, WireError> {
    let opened = services.sessions.ask(|port| SessionsMsg::Open(key, port), ASK_LIMIT).await;
    opened.ok_or_else(|| WireError::new(ErrorCode::Internal, "The session cannot be opened now"))
}

async fn changed(services: &Services, key: SessionKey, change: Change) -> Result<SessionHeader, WireError> {
    let row = ask(services, key, |port| SessionMsg::Change(change, port)).await??;
    Ok(header(&row))
}

async fn ask<T: Send + 'static>(
    services: &Services,
    key: SessionKey,
    message: impl FnOnce(RpcReplyPort<T>) -> SessionMsg,
) -> Result<T, WireError> {
    let actor = open(services, key).await?;
    match actor.call(message, Some(ASK_LIMIT)).await {
        Ok(CallResult::Success(value)) => Ok(value),
        Ok(CallResult::Timeout) => {
            Err(WireError::new(ErrorCode::Timeout, "The session did not answer in time"))
        }
        Ok(CallResult::SenderError) | Err(_) => {
            Err(WireError::new(ErrorCode::Internal, "The session was interrupted; try again"))
        }
    }
}

async fn read<T: Send + 'static>(
    services: &Services,
    work: impl FnOnce(&Reader) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, WireError> {
    let reader = services.store.reader().clone();
    let unreadable =
        |error: String| WireError::new(ErrorCode::StorageCorrupt, format!("Cannot read the store: {error}"));
    match tokio::task::spawn_blocking(move || work(&reader)).await {
        Ok(result) => result.map_err(|error| unreadable(error.to_string())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

fn header(row: &SessionRow) -> SessionHeader {
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    SessionHeader {
        id: row.key.id.clone(),
        title: some(&row.title),
        workspace: some(&row.workspace),
        facts: SessionFacts {
            archived: row.archived,
            reasoning_level: row.reasoning,
            network_enabled: row.network,
            llm_rounds: row.llm_rounds,
            execution_steps: row.execution_steps,
            input_tokens: row.input_tokens,
            total_input_tokens: row.total_input_tokens,
            cached_input_tokens: row.cached_input_tokens,
            output_tokens: row.output_tokens,
            output_elapsed_ms: row.output_elapsed_ms,
            created_at: Timestamp(row.created_at),
            updated_at: Timestamp(row.updated_at),
        },
    }
}

/// The stored conversation as clients see it.
fn messages(reader: &Reader, uid: u64) -> Result<Vec<MessageView>, ReadError> {
    let mut history = History::default();
    reader.log(uid, 0, &mut |entry| {
        history.apply(&entry);
        ControlFlow::Continue(())
    })?;
    let mut images: HashMap<String, Arc<Vec<u8>>> = HashMap::new();
    for image in history.messages.iter().flat_map(|message| &message.images) {
        if !images.contains_key(&image.id) {
            let bytes = reader.image(uid, &image.id)?.unwrap_or_default();
            images.insert(image.id.clone(), Arc::new(bytes));
        }
    }
    Ok(history.messages.into_iter().map(|message| view(message, &images)).collect())
}

fn view(message: Message, images: &HashMap<String, Arc<Vec<u8>>>) -> MessageView {
    let some = |text: String| (!text.is_empty()).then_some(text);
    let role = match message.role {
        Role::User => ViewRole::User,
        Role::Assistant => ViewRole::Assistant,
        Role::Tool => ViewRole::Tool,
    };
    let mut view = MessageView::new(role, message.text);
    view.images = message.images.iter().map(|image| image_view(image, images)).collect();
    view.thinking = some(message.thinking);
    view.model_ref = some(message.model);
    let viewed = |image: Image| ViewedImage { id: image.id, name: image.name };
    view.viewed_images = message.viewed.into_iter().map(viewed).collect();
    view.tool_calls =
        message.calls.into_iter().map(|call| ToolCallView { id: call.id, name: call.name }).collect();
    view.tool_call_id = some(message.call_id);
    view.tool_name = some(message.tool);
    view.tool_success = message.success;
    view.tool_diff = some(message.diff);
    view.tool_file_path = some(message.file);
    view
}

fn image_view(image: &Image, images: &HashMap<String, Arc<Vec<u8>>>) -> ImageView {
    ImageView {
        id: image.id.clone(),
        name: image.name.clone(),
        media_type: image.media_type.clone(),
        data: images.get(&image.id).cloned().unwrap_or_default(),
        size_bytes: image.size,
    }
}
