//! One line from the daemon, and its bounded, cancel-safe reader.

use bytes::{Bytes, BytesMut};
use seekclaw_protocol::{ErrorCode, RequestId};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Longest line taken from a daemon. A whole session with its images is one line, so this is far above what
/// the daemon takes from us; it is where the desktop's own buffer ends.
const MAX_INCOMING_BYTES: usize = 512 * 1024 * 1024;

/// Room that one read asks for.
const READ_BYTES: usize = 64 * 1024;

/// One event line.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Line {
    /// The request it belongs to; 0 for broadcasts and what cannot be attributed.
    pub(crate) id: RequestId,
    /// Name of the event.
    pub(crate) event: String,
    /// Its text.
    #[serde(default)]
    pub(crate) data: String,
    /// Members that depend on the event.
    #[serde(default)]
    pub(crate) details: Map<String, Value>,
    /// The line as it came, without its end.
    #[serde(skip)]
    pub(crate) raw: Bytes,
}

impl Line {
    /// Reads one line; `None` is not an event line.
    pub(crate) fn parse(raw: &Bytes) -> Option<Self> {
        let line: Self = serde_json::from_slice(raw).ok()?;
        Some(Self { raw: raw.clone(), ..line })
    }

    /// Whether nothing follows it for its id.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.event.as_str(), "pong" | "result" | "done" | "cancelled" | "error" | "bye")
    }

    /// The code of an `error` line.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.text("code").and_then(ErrorCode::parse)
    }

    /// A text member of the details.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.details.get(name).and_then(Value::as_str)
    }

    /// A number of the details that is no negative integer.
    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        self.details.get(name).and_then(Value::as_u64)
    }
}

/// Why no further line can be had.
#[derive(Debug)]
pub(crate) enum LineError {
    /// The socket failed.
    Io(std::io::Error),
    /// The line has no end within the bound.
    TooLong,
}

/// Splits bytes into lines. Dropping `next` midway loses nothing: what was read stays in the buffer.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    scanned: usize,
}

impl Lines {
    /// The next line that is not blank, without its end; `None` once the peer has closed.
    pub(crate) async fn next(
        &mut self,
        mut source: impl AsyncRead + Unpin,
    ) -> Result<Option<Bytes>, LineError> {
        loop {
            while let Some(line) = self.take_line() {
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
            }
            if self.buffer.len() > MAX_INCOMING_BYTES {
                return Err(LineError::TooLong);
            }
            self.buffer.reserve(READ_BYTES);
            if source.read_buf(&mut self.buffer).await.map_err(LineError::Io)? == 0 {
                return Ok(None);
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
        let Some(at) = fresh.iter().position(|byte| *byte == b'\n') else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + at + 1);
        self.scanned = 0;
        line.truncate(line.len() - 1);
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        Some(line.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8], step: usize) -> Vec<String> {
        let mut builder = Vec::new();
        for part in bytes.chunks(step) {
            builder.push(std::io::Cursor::new(part.to_vec()));
        }
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for part in &mut builder {
            while let Some(line) = lines.next(&mut *part).await.unwrap() {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        found
    }

    #[tokio::test]
    async fn lines_are_the_same_however_the_bytes_arrive() {
        let bytes = "{\"a\":1}\r\n\n  \n{\"b\":\"é\"}\n{\"cut".as_bytes();
        for step in 1..bytes.len() {
            assert_eq!(all(bytes, step).await, ["{\"a\":1}", "{\"b\":\"é\"}"]);
        }
    }

    #[test]
    fn a_line_knows_its_members() {
        let raw = Bytes::from_static(
            br#"{"id":7,"event":"error","data":"no","sessionId":"s","details":{"code":"queue_full","n":3}}"#,
        );
        let line = Line::parse(&raw).unwrap();
        assert!(line.is_terminal());
        assert_eq!(line.code(), Some(ErrorCode::QueueFull));
        assert_eq!(line.count("n"), Some(3));
        assert_eq!(line.raw, raw);
        assert!(Line::parse(&Bytes::from_static(b"[1]")).is_none());
    }
}
