//! Requests without anything to do: small talk, and questions about the project as a whole.

/// Words that may follow a greeting.
const ADDRESSED: [&str; 8] = ["there", "all", "again", "you", "everyone", "seekclaw", "friend", "bot"];

/// Whether nothing is asked for.
pub(super) fn is_small_talk(text: &str) -> bool {
    const WORDS: [&str; 11] =
        ["thanks", "thank you", "please", "ok", "okay", "yes", "no", "ping", "help", "test", "bye"];
    let text = text.trim().trim_end_matches(['!', '.', '?', ' ']).to_ascii_lowercase();
    WORDS.contains(&text.as_str())
        || is_greeting(&text)
        || text.starts_with("who are you")
        || text.starts_with("what can you do")
}

fn is_greeting(text: &str) -> bool {
    const GREETINGS: [&str; 4] = ["hi", "hello", "hey", "hallo"];
    let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| GREETINGS.contains(&word)) && words.all(|word| ADDRESSED.contains(&word))
}

/// Whether a look around is an answer, as far as there is one without a language model.
pub(super) fn is_about_the_project(text: &str) -> bool {
    const STARTS: [&str; 10] = [
        "what", "which", "explain", "describe", "summar", "tell me", "give me", "show me", "overview",
        "how is",
    ];
    const PLACES: [&str; 8] =
        ["folder", "directory", "project", "repo", "workspace", "codebase", "code base", " here"];
    let text = text.trim().to_ascii_lowercase();
    let text = ["please ", "can you ", "could you "]
        .iter()
        .fold(text.as_str(), |text, polite| text.strip_prefix(polite).unwrap_or(text));
    STARTS.iter().any(|start| text.starts_with(start)) && PLACES.iter().any(|place| text.contains(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_asks_for_nothing() {
        for text in ["hi", "Hi there", "hello, seekclaw!", "Thanks.", "who are you?"] {
            assert!(is_small_talk(text), "{text}");
        }
        for text in ["hi, delete README.md", "fix the typo", "testing", ""] {
            assert!(!is_small_talk(text), "{text}");
        }
    }

    #[test]
    fn only_questions_about_the_whole_are_answered_by_looking_around() {
        for text in ["What is in this folder?", "please explain this project", "Summarize the repository"] {
            assert!(is_about_the_project(text), "{text}");
        }
        for text in ["delete this folder", "fix the typo", "what is the time?"] {
            assert!(!is_about_the_project(text), "{text}");
        }
    }
}
