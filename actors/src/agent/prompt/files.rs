//! Files that become part of a prompt: bounded, and only where they belong, links included. A repository
//! must not be able to send a private file to a model by linking to it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Larger files are not read: no instructions are that long, and each step reads them again.
const READ_BYTES: u64 = 1024 * 1024;

/// The text of a file, never blank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text(String);

impl Text {
    /// Reads `file`, if it is a regular file that lies beneath `base` once all links are resolved.
    pub(super) fn beneath(base: &Path, file: &Path) -> Option<Self> {
        let base = base.canonicalize().ok()?;
        let file = file.canonicalize().ok()?;
        if !file.starts_with(&base) {
            tracing::warn!(file = %file.display(), base = %base.display(), "not read: links out of its folder");
            return None;
        }
        Self::read(&file)
    }

    pub(super) fn into_inner(self) -> String {
        self.0
    }

    fn read(file: &Path) -> Option<Self> {
        // Opening anything but a regular file may block for ever.
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        if metadata.len() > READ_BYTES {
            return Some(Self(format!(
                "[left out: this file has {} bytes; the limit is {READ_BYTES}]",
                metadata.len()
            )));
        }
        let mut bytes = Vec::new();
        File::open(file).ok()?.take(READ_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }
}

/// Each AGENTS.md from `workspace` down to `deepest`, if that lies inside, with its path in the workspace.
pub(super) fn instructions(workspace: &Path, deepest: &Path) -> Vec<(String, String)> {
    let Ok(root) = workspace.canonicalize() else { return Vec::new() };
    let deepest = deepest.canonicalize().ok();
    let below = deepest.as_deref().and_then(|path| path.strip_prefix(&root).ok()).unwrap_or(Path::new(""));
    let mut folders: Vec<&Path> = below.ancestors().collect();
    folders.reverse();
    folders
        .into_iter()
        .filter_map(|folder| {
            let path = folder.join("AGENTS.md");
            let text = Text::beneath(&root, &root.join(&path))?.into_inner();
            Some((path.to_string_lossy().replace('\\', "/"), text))
        })
        .collect()
}
