//! `daemon logs`: what the daemon in the background wrote.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use clap::Args;

use crate::commands::Context;
use crate::output::{note, print_bytes};
use crate::status::{Failure, Status};

/// Between two looks at a log that is followed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Bytes of one look; more is taken with the next.
const MAX_READ: u64 = 4 * 1024 * 1024;

/// Arguments of `daemon logs`.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LogsArgs {
    /// Go on and show what is written from now on
    #[arg(long, short)]
    follow: bool,
    /// Lines to show
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100)]
    lines: usize,
}

/// Shows the end of the log, and follows it if wanted.
pub(super) async fn run(context: &Context, args: &LogsArgs) -> anyhow::Result<Status> {
    let path = context.place.log();
    let mut from = match tail(&path, args.lines) {
        Ok((bytes, end)) => {
            print_bytes(&bytes)?;
            end
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            note(&format!("no log yet at {}", path.display()));
            0
        }
        Err(error) => return Err(unreadable(&path, &error).into()),
    };
    if !args.follow {
        return Ok(Status::Done);
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let (bytes, end) =
            read_from(&path, from).or_else(absent).map_err(|error| unreadable(&path, &error))?;
        print_bytes(&bytes)?;
        from = end;
    }
}

fn absent(error: io::Error) -> io::Result<(Vec<u8>, u64)> {
    if error.kind() == io::ErrorKind::NotFound { Ok((Vec::new(), 0)) } else { Err(error) }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Status::Failed, format!("cannot read the log {}: {error}", path.display()))
}

/// The last `lines` lines, and where they end.
fn tail(path: &Path, lines: usize) -> io::Result<(Vec<u8>, u64)> {
    let length = std::fs::metadata(path)?.len();
    let (bytes, end) = read_from(path, length.saturating_sub(MAX_READ))?;
    let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = match lines.checked_sub(1) {
        Some(skipped) => breaks.nth(skipped).map_or(0, |(at, _)| at + 1),
        None => bytes.len(),
    };
    Ok((bytes.get(start..).unwrap_or_default().to_vec(), end))
}

/// What is in the file from `from` on; from its start if it has become shorter, as after it was put aside.
fn read_from(path: &Path, from: u64) -> io::Result<(Vec<u8>, u64)> {
    let mut file = File::open(path)?;
    let from = if file.metadata()?.len() < from { 0 } else { from };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    let read = file.take(MAX_READ).read_to_end(&mut bytes)?;
    Ok((bytes, from + read as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_shown() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(&path, 2).unwrap(), (b"two\nthree\n".to_vec(), 14));
        assert_eq!(tail(&path, 99).unwrap().0, b"one\ntwo\nthree\n");
        assert_eq!(tail(&path, 0).unwrap().0, b"");
    }

    #[test]
    fn following_goes_on_where_it_was_and_starts_again_after_a_rotation() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("log");
        std::fs::write(&path, "one\n").unwrap();
        let (_, end) = tail(&path, 9).unwrap();
        std::fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(read_from(&path, end).unwrap(), (b"two\n".to_vec(), 8));
        std::fs::write(&path, "x\n").unwrap();
        assert_eq!(read_from(&path, 8).unwrap(), (b"x\n".to_vec(), 2));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read_from(&path, 2).or_else(absent).unwrap(), (Vec::new(), 0));
    }
}
