//! The only writer of a socket: answers as they come, session events pulled by cursor, whatever has
//! gathered in one write. A client that reads slowly costs its cursors and nothing else.

use std::sync::Arc;

use bytes::Bytes;
use interprocess::local_socket::tokio::Stream;
use ractor::ActorRef;
use seekclaw_protocol::limits::{WRITE_BATCH_BYTES, WRITE_BATCH_LINES};
use seekclaw_protocol::{ErrorCode, RequestId, TurnId, WireError, jsonl};
use seekclaw_storage::store::Reader;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};

use super::ConnectionMsg;
use crate::session::log::{Page, Published, SessionLog};
use crate::session::replay;
use crate::supervision::tell;

/// Lines from this size on are written by themselves: copying them together costs more than a write.
const OWN_WRITE_BYTES: usize = 16 * 1024;

/// What goes to the client.
pub(crate) enum Out {
    /// A whole line, with the permit of the request that it answers.
    Line(Bytes, Option<OwnedSemaphorePermit>),
    /// The events of a turn from here on, under the id of its request.
    Attach(Box<Attachment>),
}

/// A cursor into the log of a session.
pub(crate) struct Attachment {
    pub(crate) id: RequestId,
    pub(crate) token: u64,
    pub(crate) turn: TurnId,
    pub(crate) log: Arc<SessionLog>,
    pub(crate) uid: u64,
    pub(crate) cursor: u64,
    /// Whether lines carry cursor, time and turn (extensions 1).
    pub(crate) stamped: bool,
}

