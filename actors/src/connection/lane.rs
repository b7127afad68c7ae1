//! Requests of one client in order of arrival, one after another: what changes the same thing applies in
//! the order in which it was asked for (contract 1.6).

use bytes::Bytes;
use ractor::ActorRef;
use seekclaw_protocol::RequestId;
use seekclaw_protocol::method::Command;
use seekclaw_storage::record::session::SessionKey;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::ConnectionMsg;
use super::turns::Token;
use super::writer::{Attachment, Out};
use crate::dispatch::{self, Caller};
use crate::services::Services;
use crate::session::Accepted;
use crate::supervision::tell;

use std::sync::Arc;

/// One request on its way.
pub(super) struct Item {
    pub(super) id: RequestId,
    pub(super) command: Command,
    pub(super) permit: OwnedSemaphorePermit,
    pub(super) client: Option<Arc<str>>,
    /// Set for a `chat`.
    pub(super) token: Option<Token>,
}

/// What a request came to.
pub(crate) enum Answer {
    /// One line, and nothing more.
    Line(Bytes),
    /// A turn that streams from here on.
    Turn(Box<Accepted>),
    /// The daemon stops once the line is out.
    Bye(Bytes),
}

/// The lane of one connection.
pub(super) struct Lane {
    services: Services,
    connection: ActorRef<ConnectionMsg>,
    out: mpsc::Sender<Out>,
    /// Session that a `chat` without one goes to (contract 4.1).
    bound: Option<SessionKey>,
}

impl Lane {
    pub(super) fn new(
        services: Services,
        connection: ActorRef<ConnectionMsg>,
        out: mpsc::Sender<Out>,
    ) -> Self {
        Self { services, connection, out, bound: None }
    }

    async fn carry(&mut self, item: Item) {
        let Item { id, command, permit, client, token } = item;
        let number = token.as_ref().map(|token| token.number);
        let stamped = client.is_some();
        let caller = Caller { client, cell: self.connection.get_cell(), token };
        let answer = dispatch::run(&self.services, &mut self.bound, &caller, id, command).await;
        match answer {
            Answer::Turn(accepted) => self.attach(id, number.unwrap_or_default(), *accepted, stamped).await,
            Answer::Line(line) => {
                send(&self.out, Out::Line(line, Some(permit))).await;
                if let Some(number) = number {
                    tell(&self.connection, ConnectionMsg::Over(number));
                }
            }
            Answer::Bye(line) => {
                send(&self.out, Out::Line(line, Some(permit))).await;
                dispatch::stop(&self.services);
            }
        }
    }

    async fn attach(&self, id: RequestId, token: u64, accepted: Accepted, stamped: bool) {
        let attachment = Attachment {
            id,
            token,
            turn: accepted.turn.clone(),
            log: Arc::clone(&accepted.log),
            uid: accepted.uid,
            cursor: accepted.after,
            stamped,
        };
        tell(&self.connection, ConnectionMsg::Accepted(token, Box::new(accepted)));
        send(&self.out, Out::Attach(Box::new(attachment))).await;
    }
}

/// Carries requests until the connection lets go.
pub(super) async fn run(mut lane: Lane, mut items: mpsc::Receiver<Item>) {
    while let Some(item) = items.recv().await {
        lane.carry(item).await;
    }
}

/// Waits for a place in the outbox; without a writer there is nobody to answer.
pub(super) async fn send(out: &mpsc::Sender<Out>, line: Out) {
    if out.send(line).await.is_err() {
        tracing::debug!("the writer has ended: an answer is dropped");
    }
}

/// What only reads and may take long.
pub(super) fn runs_aside(command: &Command) -> bool {
    matches!(
        command,
        Command::LockList(_)
            | Command::ModelTest(_)
            | Command::ProviderTest(_)
            | Command::Doctor(_)
            | Command::ProtocolInfo(_)
    )
}
