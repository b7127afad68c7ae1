//! Both output pipes of a command, read at the same time.

use std::time::Duration;

use process_wrap::tokio::ChildWrapper;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Instant, sleep_until};

use super::capture::{Capture, Output};

/// Bytes of one read: the size of a pipe.
const READ_BYTES: usize = 64 * 1024;
/// How long an open pipe is read after the command has ended: a process it left may hold it for ever.
const DRAIN_GRACE: Duration = Duration::from_millis(200);
/// More than two pipes can hold: what comes beyond it was written after the command had ended.
const DRAIN_BYTES: u64 = 4 * 1024 * 1024;

/// The pipes and what came out of them.
#[derive(Debug)]
pub(super) struct Pipes {
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
}

impl Pipes {
    /// Takes the pipes of `child`.
    pub(super) fn of(child: &mut dyn ChildWrapper) -> Self {
        Self { stdout: Pipe::new(child.stdout().take()), stderr: Pipe::new(child.stderr().take()) }
    }

    /// Whether something may still come.
    pub(super) fn is_open(&self) -> bool {
        self.stdout.reader.is_some() || self.stderr.reader.is_some()
    }

    /// Waits for the next output of either and keeps it.
    pub(super) async fn fill(&mut self) {
        tokio::select! {
            () = self.stdout.fill(), if self.stdout.reader.is_some() => {}
            () = self.stderr.fill(), if self.stderr.reader.is_some() => {}
            else => {}
        }
    }

    /// Reads what the ended command has left in the pipes.
    pub(super) async fn drain(&mut self) {
        let end = Instant::now() + DRAIN_GRACE;
        let before = self.bytes();
        while self.is_open() {
            tokio::select! {
                biased;
                () = self.fill() => {}
                () = sleep_until(end) => return,
            }
            if Instant::now() >= end && self.bytes() - before > DRAIN_BYTES {
                return;
            }
        }
    }

    /// Closes them.
    pub(super) fn finish(self) -> (Output, Output) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }

    fn bytes(&self) -> u64 {
        self.stdout.capture.total() + self.stderr.capture.total()
    }
}

#[derive(Debug)]
struct Pipe<R> {
    reader: Option<R>,
    capture: Capture,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>) -> Self {
        Self { reader, capture: Capture::default(), buffer: vec![0; READ_BYTES] }
    }

    async fn fill(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        match reader.read(&mut self.buffer).await {
            Ok(0) | Err(_) => self.reader = None,
            Ok(count) => self.capture.push(self.buffer.get(..count).unwrap_or_default()),
        }
    }
}