/// The writer task.
pub(super) struct Writer {
    stream: Arc<Stream>,
    outbox: mpsc::Receiver<Out>,
    connection: ActorRef<ConnectionMsg>,
    store: Reader,
    wake: Arc<Notify>,
    attachments: Vec<Attachment>,
    buffer: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        stream: Arc<Stream>,
        outbox: mpsc::Receiver<Out>,
        connection: ActorRef<ConnectionMsg>,
        store: Reader,
    ) -> Self {
        let (wake, attachments, buffer) = (Arc::new(Notify::new()), Vec::new(), Vec::new());
        Self { stream, outbox, connection, store, wake, attachments, buffer }
    }

    /// Writes until the connection ends; what is left in the outbox is flushed.
    pub(super) async fn run(mut self) {
        let why = match self.pump().await {
            Ok(()) => "all answers are written".to_owned(),
            Err(error) => format!("cannot write: {error}"),
        };
        tell(&self.connection, ConnectionMsg::Ended(why));
    }

    async fn pump(&mut self) -> std::io::Result<()> {
        let mut open = true;
        loop {
            open = open && self.take_waiting().await?;
            let more = self.pull_all().await?;
            if !self.buffer.is_empty() {
                self.flush().await?;
                continue;
            }
            if more {
                continue;
            }
            if !open && self.attachments.is_empty() {
                return Ok(());
            }
            tokio::select! {
                out = self.outbox.recv(), if open => match out {
                    Some(out) => self.take(out).await?,
                    None => open = false,
                },
                () = self.wake.notified() => {}
            }
        }
    }

    /// Takes what waits in the outbox, up to one batch; false once it is closed and empty.
    async fn take_waiting(&mut self) -> std::io::Result<bool> {
        for _ in 0..WRITE_BATCH_LINES {
            match self.outbox.try_recv() {
                Ok(out) => self.take(out).await?,
                Err(mpsc::error::TryRecvError::Empty) => return Ok(true),
                Err(mpsc::error::TryRecvError::Disconnected) => return Ok(false),
            }
            if self.buffer.len() >= WRITE_BATCH_BYTES {
                break;
            }
        }
        Ok(true)
    }

    async fn take(&mut self, out: Out) -> std::io::Result<()> {
        match out {
            Out::Line(line, permit) => {
                self.put(&line).await?;
                drop(permit);
            }
            Out::Attach(attachment) => {
                attachment.log.watch(&self.wake);
                self.attachments.push(*attachment);
            }
        }
        Ok(())
    }

    async fn put(&mut self, line: &[u8]) -> std::io::Result<()> {
        if line.len() < OWN_WRITE_BYTES {
            self.buffer.extend_from_slice(line);
            return Ok(());
        }
        self.flush().await?;
        (&*self.stream).write_all(line).await
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        (&*self.stream).write_all(&self.buffer).await?;
        self.buffer.clear();
        Ok(())
    }

    /// Gives each attachment a batch; true if any of them has more.
    async fn pull_all(&mut self) -> std::io::Result<bool> {
        let mut more = false;
        let mut attachments = std::mem::take(&mut self.attachments);
        let mut kept = Vec::with_capacity(attachments.len());
        for mut attachment in attachments.drain(..) {
            match self.pull(&mut attachment).await? {
                Pulled::Over => tell(&self.connection, ConnectionMsg::Over(attachment.token)),
                Pulled::More => {
                    more = true;
                    kept.push(attachment);
                }
                Pulled::All => kept.push(attachment),
            }
        }
        self.attachments = kept;
        Ok(more)
    }

    async fn pull(&mut self, attachment: &mut Attachment) -> std::io::Result<Pulled> {
        let closed = attachment.log.is_closed();
        if attachment.cursor >= attachment.log.head() {
            return if closed { self.end_closed(attachment).await } else { Ok(Pulled::All) };
        }
        let (events, cursor) =
            match attachment.log.page(attachment.cursor, Some(&attachment.turn), WRITE_BATCH_LINES) {
                Page::Events(events, cursor) => (events, cursor),
                Page::Behind(until) => match self.stored_page(attachment, until).await {
                    Some(page) => page,
                    None => return self.end_closed(attachment).await,
                },
            };
        attachment.cursor = cursor;
        for event in &events {
            self.write_event(attachment, event).await?;
            if event.event.is_terminal() {
                return Ok(Pulled::Over);
            }
        }
        Ok(Pulled::More)
    }

    async fn write_event(&mut self, attachment: &Attachment, event: &Published) -> std::io::Result<()> {
        let tail = event.tail(attachment.log.session());
        let stamp = attachment.stamped.then(|| event.stamp(attachment.log.generation()));
        if tail.len() >= OWN_WRITE_BYTES {
            self.flush().await?;
        }
        jsonl::line(attachment.id, tail, stamp.map(|stamp| &**stamp), &mut self.buffer);
        if self.buffer.len() >= WRITE_BATCH_BYTES {
            self.flush().await?;
            self.buffer.shrink_to(2 * WRITE_BATCH_BYTES);
        }
        Ok(())
    }

    /// What the ring no longer holds.
    async fn stored_page(&self, attachment: &Attachment, until: u64) -> Option<(Vec<Arc<Published>>, u64)> {
        let (store, uid, cursor) = (self.store.clone(), attachment.uid, attachment.cursor);
        let read = tokio::task::spawn_blocking(move || replay::page(&store, uid, cursor, until)).await;
        let page =
            read.map_err(|error| error.to_string()).and_then(|page| page.map_err(|error| error.to_string()));
        let (mut events, cursor) =
            page.inspect_err(|error| tracing::error!(error, "cannot read what a client missed")).ok()?;
        events.retain(|event| event.turn == attachment.turn);
        Some((events, cursor))
    }

    /// The session let go before the turn had its end here: every request gets a terminal line.
    async fn end_closed(&mut self, attachment: &Attachment) -> std::io::Result<Pulled> {
        let text = "The session was interrupted; read it again to see how its turn ended";
        let error = WireError::new(ErrorCode::TurnFailed, text);
        self.put(&jsonl::error(attachment.id, &error, Some(attachment.log.session().as_str()))).await?;
        Ok(Pulled::Over)
    }
}

/// What an attachment has after a batch.
enum Pulled {
    All,
    More,
    Over,
}
