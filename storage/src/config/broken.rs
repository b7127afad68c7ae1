//! Keeping a copy of a configuration that cannot be read, so that whatever happens to the file later,
//! what the user wrote is not lost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

use crate::atomic;

/// The copy may contain keys, like the file.
const MODE: u32 = 0o600;

/// Different broken files within one second: more is a program that goes mad.
const MAX_SAME_SECOND: usize = 10;

/// Copies `content` beside `path` under a dated name; a copy that exists already is enough.
pub(super) fn keep(path: &Path, content: &[u8], now: DateTime<Utc>) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!("{name}.broken-");
    let folder = path.parent().unwrap_or(Path::new("."));
    if let Some(copy) = existing(folder, &prefix, content)? {
        return Ok(copy);
    }
    let stamp = now.format("%Y%m%dT%H%M%SZ");
    for attempt in 1..=MAX_SAME_SECOND {
        let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
        let copy = folder.join(format!("{prefix}{stamp}{suffix}"));
        match atomic::create(&copy, content, MODE) {
            Ok(()) => return Ok(copy),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(io::ErrorKind::AlreadyExists))
}

fn existing(folder: &Path, prefix: &str, content: &[u8]) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix));
        let sized = named && entry.metadata().is_ok_and(|found| found.len() == content.len() as u64);
        if sized && fs::read(entry.path()).is_ok_and(|copy| copy == content) {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}
