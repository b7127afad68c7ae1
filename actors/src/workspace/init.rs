//! `workspace.init` (contract 2.4): the folders of ours, and the lines that keep them out of git.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use seekclaw_protocol::{ErrorCode, WireError};

use super::{OWN_FOLDER, Workspace};

/// Folders made in any case.
const FOLDERS: [&str; 4] = ["prompts", "memory", "cache", "logs"];

/// Folders made only where the project has none of that name itself.
const SHARED_FOLDERS: [&str; 3] = ["skills", "mcp", "docs"];

/// What git should not see.
const IGNORED: [&str; 4] = [".seekclaw/", ".session/", ".cache/", "logs/"];

/// Makes what is missing and names it, relative to the root.
///
/// # Errors
/// Something is in the way, leads out of the workspace, or cannot be written.
pub fn init(workspace: &Workspace) -> Result<Vec<String>, WireError> {
    let root = &workspace.root;
    let mut created = Vec::new();
    if make_folder(root, OWN_FOLDER)? {
        created.push(OWN_FOLDER.to_owned());
    }
    let absent = SHARED_FOLDERS.into_iter().filter(|name| !root.join(name).is_dir());
    for name in FOLDERS.into_iter().chain(absent) {
        let relative = format!("{OWN_FOLDER}/{name}");
        if make_folder(root, &relative)? {
            created.push(relative);
        }
    }
    if ignore(root)? {
        created.push(".gitignore (updated)".to_owned());
    }
    Ok(created)
}

fn make_folder(root: &Path, relative: &str) -> Result<bool, WireError> {
    match fs::create_dir(root.join(relative)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let target = beneath(root, relative)?;
            if fs::metadata(target).is_ok_and(|target| target.is_dir()) {
                return Ok(false);
            }
            let text = format!("cannot create {relative}: something else has that name");
            Err(WireError::new(ErrorCode::Conflict, text))
        }
        Err(error) => Err(failed(relative, &error)),
    }
}

fn ignore(root: &Path) -> Result<bool, WireError> {
    const NAME: &str = ".gitignore";
    let path = root.join(NAME);
    let present = path.symlink_metadata().is_ok();
    let path = if present { beneath(root, NAME)? } else { path };
    let old = if present { fs::read(&path).map_err(|error| failed(NAME, &error))? } else { Vec::new() };
    let Some(addition) = missing_lines(&String::from_utf8_lossy(&old)) else { return Ok(false) };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(addition.as_bytes())).map_err(|error| failed(NAME, &error))?;
    Ok(true)
}

/// What has to follow `old`, in its own line ends; none if it is complete.
fn missing_lines(old: &str) -> Option<String> {
    let has = |line: &str| old.lines().any(|old| old.trim() == line);
    let missing: Vec<&str> = IGNORED.into_iter().filter(|line| !has(line)).collect();
    if missing.is_empty() {
        return None;
    }
    let end = if old.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = String::new();
    if !old.is_empty() {
        text.push_str(if old.ends_with('\n') {
            end
        } else if end == "\n" {
            "\n\n"
        } else {
            "\r\n\r\n"
        });
    }
    for line in ["# SeekClaw"].into_iter().chain(missing) {
        text.push_str(line);
        text.push_str(end);
    }
    Some(text)
}

/// Where `relative` leads; a link out of the workspace is not followed.
fn beneath(root: &Path, relative: &str) -> Result<PathBuf, WireError> {
    let target = root.join(relative).canonicalize().map_err(|error| failed(relative, &error))?;
    if target.starts_with(root) {
        return Ok(target);
    }
    Err(WireError::new(ErrorCode::PathDenied, format!("{relative} leads out of the workspace")))
}

fn failed(relative: &str, error: &io::Error) -> WireError {
    use io::ErrorKind as Kind;
    let is = |kinds: [Kind; 2]| kinds.contains(&error.kind());
    let code = if is([Kind::StorageFull, Kind::QuotaExceeded]) {
        ErrorCode::StorageFull
    } else if is([Kind::PermissionDenied, Kind::ReadOnlyFilesystem]) {
        ErrorCode::PathDenied
    } else {
        ErrorCode::Internal
    };
    WireError::new(code, format!("cannot create {relative}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_lines_are_added_once_under_a_heading() {
        assert_eq!(missing_lines("").as_deref(), Some("# SeekClaw\n.seekclaw/\n.session/\n.cache/\nlogs/\n"));
        assert_eq!(
            missing_lines("target").as_deref(),
            Some("\n\n# SeekClaw\n.seekclaw/\n.session/\n.cache/\nlogs/\n")
        );
        assert_eq!(missing_lines(" .seekclaw/ \n.session/\n.cache/\nlogs/"), None);
    }

    #[test]
    fn ignored_lines_keep_the_line_ends_of_the_file() {
        let addition = missing_lines("a\r\n.cache/\r\nlogs/\r\n").unwrap();
        assert_eq!(addition, "\r\n# SeekClaw\r\n.seekclaw/\r\n.session/\r\n");
    }
}
