//! The first line of a body: whether it is a stream of events at all. A wrong base URL often leads to
//! somebody who answers 200 and something else.

use super::frames::SHOWN;
use crate::provider::failure::cut;

/// Bytes that are kept: enough for the name of a field, and for what is shown of another text.
const KEPT: usize = 256;
const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];

/// The first line as far as it is kept.
#[derive(Debug, Default)]
pub(super) struct FirstLine {
    bytes: Vec<u8>,
    ended: bool,
}

impl FirstLine {
    /// Takes the next bytes of the body.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.ended || self.bytes.len() >= KEPT {
                return;
            }
            match byte {
                b'\n' | b'\r' => self.ended = !self.bytes.is_empty(),
                byte => self.bytes.push(*byte),
            }
        }
    }

    /// The beginning of the line if no stream of events begins so. A line that was cut may be one.
    pub(super) fn foreign(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        let name = text.split_once(':').map_or(text, |(name, _)| name);
        let cut_off = !self.ended && FIELDS.iter().any(|field| field.starts_with(name));
        let known = name.is_empty() || FIELDS.contains(&name) || cut_off;
        (!known).then(|| cut(text, SHOWN).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(text: &str) -> Option<String> {
        let mut line = FirstLine::default();
        text.as_bytes().chunks(1).for_each(|byte| line.feed(byte));
        line.foreign()
    }

    #[test]
    fn streams_are_known_by_their_first_line() {
        let streams = [
            "",
            "\r\n",
            ": ping\n",
            "data: {}\n",
            "data:{}",
            "\u{feff}id: 1\n",
            "\n\nevent: x\r",
            "data\n",
            "da",
        ];
        for text in streams {
            assert_eq!(foreign(text), None, "{text:?}");
        }
        assert_eq!(foreign("Welcome!\nThis is it.").as_deref(), Some("Welcome!"));
        assert_eq!(foreign("[{\"error\":1}]").as_deref(), Some("[{\"error\":1}]"));
        assert_eq!(foreign("da\n").as_deref(), Some("da"));
        assert_eq!(foreign(&"é".repeat(400)).map(|text| text.chars().count()), Some(SHOWN));
    }
}
