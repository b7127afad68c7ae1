//! The canonical events of a session (contract 3, extensions 6): what happened, before any dialect.

use serde_json::{Map, Value};

use crate::error::ErrorCode;

/// What kind of node a `workflow` event draws (contract 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkflowKind {
    /// The turn begins; step 0.
    Start,
    /// A model step begins.
    Think,
    /// A tool call begins.
    Tool,
    /// The workspace is being checked.
    Verify,
    /// A failed check is being repaired.
    Repair,
    /// The history is being compacted.
    Compact,
    /// The turn is done.
    Done,
    /// The turn failed or was cancelled.
    Error,
}

impl WorkflowKind {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Think => "think",
            Self::Tool => "tool",
            Self::Verify => "verify",
            Self::Repair => "repair",
            Self::Compact => "compact",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

/// How a tool call ended (extensions 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolOutcome {
    /// It did what was asked.
    Ok,
    /// It ran and failed, or its arguments were wrong.
    Failed,
    /// A rule refused it.
    Denied,
    /// It was cancelled while it ran or before it ran.
    Cancelled,
    /// It may or may not have happened.
    Uncertain,
}

impl ToolOutcome {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Uncertain => "uncertain",
        }
    }
}

/// What one model call used (contract 3.1, `usage`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Prompt tokens that are counted as input.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Prompt tokens with cache reads and writes.
    pub total_input_tokens: u64,
    /// Prompt tokens read from a cache.
    pub cached_input_tokens: u64,
    /// Time of the whole call.
    pub elapsed_ms: f64,
}

/// A call whose effect is unknown (extensions 6, `recovered`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncertainCall {
    /// Id of the call.
    pub call_id: String,
    /// Tool name.
    pub tool: String,
    /// First arguments, readable.
    pub summary: String,
}

/// One event of a session. Texts are complete; nothing here depends on a dialect.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Reasoning text as it streams.
    Thinking {
        /// The new characters.
        text: String,
    },
    /// Answer text as it streams.
    Delta {
        /// The new characters.
        text: String,
    },
    /// Guidance is now part of the conversation.
    Steer {
        /// The guidance.
        text: String,
    },
    /// Short phase label (contract 3.2).
    Status {
        /// The label.
        label: String,
        /// Ours (ruling 32): `{position}` of a queued prompt, waits.
        details: Option<Map<String, Value>>,
    },
    /// A node of the client's chart.
    Workflow {
        /// 0 for the start, then counted from 1, never decreasing within a turn.
        step: u32,
        /// Kind of node.
        kind: WorkflowKind,
        /// Text shown verbatim.
        label: String,
        /// More text, if there is any.
        detail: Option<String>,
    },
    /// A model call begins.
    ModelStart {
        /// Provider id.
        provider: String,
        /// Model id within the provider.
        model: String,
        /// Step of the turn, from 1.
        step: u32,
    },
    /// A model call ended, also a failed one (zeros).
    Usage {
        /// Provider id.
        provider: String,
        /// Model id within the provider.
        model: String,
        /// Figures.
        usage: Usage,
    },
    /// An image was shown to the model.
    ImageView {
        /// Image id.
        image_id: String,
        /// Stored name.
        name: String,
        /// MIME type.
        media_type: String,
    },
    /// A tool begins.
    ToolStart {
        /// Id of the call.
        call_id: String,
        /// Tool name.
        tool: String,
        /// First arguments, readable.
        summary: String,
    },
    /// A tool ended.
    ToolDone {
        /// Id of the call.
        call_id: String,
        /// One line.
        summary: String,
        /// How it ended; `success` on the wire is `outcome == Ok`.
        outcome: ToolOutcome,
        /// How long it ran.
        duration_ms: f64,
        /// Bytes of UTF-8 that the model did not get to see.
        omitted_bytes: u64,
    },
    /// A tool changed a file.
    FileDiff {
        /// Id of the call.
        call_id: String,
        /// Path relative to the workspace.
        path: String,
        /// Unified diff, 3 context lines.
        diff: String,
    },
    /// The step failed and starts again; text in the range is withdrawn (extensions 6).
    Retry {
        /// One readable line.
        line: String,
        /// Restart number, from 1.
        attempt: u32,
        /// Restarts allowed.
        of: u32,
        /// Wait before the restart.
        delay_ms: u64,
        /// What failed.
        reason: String,
        /// Code of the failure.
        code: ErrorCode,
        /// First withdrawn sequence number.
        from_seq: u64,
        /// Last withdrawn sequence number.
        to_seq: u64,
        /// Withdrawn characters.
        chars: u64,
    },
    /// Something the user should know that does not end the turn.
    Warning {
        /// Readable text.
        text: String,
        /// Stable name of the cause.
        code: String,
    },
    /// Another model answers from here on (ruling 11).
    ProviderSwitched {
        /// Model reference that failed.
        from: String,
        /// Model reference that is asked next.
        to: String,
        /// Why.
        reason: String,
    },
    /// The work was checked (extensions 6).
    Verification {
        /// What was run.
        command: String,
        /// Whether it passed.
        ok: bool,
        /// Exit code, if there was one.
        exit_code: Option<i32>,
        /// End of its output.
        tail: String,
    },
    /// The turn survived a crash, or was closed after one (extensions 6).
    Recovered {
        /// What happened, readable.
        reason: String,
        /// Calls whose effect is unknown.
        uncertain: Vec<UncertainCall>,
    },
    /// The turn is done.
    Done {
        /// Last non-empty assistant text of the turn.
        text: String,
    },
    /// The turn was cancelled.
    Cancelled {
        /// Text of the last step that had any.
        text: String,
    },
    /// The turn failed.
    Error {
        /// Stable code.
        code: ErrorCode,
        /// Readable text.
        message: String,
        /// When to try again, in milliseconds.
        retry_after_ms: Option<u64>,
    },
}

impl Event {
    /// Every name that [`Self::name`] can give.
    pub const NAMES: &[&str] = &[
        "thinking",
        "delta",
        "steer",
        "status",
        "workflow",
        "model_start",
        "usage",
        "image_view",
        "tool_start",
        "tool_done",
        "file_diff",
        "retry",
        "warning",
        "provider_switched",
        "verification",
        "recovered",
        "done",
        "cancelled",
        "error",
    ];

    /// The name on the wire.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Thinking { .. } => "thinking",
            Self::Delta { .. } => "delta",
            Self::Steer { .. } => "steer",
            Self::Status { .. } => "status",
            Self::Workflow { .. } => "workflow",
            Self::ModelStart { .. } => "model_start",
            Self::Usage { .. } => "usage",
            Self::ImageView { .. } => "image_view",
            Self::ToolStart { .. } => "tool_start",
            Self::ToolDone { .. } => "tool_done",
            Self::FileDiff { .. } => "file_diff",
            Self::Retry { .. } => "retry",
            Self::Warning { .. } => "warning",
            Self::ProviderSwitched { .. } => "provider_switched",
            Self::Verification { .. } => "verification",
            Self::Recovered { .. } => "recovered",
            Self::Done { .. } => "done",
            Self::Cancelled { .. } => "cancelled",
            Self::Error { .. } => "error",
        }
    }

    /// Whether nothing of the turn follows this event.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Cancelled { .. } | Self::Error { .. })
    }

    /// Whether this is streamed text: kept in memory until its step ends, never a row of its own.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Thinking { .. } | Self::Delta { .. })
    }
}
