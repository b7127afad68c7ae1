//! Text in files: read and written back without losing encoding, byte-order mark or line ends.

mod line_ends;

use encoding_rs::{UTF_16BE, UTF_16LE};
use sha2::{Digest, Sha256};

pub(super) use self::line_ends::{Ends, normalised, rewritten};

const BOM_UTF8: &[u8] = b"\xEF\xBB\xBF";
const BOM_UTF16_LE: &[u8] = b"\xFF\xFE";
const BOM_UTF16_BE: &[u8] = b"\xFE\xFF";

/// How the text of a file is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8 without a byte-order mark.
    Utf8,
    /// UTF-8 with one.
    Utf8Bom,
    /// UTF-16, little endian, with one.
    Utf16Le,
    /// UTF-16, big endian, with one.
    Utf16Be,
    /// Anything else: each byte stands for the character of the same number, so nothing is lost. Only
    /// ASCII means the same in it as in the text of a model.
    Bytes,
}

/// Text that the encoding of its file has no bytes for, as far as we know that encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file is neither UTF-8 nor UTF-16 with a byte-order mark, so only ASCII text can be put into it safely"
)]
pub(super) struct NotInEncoding;

impl Encoding {
    /// Takes the content of a file apart into its encoding and its text.
    pub(super) fn decode(bytes: &[u8]) -> (Self, String) {
        let utf16 = |encoding: &'static encoding_rs::Encoding, body: &[u8]| {
            encoding
                .decode_without_bom_handling_and_without_replacement(body)
                .map(std::borrow::Cow::into_owned)
        };
        let known = if let Some(body) = bytes.strip_prefix(BOM_UTF8) {
            std::str::from_utf8(body).ok().map(|text| (Self::Utf8Bom, text.to_owned()))
        } else if let Some(body) = bytes.strip_prefix(BOM_UTF16_LE) {
            utf16(UTF_16LE, body).map(|text| (Self::Utf16Le, text))
        } else if let Some(body) = bytes.strip_prefix(BOM_UTF16_BE) {
            utf16(UTF_16BE, body).map(|text| (Self::Utf16Be, text))
        } else {
            std::str::from_utf8(bytes).ok().map(|text| (Self::Utf8, text.to_owned()))
        };
        known.unwrap_or_else(|| (Self::Bytes, encoding_rs::mem::decode_latin1(bytes).into_owned()))
    }

    /// The bytes of `text`, with the byte-order mark if the encoding has one.
    pub(super) fn encode(self, text: &str) -> Vec<u8> {
        let after = |bom: &[u8], units: &mut dyn Iterator<Item = [u8; 2]>| {
            let mut bytes = bom.to_vec();
            units.for_each(|unit| bytes.extend(unit));
            bytes
        };
        match self {
            Self::Utf8 => text.as_bytes().to_vec(),
            Self::Utf8Bom => [BOM_UTF8, text.as_bytes()].concat(),
            Self::Utf16Le => after(BOM_UTF16_LE, &mut text.encode_utf16().map(u16::to_le_bytes)),
            Self::Utf16Be => after(BOM_UTF16_BE, &mut text.encode_utf16().map(u16::to_be_bytes)),
            Self::Bytes => encoding_rs::mem::encode_latin1_lossy(text).into_owned(),
        }
    }

    /// Refuses text of a model that would not mean the same in the file.
    pub(super) fn check(self, text: &str) -> Result<(), NotInEncoding> {
        if self == Self::Bytes && !text.is_ascii() { Err(NotInEncoding) } else { Ok(()) }
    }

    /// The encoding for a whole new text: the old one, if it can hold it.
    pub(super) fn for_whole(self, text: &str) -> Self {
        if self.check(text).is_ok() { self } else { Self::Utf8 }
    }

    /// `text` without a mark of its own where the encoding writes one already.
    pub(super) fn without_second_mark(self, text: &str) -> &str {
        match self {
            Self::Utf8 | Self::Bytes => text,
            Self::Utf8Bom | Self::Utf16Le | Self::Utf16Be => text.strip_prefix('\u{FEFF}').unwrap_or(text),
        }
    }
}

/// SHA-256 in hex.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xF]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

/// Text that stops growing at a number of characters and counts the bytes that it leaves out.
#[derive(Debug)]
pub(super) struct Bounded {
    text: String,
    room: usize,
    omitted: u64,
}

impl Bounded {
    /// Room for `max_chars` characters.
    pub(super) fn new(max_chars: usize) -> Self {
        Self { text: String::new(), room: max_chars, omitted: 0 }
    }

    /// Appends what fits; once something did not, nothing follows it.
    pub(super) fn push(&mut self, more: &str) {
        let end = match more.char_indices().nth(self.room) {
            _ if self.omitted > 0 => 0,
            Some((end, _)) => end,
            None => more.len(),
        };
        let (fits, left) = more.split_at(end);
        self.text.push_str(fits);
        self.room -= fits.chars().count();
        self.omitted += left.len() as u64;
    }

    /// The text, and how many bytes of UTF-8 it lacks.
    pub(super) fn finish(self) -> (String, u64) {
        (self.text, self.omitted)
    }
}

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        self.push(more);
        Ok(())
    }
}

/// The first `max_chars` characters, and how many bytes of UTF-8 follow them.
pub(super) fn budget(text: &str, max_chars: usize) -> (String, u64) {
    let mut bounded = Bounded::new(max_chars);
    bounded.push(text);
    bounded.finish()
}

/// The line that stands for what was left out of `label` (contract 5.3, ruling 20).
pub(super) fn omitted_note(label: &str, bytes: u64) -> String {
    format!("\n[{label} cut: {bytes} bytes omitted]")
}

#[cfg(test)]
mod tests;
