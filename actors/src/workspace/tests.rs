use std::fs;
use std::path::{Path, PathBuf};

use seekclaw_protocol::ErrorCode;
use tempfile::TempDir;

use super::{Surroundings, Workspace, init};

struct Disk {
    _keep: TempDir,
    root: PathBuf,
}

impl Disk {
    fn new() -> Self {
        let keep = tempfile::tempdir().unwrap();
        let root = keep.path().canonicalize().unwrap();
        Self { _keep: keep, root }
    }

    fn file(&self, path: &str) -> &Self {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        self
    }

    fn folder(&self, path: &str) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn surroundings(&self) -> Surroundings {
        Surroundings::new(self.root.clone(), [self.root.join("state")])
    }

    fn open(&self, path: &str) -> Workspace {
        self.surroundings().open(path).unwrap()
    }
}

#[test]
fn every_marker_makes_a_root() {
    for marker in [
        ".git/HEAD",
        ".seekclaw/x",
        "package.json",
        "pyproject.toml",
        "Cargo.toml",
        "go.mod",
        "a.sln",
        "b.SLNX",
    ] {
        let disk = Disk::new();
        disk.file(&format!("p/{marker}")).folder("p/sub/deeper");
        assert_eq!(disk.open("p/sub/deeper").root, disk.root.join("p"), "{marker}");
    }
}

#[test]
fn the_nearest_root_wins_and_no_root_means_the_directory_itself() {
    let disk = Disk::new();
    disk.file("p/Cargo.toml").file("p/inner/go.mod").folder("p/inner/x");
    assert_eq!(disk.open("p/inner/x").root, disk.root.join("p/inner"));
    disk.folder("plain/x");
    let plain = disk.open("plain/x");
    assert_eq!((plain.root, plain.name.as_str()), (disk.root.join("plain/x"), "x"));
}

#[test]
fn the_state_folder_of_the_user_marks_no_project() {
    let disk = Disk::new();
    disk.file("home/.seekclaw/config.json").folder("home/work");
    let surroundings = Surroundings::new(disk.root.clone(), [disk.root.join("home/.seekclaw")]);
    assert_eq!(surroundings.open("home/work").unwrap().root, disk.root.join("home/work"));
    disk.file("home/.git/HEAD");
    assert_eq!(surroundings.open("home/work").unwrap().root, disk.root.join("home"));
}

#[test]
fn a_link_leads_to_one_identity_but_keeps_the_spelling_of_the_client() {
    let disk = Disk::new();
    disk.file("real/Cargo.toml").folder("real/src");
    std::os::unix::fs::symlink(disk.root.join("real"), disk.root.join("link")).unwrap();
    let (direct, linked) = (disk.open("real/src"), disk.open("link/src"));
    assert_eq!((&direct.root, direct.scope()), (&linked.root, linked.scope()));
    assert_eq!((linked.shown, linked.name.as_str()), (disk.root.join("link"), "link"));
    std::os::unix::fs::symlink(disk.root.join("real/src"), disk.root.join("deep")).unwrap();
    assert_eq!(disk.open("deep").shown, disk.root.join("real"));
}

#[test]
fn bad_paths_answer_with_the_texts_of_the_contract() {
    let disk = Disk::new();
    disk.file("f").folder("x");
    let refused = |path: &str| {
        let error = disk.surroundings().open(path).unwrap_err();
        (error.code, error.message)
    };
    let absent = |path: &str| format!("Workspace directory not found: {}", disk.root.join(path).display());
    assert_eq!(refused("nowhere"), (ErrorCode::NotFound, absent("nowhere")));
    assert_eq!(refused("x/../gone/./y"), (ErrorCode::NotFound, absent("gone/y")));
    assert_eq!(refused("f"), (ErrorCode::NotFound, absent("f")));
    assert_eq!(refused("~"), (ErrorCode::NotFound, absent("~")));
    assert_eq!(refused(" ").1, "Invalid workspace path: The path is empty");
    assert_eq!(refused("a\0b").1, "Invalid workspace path: The path contains a null character");
}

#[test]
fn kinds_come_in_the_order_of_the_contract() {
    let disk = Disk::new();
    for file in ["go.mod", "Cargo.toml", "setup.py", ".git/HEAD", "app/app.csproj"] {
        disk.file(&format!("p/{file}"));
    }
    disk.folder("p/Assets");
    disk.folder("p/ProjectSettings");
    fs::write(disk.root.join("p/package.json"), r#"{"dependencies":{"vue":"3"}}"#).unwrap();
    let kinds = ["git", "dotnet", "node", "python", "rust", "go", "unity", "vue"];
    assert_eq!(disk.open("p").kinds, kinds);
    disk.folder("empty/too/deep/for/dotnet");
    disk.file("empty/too/deep/x.csproj");
    assert!(disk.open("empty").kinds.is_empty());
}

#[test]
fn init_makes_what_is_missing_and_nothing_twice() {
    let disk = Disk::new();
    disk.file("p/Cargo.toml").folder("p/docs");
    let workspace = disk.open("p");
    let created = init(&workspace).unwrap();
    let expected = [
        ".seekclaw",
        ".seekclaw/prompts",
        ".seekclaw/memory",
        ".seekclaw/cache",
        ".seekclaw/logs",
        ".seekclaw/skills",
        ".seekclaw/mcp",
        ".gitignore (updated)",
    ];
    assert_eq!(created, expected);
    assert!(expected.iter().take(7).all(|folder| workspace.root.join(folder).is_dir()));
    assert_eq!(init(&workspace).unwrap(), Vec::<String>::new());
    assert!(!workspace.config_file().exists());
}

#[test]
fn init_does_not_follow_links_out_of_the_workspace() {
    let disk = Disk::new();
    disk.file("p/Cargo.toml");
    let (outside, workspace) = (disk.folder("outside"), disk.open("p"));
    std::os::unix::fs::symlink(&outside, workspace.own_folder()).unwrap();
    let error = init(&workspace).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::PathDenied, ".seekclaw leads out of the workspace")
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    fs::remove_file(workspace.own_folder()).unwrap();
    fs::write(disk.root.join("ignore"), "x\n").unwrap();
    std::os::unix::fs::symlink(disk.root.join("ignore"), workspace.root.join(".gitignore")).unwrap();
    assert_eq!(init(&workspace).unwrap_err().code, ErrorCode::PathDenied);
    assert_eq!(fs::read_to_string(disk.root.join("ignore")).unwrap(), "x\n");
}

#[test]
fn something_in_the_way_of_init_is_named() {
    let disk = Disk::new();
    disk.file("p/Cargo.toml").file("p/.seekclaw");
    let error = init(&disk.open("p")).unwrap_err();
    assert_eq!(error.message, "cannot create .seekclaw: something else has that name");
}

#[test]
fn a_daemon_starts_in_the_project_of_its_working_directory() {
    let disk = Disk::new();
    disk.file("p/Cargo.toml");
    let surroundings = Surroundings::new(disk.folder("p/src"), []);
    assert_eq!(surroundings.start().root, disk.root.join("p"));
    let gone = Surroundings::new(disk.root.join("gone"), []);
    assert_eq!(gone.start().root, Path::new(&disk.root).join("gone"));
}
