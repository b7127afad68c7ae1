//! History as a fold of the session log. Whoever needs the conversation, the model or `session.get`,
//! gets it from here.

use std::collections::HashMap;

use seekclaw_storage::record::log::{
    Answer, Body, CallResult, Entry, Guidance, ImageRef, Notice, Outcome, Prompt, Seen,
};

use super::{Image, Message, Origin, Role};

/// First words of a message that stands where a turn was cut (ruling 10).
pub(crate) const INTERRUPTED: &str = ">>> [Interrupted]";

/// The conversation so far.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Messages in order.
    pub(crate) messages: Vec<Message>,
    /// What the session has seen of files, newest last.
    pub(crate) seen: Vec<Seen>,
    prompts: HashMap<String, Prompt>,
    guidance: HashMap<String, Guidance>,
    diffs: HashMap<String, (String, String)>,
}

impl History {
    /// Takes the next entry of the log.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        match &entry.body {
            Body::Prompt(prompt) => {
                self.prompts.insert(entry.turn.clone(), prompt.clone());
            }
            Body::Started(started) if started.attempt == 0 => self.user_prompt(&entry.turn),
            Body::Returned(returned) => self.returned(&entry.turn, returned.unanswered, &returned.reason),
            Body::Guidance(guidance) => {
                self.guidance.insert(guidance.id.clone(), guidance.clone());
            }
            Body::Applied(applied) => self.applied(&applied.guidance),
            Body::Answer(answer) => self.messages.push(assistant(answer)),
            Body::Result(result) => self.result(result),
            Body::Note(note) => self.messages.push(Message::note(note.text.clone())),
            Body::Truncated(cut) => {
                self.messages.truncate(usize::try_from(cut.keep).unwrap_or(usize::MAX));
            }
            Body::Notice(Notice::FileDiff { call, path, diff }) => {
                self.diffs.insert(call.clone(), (path.clone(), diff.clone()));
            }
            Body::Started(_) | Body::Intent(_) | Body::Finished(_) | Body::Notice(_) => {}
        }
    }

    fn user_prompt(&mut self, turn: &str) {
        if let Some(prompt) = self.prompts.remove(turn) {
            self.messages.push(user(&prompt.text, &prompt.images));
        }
    }

    fn returned(&mut self, turn: &str, unanswered: bool, reason: &str) {
        let Some(prompt) = self.prompts.remove(turn).filter(|_| unanswered) else { return };
        self.messages.push(user(&prompt.text, &prompt.images));
        self.messages.push(Message::new(Role::Assistant, format!("{INTERRUPTED} Not answered: {reason}")));
    }

    fn applied(&mut self, id: &str) {
        if let Some(guidance) = self.guidance.remove(id) {
            let message = user(&guidance.text, &guidance.images);
            self.messages.push(Message { origin: Origin::Guidance, ..message });
        }
    }

    fn result(&mut self, result: &CallResult) {
        self.seen.extend(result.seen.iter().cloned());
        let (file, diff) = self.diffs.remove(&result.call).unwrap_or_default();
        let mut message = Message::new(Role::Tool, result.text.clone());
        message.call_id.clone_from(&result.call);
        message.tool.clone_from(&result.tool);
        message.success = result.outcome == Outcome::Ok;
        message.images = result.images.iter().map(image).collect();
        (message.file, message.diff) = (file, diff);
        self.messages.push(message);
    }
}

/// How many messages `body` adds to the history, for the count in the session's row.
pub(crate) fn messages_added(body: &Body) -> u64 {
    match body {
        Body::Started(started) => u64::from(started.attempt == 0),
        Body::Returned(returned) => 2 * u64::from(returned.unanswered),
        Body::Applied(_) | Body::Answer(_) | Body::Result(_) | Body::Note(_) => 1,
        Body::Prompt(_)
        | Body::Guidance(_)
        | Body::Intent(_)
        | Body::Truncated(_)
        | Body::Finished(_)
        | Body::Notice(_) => 0,
    }
}

fn user(text: &str, images: &[ImageRef]) -> Message {
    let mut message = Message::new(Role::User, text);
    message.images = images.iter().map(image).collect();
    message
}

fn assistant(answer: &Answer) -> Message {
    let mut message = Message::new(Role::Assistant, answer.text.clone());
    message.thinking.clone_from(&answer.thinking);
    message.model.clone_from(&answer.model);
    message.calls.clone_from(&answer.calls);
    message.viewed = answer.viewed.iter().map(image).collect();
    message
}

/// An image of the conversation without its bytes.
pub(crate) fn image(stored: &ImageRef) -> Image {
    Image {
        id: stored.id.clone(),
        name: stored.name.clone(),
        media_type: stored.media_type.clone(),
        size: stored.size,
        bytes: None,
    }
}

#[cfg(test)]
mod tests {
    use seekclaw_protocol::{Mode, ReasoningLevel};
    use seekclaw_storage::record::log::{Applied, Note, Started};

    use super::*;

    fn entry(body: Body) -> Entry {
        Entry { seq: 1, at: 1, turn: "t".to_owned(), body }
    }

    #[test]
    fn messages_in_the_users_role_say_where_they_come_from() {
        let mut history = History::default();
        let (model, client) = (String::new(), String::new());
        let (mode, reasoning) = (Mode::Edit, ReasoningLevel::None);
        let guidance = Guidance { id: "g".to_owned(), text: "more".to_owned(), images: Vec::new() };
        let bodies = [
            Body::Prompt(Prompt { text: "ask".to_owned(), images: Vec::new(), client }),
            Body::Started(Started { attempt: 0, mode, reasoning, model }),
            Body::Guidance(guidance),
            Body::Applied(Applied { guidance: "g".to_owned(), text: "more".to_owned() }),
            Body::Note(Note { text: "the check failed".to_owned() }),
        ];
        bodies.into_iter().for_each(|body| history.apply(&entry(body)));
        let origins: Vec<(&str, Origin)> =
            history.messages.iter().map(|message| (message.text.as_str(), message.origin)).collect();
        assert_eq!(
            origins,
            [("ask", Origin::Prompt), ("more", Origin::Guidance), ("the check failed", Origin::Note)]
        );
    }
}
