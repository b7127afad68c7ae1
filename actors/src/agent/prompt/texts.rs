//! Where a prompt text comes from: the workspace, then the home, then our own.

use std::path::PathBuf;

use super::PromptContext;
use super::files::Text;

macro_rules! embedded {
    ($($key:literal),* $(,)?) => {
        /// Our own texts by key.
        const EMBEDDED: &[(&str, &str)] =
            &[$(($key, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/prompts/", $key, ".txt")))),*];
    };
}

embedded![
    "mode/auto",
    "mode/plan",
    "mode/readonly",
    "permissions/read_only",
    "permissions/workspace_write",
    "personality/friendly",
    "personality/pragmatic",
    "project/dotnet",
    "project/go",
    "project/node",
    "project/python",
    "project/rust",
    "project/unity",
    "project/vue",
    "system/default",
    "system/global",
    "system/vision",
];

/// The places where texts are looked up.
pub(super) struct Texts {
    /// Folders, each with the folder that its files must not leave.
    folders: Vec<(PathBuf, PathBuf)>,
}

impl Texts {
    pub(super) fn of(context: &PromptContext) -> Self {
        let home = context.home.join("prompts");
        let workspace = context.workspace.iter().map(|root| (root.clone(), root.join(".seekclaw/prompts")));
        Self { folders: workspace.chain([(home.clone(), home)]).collect() }
    }

    /// The text of `key`; none if nobody has it, or if it is no key.
    pub(super) fn find(&self, key: &str) -> Option<String> {
        if !is_key(key) {
            tracing::warn!(key, "not a prompt key");
            return None;
        }
        let overridden =
            |(base, folder): &(PathBuf, PathBuf)| Text::beneath(base, &folder.join(format!("{key}.txt")));
        let ours = || EMBEDDED.iter().find(|(name, _)| *name == key).map(|(_, text)| (*text).to_owned());
        self.folders.iter().find_map(overridden).map(Text::into_inner).or_else(ours)
    }
}

/// Names joined by slashes: nothing that is absolute, climbs, is hidden, or means a drive or a stream.
fn is_key(key: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && !name.contains(|c: char| matches!(c, '\\' | ':') || c.is_control())
    };
    key.len() <= 200 && key.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn keys_cannot_leave_the_prompts_folder() {
        for key in ["system/default", "team prompts/review", "a.b", "ü"] {
            assert!(is_key(key), "{key}");
        }
        for key in
            ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "./a", "a\\..\\b", "c:/x", "a\0b", ".hidden"]
        {
            assert!(!is_key(key), "{key:?}");
        }
    }

    #[test]
    fn every_text_of_ours_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("prompts");
        let mut keys = Vec::new();
        for group in std::fs::read_dir(&folder).unwrap() {
            for file in std::fs::read_dir(group.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                let key = path.strip_prefix(&folder).unwrap().with_extension("");
                keys.push(key.to_str().unwrap().replace('\\', "/"));
            }
        }
        keys.sort();
        let embedded: Vec<&str> = EMBEDDED.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, embedded);
    }
}
