//! Server-sent events from bytes in any chunking: LF, CRLF or lone CR, comments and unknown fields
//! ignored, text decoded per event so that a split character is never damaged, memory bounded.

/// Longest line and longest event: an answer with a whole file in one call fits, a runaway server does not.
pub const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The stream is not one that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// A line or an event exceeds the cap.
    #[error("an event of the stream exceeds {} bytes", MAX_EVENT_BYTES)]
    TooLong,
}

/// Decoder of one stream.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    data: Vec<u8>,
    /// Whether the event has had a data line; an empty one counts for nothing.
    has_data: bool,
    after_cr: bool,
    started: bool,
}

impl Decoder {
    /// Takes the next bytes and appends the payload of every event that they complete.
    ///
    /// # Errors
    /// A line or an event exceeds the cap; the stream cannot be read any further.
    pub fn feed(&mut self, bytes: &[u8], payloads: &mut Vec<String>) -> Result<(), SseError> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (head, tail) = rest.split_at(at);
            let Some((&ending, tail)) = tail.split_first() else { break };
            rest = tail;
            if self.after_cr && head.is_empty() && ending == b'\n' {
                self.after_cr = false;
                continue;
            }
            self.after_cr = ending == b'\r';
            extend(&mut self.line, head)?;
            self.end_line(payloads)?;
        }
        if !rest.is_empty() {
            self.after_cr = false;
        }
        extend(&mut self.line, rest)
    }

    /// The stream has ended: an event that lacks only its blank line counts, since servers forget it.
    ///
    /// # Errors
    /// As for `feed`.
    pub fn finish(&mut self, payloads: &mut Vec<String>) -> Result<(), SseError> {
        if !self.line.is_empty() {
            self.end_line(payloads)?;
        }
        self.end_event(payloads);
        Ok(())
    }

    fn end_line(&mut self, payloads: &mut Vec<String>) -> Result<(), SseError> {
        let mut line = std::mem::take(&mut self.line);
        let mut text = line.as_slice();
        if !std::mem::replace(&mut self.started, true) {
            text = text.strip_prefix(BOM).unwrap_or(text);
        }
        if text.is_empty() {
            self.end_event(payloads);
        } else if let Some(value) = data_of(text) {
            self.add_data(value)?;
        }
        line.clear();
        self.line = line;
        Ok(())
    }

    fn add_data(&mut self, value: &[u8]) -> Result<(), SseError> {
        if std::mem::replace(&mut self.has_data, true) {
            extend(&mut self.data, b"\n")?;
        }
        extend(&mut self.data, value)
    }

    fn end_event(&mut self, payloads: &mut Vec<String>) {
        self.has_data = false;
        if self.data.iter().all(u8::is_ascii_whitespace) {
            self.data.clear();
            return;
        }
        // A stray byte spoils one character of the answer; refusing the stream would lose all of it.
        payloads.push(String::from_utf8_lossy(&self.data).into_owned());
        self.data.clear();
    }
}

/// The value of a `data` line.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data")?;
    if value.is_empty() {
        return Some(value);
    }
    let value = value.strip_prefix(b":")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

fn extend(buffer: &mut Vec<u8>, bytes: &[u8]) -> Result<(), SseError> {
    if buffer.len() + bytes.len() > MAX_EVENT_BYTES {
        return Err(SseError::TooLong);
    }
    buffer.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests;
