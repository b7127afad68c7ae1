//! `chat`: which session, what is wrong with the request, then the session decides (contract 2.3, 4.1).

use std::time::Duration;

use ractor::rpc::CallResult;
use seekclaw_protocol::chat::{ChatParams, Image, Lifecycle};
use seekclaw_protocol::model::unknown_model;
use seekclaw_protocol::{ErrorCode, RequestId, WireError, jsonl};
use seekclaw_storage::record::log::ImageRef;
use seekclaw_storage::record::session::{SessionKey, SessionRow};

use super::Caller;
use super::scope::Scope;
use super::session;
use crate::connection::Answer;
use crate::provider::chain;
use crate::services::Services;
use crate::session::{Accepted, NewImage, NewPrompt, SessionMsg};

/// How long a session may take to store a prompt.
const ACCEPT_LIMIT: Duration = Duration::from_secs(30);

/// Starts a turn, or says why not.
pub(super) async fn chat(
    services: &Services,
    bound: &mut Option<SessionKey>,
    caller: &Caller,
    id: RequestId,
    params: ChatParams,
) -> Answer {
    if caller.token.as_ref().is_some_and(crate::connection::Token::is_cancelled) {
        return Answer::Line(jsonl::answer(id, "cancelled", ""));
    }
    let named = params.session_id.clone();
    match accept(services, bound, caller, params).await {
        Ok(accepted) => Answer::Turn(Box::new(accepted)),
        Err(error) => Answer::Line(jsonl::error(id, &error, named.as_deref())),
    }
}

async fn accept(
    services: &Services,
    bound: &mut Option<SessionKey>,
    caller: &Caller,
    params: ChatParams,
) -> Result<Accepted, WireError> {
    let scope = Scope::find(services, params.scope.clone()).await?;
    let row = choose(services, bound, &scope, params.session_id.as_deref()).await?;
    let level = params.reasoning?;
    let mode = params.mode?;
    if let Some(model) = &params.model {
        known_model(services, model).await?;
    }
    let client_owned = caller.client.is_none() || params.lifecycle == Some(Lifecycle::ClientOwned);
    let prompt = NewPrompt {
        text: params.message,
        images: new_images(params.images),
        reasoning: level.filter(|level| *level != row.reasoning),
        mode,
        model: params.model,
        client: caller.client.clone(),
        owner: client_owned.then(|| caller.cell.clone()),
    };
    let actor = session::open(services, row.key).await?;
    match actor.call(|port| SessionMsg::Prompt(Box::new(prompt), port), Some(ACCEPT_LIMIT)).await {
        Ok(CallResult::Success(result)) => result,
        Ok(CallResult::Timeout) => {
            let text = "The session did not say in time whether it took the message: look at it before you send it again";
            Err(WireError::new(ErrorCode::Timeout, text))
        }
        Ok(CallResult::SenderError) | Err(_) => {
            let text = "The session was interrupted, and whether it took the message is uncertain: look at it before you send it again";
            Err(WireError::new(ErrorCode::Uncertain, text))
        }
    }
}

/// The session that is meant: named, bound, newest or new.
async fn choose(
    services: &Services,
    bound: &mut Option<SessionKey>,
    scope: &Scope,
    named: Option<&str>,
) -> Result<SessionRow, WireError> {
    if let Some(id) = named {
        let found = session::row(services, scope.session(id)).await?;
        return found.ok_or_else(|| not_found(id));
    }
    if let Some(key) = bound.clone().filter(|key| key.scope == scope.key())
        && let Some(row) = session::row(services, key).await?
    {
        return Ok(row);
    }
    let row = match session::latest(services, scope.key()).await? {
        Some(row) => row,
        None => session::create(services, scope, None, true).await?,
    };
    *bound = Some(row.key.clone());
    Ok(row)
}

/// The text of `chat` for a session that is not there (contract 2.3).
pub(super) fn not_found(id: &str) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("Session {id} not found"))
}

async fn known_model(services: &Services, model: &str) -> Result<(), WireError> {
    let settings = services.config.fresh().await;
    match chain::resolve(&settings.config, model) {
        Some(_) => Ok(()),
        None => Err(unknown_model(model)),
    }
}

/// Images of a request as a session takes them; those without an id get one (contract 2.3.1).
pub(crate) fn new_images(images: Vec<Image>) -> Vec<NewImage> {
    let new = |image: Image| {
        let id = if image.id.is_empty() {
            format!("{:016x}{:016x}", crate::session::random(), crate::session::random())
        } else {
            image.id
        };
        let size = u64::try_from(image.bytes.len()).unwrap_or(u64::MAX);
        let media_type = image.media_type.to_owned();
        NewImage { image: ImageRef { id, name: image.name, media_type, size }, bytes: image.bytes }
    };
    images.into_iter().map(new).collect()
}
