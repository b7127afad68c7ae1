//! What kind of project a directory holds, by the files in it.

use std::fs::{self, DirEntry, File};
use std::io::Read;
use std::path::Path;

use super::has_extension;

/// Directories looked into for `dotnet`; a root with more children than this is no solution folder.
const MAX_CHILDREN: usize = 512;

/// Part of `package.json` that is read: dependencies stand well before this.
const MAX_PACKAGE_BYTES: u64 = 1024 * 1024;

/// The kinds of `root`, in the order of the contract.
pub(super) fn of(root: &Path) -> Vec<&'static str> {
    let has = |name: &str| root.join(name).exists();
    let any = |names: &[&str]| names.iter().any(|name| has(name));
    let kinds = [
        ("git", has(".git")),
        ("dotnet", is_dotnet(root)),
        ("node", has("package.json")),
        ("python", any(&["pyproject.toml", "requirements.txt", "setup.py"])),
        ("rust", has("Cargo.toml")),
        ("go", has("go.mod")),
        ("unity", root.join("Assets").is_dir() && root.join("ProjectSettings").is_dir()),
        ("vue", mentions_vue(&root.join("package.json"))),
    ];
    kinds.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect()
}

/// Whether `folder` holds an entry with one of `extensions`.
pub(super) fn has_file(folder: &Path, extensions: &[&str]) -> bool {
    entries(folder).any(|entry| has_extension(&entry.file_name(), extensions))
}

fn is_dotnet(root: &Path) -> bool {
    let found = |folder: &Path| has_file(folder, &["sln", "slnx", "csproj"]);
    let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    found(root) || entries(root).filter(is_folder).take(MAX_CHILDREN).any(|entry| found(&entry.path()))
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok)
}

fn mentions_vue(package: &Path) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(package).and_then(|file| file.take(MAX_PACKAGE_BYTES).read_to_end(&mut bytes));
    read.is_ok() && bytes.windows(5).any(|window| window == b"\"vue\"")
}
