//! The row of a session: what lists, headers and a quick open need without reading the log.

use seekclaw_protocol::ReasoningLevel;
use serde::{Deserialize, Serialize};

/// Row of a session, newest version.
pub type SessionRow = SessionRowV1;

/// Where a session is found: its scope and its id (contract 2.1).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// `global` or `workspace|<root>` (contract 11).
    pub scope: String,
    /// Session id.
    pub id: String,
}

/// Version 1 of a session's row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRowV1 {
    /// Key of its log, turns and images; random, never reused.
    pub uid: u64,
    /// Where it is found.
    pub key: SessionKey,
    /// Workspace root, empty for a global session.
    pub workspace: String,
    /// Title, empty for none.
    pub title: String,
    /// Hidden from lists unless asked for.
    pub archived: bool,
    /// Reasoning level of its turns.
    pub reasoning: ReasoningLevel,
    /// Whether web tools are offered.
    pub network: bool,
    /// Model calls so far.
    pub llm_rounds: u64,
    /// Workflow steps so far.
    pub execution_steps: u64,
    /// Input tokens so far.
    pub input_tokens: u64,
    /// Input tokens with cache so far.
    pub total_input_tokens: u64,
    /// Cache reads so far.
    pub cached_input_tokens: u64,
    /// Output tokens so far.
    pub output_tokens: u64,
    /// Time of model calls so far.
    pub output_elapsed_ms: u64,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// Milliseconds since the epoch; orders the lists.
    pub updated_at: i64,
    /// Incarnations so far; part of a cursor.
    pub generation: u64,
    /// No sequence number at or above this one was ever shown to anyone.
    pub seq_reserved: u64,
    /// Messages in the history, for `session.truncate` and lists.
    pub messages: u64,
}
