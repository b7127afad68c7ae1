//! Bytes to commands. Takes a permit before it reads on, so a client that floods stalls in its own write.

use std::sync::Arc;

use interprocess::local_socket::tokio::Stream;
use ractor::ActorRef;
use seekclaw_protocol::chat::session_of_refusal;
use seekclaw_protocol::limits::MAX_LINE_BYTES;
use seekclaw_protocol::method::{Command, Method};
use seekclaw_protocol::{RequestId, WireError, jsonl};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ConnectionMsg;
use crate::supervision::tell;

/// Lines longer than this are decoded off the runtime: a poll must stay below 100 µs.
const INLINE_DECODE_BYTES: usize = 64 * 1024;
/// Bytes read at once.
const READ_BUFFER: usize = 16 * 1024;

/// One line of the client.
pub(crate) struct Arrival {
    pub(super) id: RequestId,
    pub(super) command: Result<Command, Refusal>,
    pub(super) permit: OwnedSemaphorePermit,
}

/// What is wrong with a line.
pub(crate) struct Refusal {
    pub(super) error: WireError,
    pub(super) session: Option<String>,
}

/// How reading a line ended.
enum Line {
    Whole,
    Eof,
    TooLong,
}

/// Reads lines until the client goes.
pub(super) async fn run(stream: Arc<Stream>, connection: ActorRef<ConnectionMsg>, permits: Arc<Semaphore>) {
    let mut reader = BufReader::with_capacity(READ_BUFFER, &*stream);
    let mut line = Vec::new();
    let mut first = true;
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        line.clear();
        match read_line(&mut reader, &mut line).await {
            Ok(Line::TooLong) => return refuse_long_line(&connection, permit),
            Ok(Line::Eof) if line.is_empty() => return tell(&connection, ConnectionMsg::Eof),
            Ok(Line::Eof | Line::Whole) => {}
            Err(error) => return tell(&connection, ConnectionMsg::Ended(format!("cannot read: {error}"))),
        }
        if let Some((id, command)) = decode(&mut line, first).await {
            tell(&connection, ConnectionMsg::Arrived(Box::new(Arrival { id, command, permit })));
        }
        first = false;
    }
}

/// Reads up to and without the next LF. A last line may lack it.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> std::io::Result<Line> {
    loop {
        let available = reader.fill_buf().await?;
        if available.is_empty() {
            return Ok(Line::Eof);
        }
        let (part, used, whole) = match available.iter().position(|byte| *byte == b'\n') {
            Some(end) => (available.get(..end).unwrap_or_default(), end + 1, true),
            None => (available, available.len(), false),
        };
        // The line break may have two bytes, and does not count (ruling 22).
        if line.len() + part.len() > MAX_LINE_BYTES + 1 {
            return Ok(Line::TooLong);
        }
        line.extend_from_slice(part);
        reader.consume(used);
        if whole {
            let fits = line.len() <= MAX_LINE_BYTES || line.ends_with(b"\r");
            return Ok(if fits { Line::Whole } else { Line::TooLong });
        }
    }
}

async fn decode(line: &mut Vec<u8>, first: bool) -> Option<(RequestId, Result<Command, Refusal>)> {
    if line.len() <= INLINE_DECODE_BYTES {
        return decode_line(line, first);
    }
    let long = std::mem::take(line);
    tokio::task::spawn_blocking(move || decode_line(&long, first)).await.ok().flatten()
}

fn decode_line(line: &[u8], first: bool) -> Option<(RequestId, Result<Command, Refusal>)> {
    let request = match jsonl::decode(line, first) {
        Ok(request) => request?,
        Err(refused) => return Some((refused.id, Err(Refusal { error: refused.error, session: None }))),
    };
    let command = Method::resolve(&request.method).map_err(|error| Refusal { error, session: None });
    let command = command.and_then(|method| {
        Command::decode(method, &request.params).map_err(|error| {
            let session = session_of_refusal(method, &request.params, &error).map(str::to_owned);
            Refusal { error, session }
        })
    });
    Some((request.id, command))
}

/// The rest of the line cannot be told from the next one: the client hears why and is let go.
fn refuse_long_line(connection: &ActorRef<ConnectionMsg>, permit: OwnedSemaphorePermit) {
    let error = jsonl::too_long();
    let command = Err(Refusal { error, session: None });
    tell(connection, ConnectionMsg::Arrived(Box::new(Arrival { id: 0, command, permit })));
    tell(connection, ConnectionMsg::Eof);
}
