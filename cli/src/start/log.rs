//! The log of the daemon in the background, as its starter sees it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::place::Place;
use crate::render::escape::neutral;
use crate::status::{Failure, Status};

/// A log larger than this is put aside before a new daemon writes; one older log is kept.
const ROTATE_ABOVE: u64 = 8 * 1024 * 1024;
/// Bytes of a failed start that are read back.
const MAX_READ: u64 = 64 * 1024;
/// Lines of a failed start that are shown.
const MAX_SHOWN: usize = 12;

/// The log from the moment of a start on.
#[derive(Debug)]
pub(super) struct LogTail {
    path: PathBuf,
    from: u64,
}

impl LogTail {
    /// Opens the log, making it if need be.
    pub(super) fn open(place: &Place) -> Result<Self, Failure> {
        let path = place.log();
        open_at(&path).map_err(|error| {
            Failure::new(Status::Unreachable, format!("cannot write the log {}: {error}", path.display()))
                .next("check the permissions of the daemon's home and the space on its disk")
        })
    }

    /// A handle for the daemon's output.
    pub(super) fn writer(&self) -> io::Result<File> {
        append(&self.path)
    }

    /// The last lines that were written since.
    pub(super) fn since_opened(&self) -> String {
        self.read().unwrap_or_default()
    }

    fn read(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(self.from.max(length.saturating_sub(MAX_READ)).min(length)))?;
        let mut bytes = Vec::new();
        file.take(MAX_READ).read_to_end(&mut bytes)?;
        Ok(last_lines(&neutral(&String::from_utf8_lossy(&bytes))))
    }
}

fn open_at(path: &Path) -> io::Result<LogTail> {
    if fs::metadata(path).is_ok_and(|log| log.len() > ROTATE_ABOVE) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    let from = append(path)?.metadata()?.len();
    Ok(LogTail { path: path.to_owned(), from })
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines.get(lines.len().saturating_sub(MAX_SHOWN)..).unwrap_or_default();
    shown.iter().map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_what_was_written_since_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place::at(temp.path());
        place.create().unwrap();
        fs::write(place.log(), "yesterday\n").unwrap();
        let tail = LogTail::open(&place).unwrap();
        assert_eq!(tail.since_opened(), "");
        tail.writer().unwrap().write_all(b"bad \x1b[31mconfig\n\nline 2\n").unwrap();
        assert_eq!(tail.since_opened(), "  | bad ␛[31mconfig\n  | line 2");
    }

    #[test]
    fn a_large_log_is_put_aside() {
        let temp = tempfile::tempdir().unwrap();
        let place = Place::at(temp.path());
        place.create().unwrap();
        let log = File::create(place.log()).unwrap();
        log.set_len(ROTATE_ABOVE + 1).unwrap();
        LogTail::open(&place).unwrap();
        assert_eq!(fs::metadata(place.log()).unwrap().len(), 0);
        assert!(place.log().with_extension("log.1").exists());
    }

    #[test]
    fn only_the_last_lines_are_shown() {
        let text: String = (0..40).map(|n| format!("line {n}\n")).collect();
        let shown = last_lines(&text);
        assert_eq!(shown.lines().count(), MAX_SHOWN);
        assert!(shown.ends_with("line 39"));
    }
}
