//! The event log of a session: the only truth from which history, counters and replay are folded.

use seekclaw_protocol::{Mode, ReasoningLevel};
use serde::{Deserialize, Serialize};

/// One entry of a session's log, newest version.
pub type Entry = EntryV1;

/// Version 1 of a log entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryV1 {
    /// Rises within a session for ever, never used twice.
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// Turn that it belongs to, empty if none.
    pub turn: String,
    /// What happened.
    pub body: Body,
}

/// What happened. Append variants only: the position is the stored tag.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// A prompt was accepted; it enters the history where its turn starts.
    Prompt(Prompt),
    /// A queued prompt will not run.
    Returned(Returned),
    /// The turn runs; once per start, restarts included.
    Started(Started),
    /// Guidance was accepted; it enters the history where it is applied.
    Guidance(Guidance),
    /// Guidance became part of the conversation.
    Applied(Applied),
    /// A model answer, whole or cut.
    Answer(Answer),
    /// A mutating call is about to have its effect.
    Intent(Intent),
    /// A call has its result.
    Result(CallResult),
    /// A message of ours to the model, in the user's role.
    Note(Note),
    /// Only the first `keep` messages of the history so far count from here on.
    Truncated(Truncated),
    /// The turn ended.
    Finished(Finished),
    /// An event that only watchers need.
    Notice(Notice),
}

/// An image that a message refers to; its bytes are in the image table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRef {
    /// Id within the session.
    pub id: String,
    /// Stored name.
    pub name: String,
    /// MIME type.
    pub media_type: String,
    /// Decoded bytes.
    pub size: u64,
}

/// An accepted prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prompt {
    /// The user's text.
    pub text: String,
    /// The user's images.
    pub images: Vec<ImageRef>,
    /// Client id, empty for a client that said no hello.
    pub client: String,
}

/// Why a queued prompt will not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Returned {
    /// Kept in the history, marked unanswered (ruling 37); false if it was cancelled (ruling 8).
    pub unanswered: bool,
    /// Readable reason.
    pub reason: String,
}

/// What a turn captured when it started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// 0 for the first start.
    pub attempt: u32,
    /// Mode that holds for the whole turn.
    pub mode: Mode,
    /// Level that holds for the whole turn.
    pub reasoning: ReasoningLevel,
    /// Per-turn model choice, empty for none.
    pub model: String,
}

/// Accepted guidance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guidance {
    /// Id within the turn.
    pub id: String,
    /// The guidance.
    pub text: String,
    /// Its images.
    pub images: Vec<ImageRef>,
}

/// Guidance that the model sees from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Id of the guidance.
    pub guidance: String,
    /// Its text, so that a watcher needs no other record.
    pub text: String,
}

/// A call that a model asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The provider's id.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// Arguments as the model wrote them.
    pub arguments: String,
}

/// What a run of streamed characters was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Streamed {
    /// Reasoning.
    Thinking,
    /// Answer text.
    Text,
}

/// One delta of the answer: where it ends is the sum of the lengths before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Sequence number of the delta.
    pub seq: u64,
    /// Which text it extended.
    pub kind: Streamed,
    /// Bytes of UTF-8 that it added.
    pub bytes: u32,
}

/// A model answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Step of the turn, from 1.
    pub step: u32,
    /// `provider/model` that answered.
    pub model: String,
    /// Reasoning.
    pub thinking: String,
    /// Answer text.
    pub text: String,
    /// Delta boundaries, in order.
    pub marks: Vec<Mark>,
    /// Calls, in order; never empty arguments repaired in place.
    pub calls: Vec<Call>,
    /// Images that the model was shown in this step.
    pub viewed: Vec<ImageRef>,
    /// Why it ended.
    pub end: AnswerEnd,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerEnd {
    /// The model was done.
    Complete,
    /// The output cap cut it; none of its calls runs (ruling 35).
    Capped,
    /// Cancelled; what had streamed is kept.
    Cancelled,
    /// The turn was closed after a crash or its last failed restart; what had streamed is kept.
    Interrupted,
}

/// What a mutating call is about to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Intent {
    /// Id of the call.
    pub call: String,
    /// Tool name.
    pub tool: String,
    /// What will be touched.
    pub effect: Effect,
}

