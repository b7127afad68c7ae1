//! A conversation as a model needs it: folded from the session log, fitted and repaired before each request.

pub(crate) mod check;
pub(crate) mod fold;

use std::sync::Arc;

pub use seekclaw_storage::record::log::Call;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user, or a note of ours in the user's place.
    User,
    /// The model.
    Assistant,
    /// The result of a call.
    Tool,
}

/// Where a message in the user's role comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The message that began a turn.
    #[default]
    Prompt,
    /// Guidance for the running turn.
    Guidance,
    /// A note of ours, which nobody asked for.
    Note,
}

/// An image of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    /// Id within the session.
    pub id: String,
    /// Stored name.
    pub name: String,
    /// MIME type.
    pub media_type: String,
    /// Decoded size in bytes.
    pub size: u64,
    /// The bytes, once they have been loaded.
    pub bytes: Option<Arc<Vec<u8>>>,
}

/// One message of a conversation. Fields that do not belong to the role are empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// User: where it comes from.
    pub origin: Origin,
    /// The text.
    pub text: String,
    /// Attached images.
    pub images: Vec<Image>,
    /// Assistant: reasoning.
    pub thinking: String,
    /// Assistant: `provider/model` that answered.
    pub model: String,
    /// Assistant: images that the model was shown in this step.
    pub viewed: Vec<Image>,
    /// Assistant: calls asked for.
    pub calls: Vec<Call>,
    /// Tool: the call that this answers.
    pub call_id: String,
    /// Tool: its name.
    pub tool: String,
    /// Tool: whether it did what was asked; true for other roles.
    pub success: bool,
    /// Tool: unified diff of the file it changed.
    pub diff: String,
    /// Tool: workspace-relative path of that file.
    pub file: String,
}

impl Message {
    /// A message of `role` with nothing but text.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            origin: Origin::default(),
            text: text.into(),
            images: Vec::new(),
            thinking: String::new(),
            model: String::new(),
            viewed: Vec::new(),
            calls: Vec::new(),
            call_id: String::new(),
            tool: String::new(),
            success: true,
            diff: String::new(),
            file: String::new(),
        }
    }

    /// A note of ours to the model.
    #[must_use]
    pub fn note(text: impl Into<String>) -> Self {
        Self { origin: Origin::Note, ..Self::new(Role::User, text) }
    }
}
