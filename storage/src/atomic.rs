//! Replacing a file so that a crash leaves the old one or the new one, never a part of either.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// End of the name of a file that is not in place yet; one left over by a crash is worth nothing.
const SUFFIX: &str = ".tmp";

/// Puts `bytes` at `path`, whatever was there: sibling file, sync, rename, sync of the folder.
///
/// # Errors
/// Any of these steps; the old file is then untouched.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let pending = prepare(path, mode, |file| file.write_all(bytes))?;
    pending.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Puts `bytes` at `path` if nothing is there.
///
/// # Errors
/// `AlreadyExists`, or any failed step.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let pending = prepare(path, mode, |file| file.write_all(bytes))?;
    pending.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Removes siblings that an earlier process left behind half written.
pub fn remove_leftovers(path: &Path) {
    let (Ok(entries), prefix) = (fs::read_dir(folder(path)), prefix(path)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name.to_str().is_some_and(|name| name.starts_with(&prefix) && name.ends_with(SUFFIX));
        if ours && let Err(error) = fs::remove_file(entry.path()) {
            tracing::debug!(path = %entry.path().display(), %error, "cannot remove a leftover file");
        }
    }
}

fn prepare(
    path: &Path,
    mode: u32,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    let mut pending = tempfile::Builder::new()
        .prefix(&prefix(path))
        .suffix(SUFFIX)
        .permissions(Permissions::from_mode(mode & 0o600))
        .tempfile_in(folder(path))?;
    fill(pending.as_file_mut())?;
    // The umask must not decide, and nobody else may open it before it is complete.
    pending.as_file().set_permissions(Permissions::from_mode(mode))?;
    pending.as_file().sync_all()?;
    Ok(pending)
}

/// Without this a power cut may undo the rename after it was reported.
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn prefix(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!(".{name}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn replaces_content_and_mode() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.json");
        fs::write(&path, "old").unwrap();
        replace(&path, b"new", 0o640).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(home.path()), ["a.json"]);
    }

    #[test]
    fn failed_write_leaves_the_old_file_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.json");
        fs::write(&path, "old").unwrap();
        let torn = prepare(&path, 0o600, |file| {
            file.write_all(b"ne")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(torn.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(home.path()), ["a.json"]);
    }

    #[test]
    fn create_never_overwrites() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.json");
        create(&path, b"first", 0o600).unwrap();
        assert_eq!(create(&path, b"second", 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
    }

    #[test]
    fn leftovers_of_this_file_go_and_others_stay() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.json");
        for name in [".a.json.x1.tmp", ".b.json.x1.tmp", "a.json"] {
            fs::write(home.path().join(name), "x").unwrap();
        }
        remove_leftovers(&path);
        assert_eq!(names(home.path()), [".b.json.x1.tmp", "a.json"]);
    }
}
