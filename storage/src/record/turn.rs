//! Turns that are not finished: what a start after a crash must settle.

use serde::{Deserialize, Serialize};

use super::session::SessionKey;

/// Row of an open turn, newest version.
pub type TurnRow = TurnRowV1;

/// Version 1 of an open turn's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRowV1 {
    /// The session's uid.
    pub session: u64,
    /// Where the session is found.
    pub key: SessionKey,
    /// Turn id.
    pub turn: String,
    /// Seq of its prompt: turns of a session run in this order.
    pub prompt_seq: u64,
    /// False while it waits behind another turn.
    pub running: bool,
    /// Ends with its client's connection.
    pub client_owned: bool,
    /// Client id, empty for a client that said no hello.
    pub client: String,
    /// When it was accepted, milliseconds since the epoch.
    pub accepted_at: i64,
    /// When it last made durable progress, milliseconds since the epoch.
    pub touched_at: i64,
    /// Deaths of the daemon while it was open (ruling 10).
    pub deaths: u32,
    /// Per-turn mode, empty for none (ruling 14).
    pub mode: String,
    /// Per-turn model, empty for none (ruling 14).
    pub model: String,
}