/// An effect on the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// A file is replaced.
    File {
        /// Canonical path.
        path: String,
        /// SHA-256 of the content that was seen, hex; empty if the file is new.
        before: String,
        /// SHA-256 of the content that will be there, hex.
        after: String,
    },
    /// A command runs.
    Command {
        /// The command line.
        command: String,
        /// Where it runs.
        cwd: String,
    },
    /// Something else that cannot be repeated.
    Other {
        /// Readable description.
        what: String,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It did what was asked.
    Ok,
    /// It ran and failed.
    Failed,
    /// A rule refused it.
    Denied,
    /// It was cancelled.
    Cancelled,
    /// It may or may not have happened.
    Uncertain,
}

/// The content of a file that the session has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Canonical path.
    pub path: String,
    /// SHA-256 of the content, hex; empty if it is known to be gone.
    pub hash: String,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// Id of the call.
    pub call: String,
    /// Tool name.
    pub tool: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What the model sees.
    pub text: String,
    /// One line for people.
    pub summary: String,
    /// How long it ran, in microseconds.
    pub took_us: u64,
    /// Bytes of UTF-8 left out of `text`.
    pub omitted: u64,
    /// Files seen or written, with their content.
    pub seen: Vec<Seen>,
    /// Images attached to the result.
    pub images: Vec<ImageRef>,
}

/// A message of ours to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Its text.
    pub text: String,
}

/// History cut by the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truncated {
    /// Messages kept, from the beginning.
    pub keep: u64,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Finished {
    /// The model was done, or a limit ended it.
    Done {
        /// Last non-empty assistant text.
        text: String,
    },
    /// Somebody cancelled it.
    Cancelled {
        /// Text of the last step that had any.
        text: String,
    },
    /// It failed.
    Failed {
        /// Stable code.
        code: String,
        /// Readable text.
        message: String,
        /// When to try again, in milliseconds; 0 for no advice.
        retry_after_ms: u64,
    },
}

/// Events that only watchers need. Append variants only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Notice {
    /// `status`.
    Status {
        /// The label.
        label: String,
        /// Position in the queue, 0 if it is none of that.
        position: u32,
        /// Wait in milliseconds, 0 if it is none of that.
        wait_ms: u64,
    },
    /// `workflow`.
    Workflow {
        /// Step.
        step: u32,
        /// Position in the list of the contract: start, think, tool, verify, repair, compact, done, error.
        kind: u8,
        /// Label.
        label: String,
        /// Detail, empty for none.
        detail: String,
    },
    /// `model_start`.
    ModelStart {
        /// Provider id.
        provider: String,
        /// Model id.
        model: String,
        /// Step.
        step: u32,
    },
    /// `usage`.
    Usage {
        /// Provider id.
        provider: String,
        /// Model id.
        model: String,
        /// Input tokens.
        input: u64,
        /// Output tokens.
        output: u64,
        /// Input tokens with cache.
        total_input: u64,
        /// Cache reads.
        cached: u64,
        /// Microseconds of the call.
        took_us: u64,
    },
    /// `image_view`.
    ImageView(ImageRef),
    /// `tool_start`.
    ToolStart {
        /// Call id.
        call: String,
        /// Tool.
        tool: String,
        /// Summary of the arguments.
        summary: String,
    },
    /// `file_diff`.
    FileDiff {
        /// Call id.
        call: String,
        /// Path relative to the workspace.
        path: String,
        /// Unified diff.
        diff: String,
    },
    /// `retry`.
    Retry {
        /// Readable line.
        line: String,
        /// Restart, from 1.
        attempt: u32,
        /// Restarts allowed.
        of: u32,
        /// Wait.
        delay_ms: u64,
        /// Reason.
        reason: String,
        /// Code.
        code: String,
        /// First withdrawn seq.
        from_seq: u64,
        /// Last withdrawn seq.
        to_seq: u64,
        /// Withdrawn characters.
        chars: u64,
    },
    /// `warning`.
    Warning {
        /// Text.
        text: String,
        /// Name of the cause.
        code: String,
    },
    /// `provider_switched`.
    ProviderSwitched {
        /// From.
        from: String,
        /// To.
        to: String,
        /// Why.
        reason: String,
    },
    /// `recovered`.
    Recovered {
        /// Reason.
        reason: String,
        /// Call id, tool, summary of each call with an unknown effect.
        uncertain: Vec<(String, String, String)>,
    },
    /// `verification`.
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
}
