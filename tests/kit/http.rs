//! Just enough HTTP/1.1 to be a provider: reading requests, writing chunks one by one.

use std::collections::HashMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use serde_json::Value;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`, `GET`.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Header names in lower case.
    pub headers: HashMap<String, String>,
    /// The body; null if there is none.
    pub body: Value,
    /// When it was there.
    pub at: Instant,
}

/// One connection of the daemon to the provider.
pub struct Connection {
    reader: BufReader<TcpStream>,
    /// The last byte of a body is only looked at, so that a reset can be made by leaving it unread.
    unread: bool,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        // A tiny buffer: what is looked at and not taken must stay with the kernel.
        Self { reader: BufReader::with_capacity(1, stream), unread: false }
    }

    /// The next request; `None` when the daemon has closed the connection.
    pub fn request(&mut self) -> io::Result<Option<Request>> {
        let Some(first) = self.line()? else { return Ok(None) };
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = HashMap::new();
        while let Some(line) = self.line()?.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let body = self.body(length)?;
        Ok(Some(Request { method, path, headers, body, at: Instant::now() }))
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end().to_owned()))
    }

    fn body(&mut self, length: usize) -> io::Result<Value> {
        let Some(taken) = length.checked_sub(1) else { return Ok(Value::Null) };
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body[..taken])?;
        let peeked = self.reader.get_ref().peek(&mut body[taken..])?;
        self.unread = peeked == 1;
        Ok(serde_json::from_slice(&body).unwrap_or(Value::Null))
    }

    /// Takes the rest of the request, so that closing is no reset.
    pub fn take_rest(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.unread) {
            self.reader.read_exact(&mut [0])?;
        }
        Ok(())
    }

    /// Writes `bytes` as they are, at once.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let stream = self.reader.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    /// Writes `bytes` as one HTTP chunk.
    pub fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
        chunk.extend_from_slice(bytes);
        chunk.extend_from_slice(b"\r\n");
        self.write(&chunk)
    }

    /// Whether the daemon has hung up.
    pub fn is_gone(&self) -> bool {
        if self.unread {
            // Bytes of the request are in the way: only a failed write will tell.
            return false;
        }
        let stream = self.reader.get_ref();
        if stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = stream.peek(&mut [0]);
        let restored = stream.set_nonblocking(false);
        let waiting = peeked.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        restored.is_err() || !(waiting || peeked.is_ok_and(|bytes| bytes > 0))
    }

    /// Waits until the daemon hangs up.
    pub fn wait_until_gone(&mut self) {
        let mut byte = [0];
        while self.reader.get_ref().peek(&mut byte).is_ok_and(|bytes| bytes > 0) {
            if self.reader.read_exact(&mut byte).is_err() {
                return;
            }
        }
    }
}
