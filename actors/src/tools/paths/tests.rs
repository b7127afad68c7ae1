use std::os::unix::fs::symlink;

use super::write::resolve_write_in;
use super::*;

struct Place {
    _temp: tempfile::TempDir,
    top: PathBuf,
    reach: Reach,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let top = temp.path().canonicalize().unwrap();
    for dir in ["ws/src", "extra", "home/scratch/s1", "home/scratch/s2", "user/.ssh", "outside"] {
        std::fs::create_dir_all(top.join(dir)).unwrap();
    }
    std::fs::write(top.join("ws/src/a.txt"), "a").unwrap();
    std::fs::write(top.join("outside/o.txt"), "o").unwrap();
    std::fs::write(top.join("user/.ssh/id"), "key").unwrap();
    std::fs::write(top.join("home/store.redb"), "db").unwrap();
    let reach = Reach {
        root: top.join("ws"),
        additional: vec![top.join("extra")],
        home: top.join("home"),
        denied: vec![top.join("user/.ssh")],
    };
    Place { _temp: temp, top, reach }
}

fn write_refusal(reach: &Reach, path: &str) -> String {
    resolve_write(reach, path).unwrap_err().to_string()
}

#[test]
fn reading_starts_at_the_root_and_follows_links() {
    let p = place();
    let file = p.top.join("ws/src/a.txt");
    assert_eq!(resolve_read(&p.reach, "src/a.txt").unwrap(), file);
    assert_eq!(resolve_read(&p.reach, "./src/../src/a.txt").unwrap(), file);
    assert_eq!(resolve_read(&p.reach, file.to_str().unwrap()).unwrap(), file);
    assert_eq!(resolve_read(&p.reach, "../outside/o.txt").unwrap(), p.top.join("outside/o.txt"));
    symlink(p.top.join("outside"), p.top.join("ws/l")).unwrap();
    assert_eq!(resolve_read(&p.reach, "l/o.txt").unwrap(), p.top.join("outside/o.txt"));
    assert_eq!(resolve_read(&p.reach, "no/such").unwrap(), p.top.join("ws/no/such"));
}

#[test]
fn the_daemons_home_and_credentials_are_not_read_through_any_spelling() {
    let p = place();
    symlink(p.top.join("home"), p.top.join("ws/h")).unwrap();
    symlink(p.top.join("user/.ssh/id"), p.top.join("ws/k")).unwrap();
    for path in ["../home/store.redb", "h/store.redb", "../home", "../home/new"] {
        let refused = resolve_read(&p.reach, path).unwrap_err();
        assert!(matches!(refused, Refusal::Home(_)), "{path}: {refused}");
    }
    for path in ["k", "../user/.ssh/id", "src/../../user/.ssh"] {
        let refused = resolve_read(&p.reach, path).unwrap_err();
        assert!(matches!(refused, Refusal::Credentials { .. }), "{path}: {refused}");
    }
    assert!(matches!(resolve_read(&p.reach, "").unwrap_err(), Refusal::Malformed));
    assert!(matches!(resolve_read(&p.reach, "a\0b").unwrap_err(), Refusal::Malformed));
}

#[test]
fn defaults_protect_the_users_home_even_where_it_is_linked() {
    let mut p = place();
    p.reach.denied.clear();
    symlink(p.top.join("user"), p.top.join("linked-user")).unwrap();
    let guard = Guard::for_user(&p.reach, Some(&p.top.join("linked-user")));
    assert!(guard.check(&p.top.join("user/.ssh/id")).is_err());
    assert!(guard.check(&p.top.join("user/.docker/config.json")).is_ok(), "missing: only its own spelling");
    assert!(guard.check(&p.top.join("linked-user/.docker/config.json")).is_err());
    assert!(guard.check(&p.top.join("user/.sshx")).is_ok());
    p.reach.root = p.top.join("user");
    let refused = resolve_write_in(&p.reach, &guard, ".ssh/authorized_keys").unwrap_err();
    assert!(matches!(refused, Refusal::Credentials { .. }));
}

#[test]
fn a_global_session_reaches_its_own_scratch_folder_only() {
    let mut p = place();
    p.reach.root = p.top.join("home/scratch/s1");
    assert!(resolve_write(&p.reach, "x").is_ok());
    assert!(resolve_read(&p.reach, "x").is_ok());
    assert!(resolve_read(&p.reach, "../s2/x").is_err());
    assert!(resolve_read(&p.reach, "../../store.redb").is_err());
    assert!(write_refusal(&p.reach, "../s2/x").starts_with("Path denied: "));
    p.reach.root = p.top.join("home");
    assert!(matches!(resolve_read(&p.reach, "store.redb").unwrap_err(), Refusal::Home(_)));
    p.reach.root = p.top.join("home/scratch");
    assert!(resolve_read(&p.reach, "s1/x").is_err());
}

#[test]
fn writing_stays_beneath_the_root_and_the_additional_directories() {
    let p = place();
    assert_eq!(resolve_write(&p.reach, "src/new.txt").unwrap().path(), p.top.join("ws/src/new.txt"));
    assert_eq!(resolve_write(&p.reach, "a/b/c").unwrap().path(), p.top.join("ws/a/b/c"));
    assert!(resolve_write(&p.reach, p.top.join("extra/n").to_str().unwrap()).is_ok());
    for path in ["../outside/o.txt", "/etc/x", "src/../../outside/n", "../ws2/x", "../wsx"] {
        let refused = write_refusal(&p.reach, path);
        assert!(refused.contains("outside of the workspace"), "{path}: {refused}");
    }
    assert!(write_refusal(&p.reach, "nowhere/../../outside/n").contains("`..`"));
    for path in [".", "new/", "src/", "src/a.txt/."] {
        assert!(write_refusal(&p.reach, path).starts_with("Cannot use path"), "{path}");
    }
}

#[test]
fn links_that_leave_the_workspace_are_refused_and_inner_ones_followed() {
    let p = place();
    symlink(p.top.join("outside/o.txt"), p.top.join("ws/file")).unwrap();
    symlink(p.top.join("outside"), p.top.join("ws/dir")).unwrap();
    symlink("src/a.txt", p.top.join("ws/inner")).unwrap();
    symlink(p.top.join("outside/missing"), p.top.join("ws/gone")).unwrap();
    symlink("src/missing", p.top.join("ws/gone2")).unwrap();
    assert!(write_refusal(&p.reach, "file").contains("outside of the workspace"));
    assert!(write_refusal(&p.reach, "dir/new").contains("outside of the workspace"));
    assert!(write_refusal(&p.reach, "gone").contains("does not exist"));
    assert!(write_refusal(&p.reach, "gone2").contains("does not exist"));
    assert!(write_refusal(&p.reach, "gone/deeper/x").contains("does not exist"));
    assert_eq!(resolve_write(&p.reach, "inner").unwrap().path(), p.top.join("ws/src/a.txt"));
}

#[test]
fn a_directory_swapped_for_a_link_does_not_redirect_what_was_resolved() {
    let p = place();
    let mut target = resolve_write(&p.reach, "src/deep/new").unwrap();
    std::fs::rename(p.top.join("ws/src"), p.top.join("ws/old")).unwrap();
    symlink(p.top.join("outside"), p.top.join("ws/src")).unwrap();
    assert!(!target.in_place());
    target.ensure_parent().unwrap();
    assert!(p.top.join("ws/old/deep").is_dir());
    assert!(!p.top.join("outside/deep").exists());
}

#[test]
fn a_link_put_where_a_parent_is_created_is_refused() {
    let p = place();
    let mut target = resolve_write(&p.reach, "fresh/new").unwrap();
    assert!(target.parent().is_none());
    symlink(p.top.join("outside"), p.top.join("ws/fresh")).unwrap();
    assert!(target.ensure_parent().is_err());
}

#[test]
fn a_link_put_into_a_resolved_path_is_not_read() {
    let p = place();
    let path = resolve_read(&p.reach, "src/a.txt").unwrap();
    assert!(open_read(&path).is_ok());
    std::fs::remove_file(&path).unwrap();
    symlink(p.top.join("home/store.redb"), &path).unwrap();
    assert!(open_read(&path).is_err());
}

#[test]
fn a_working_directory_exists_and_is_writable_by_the_rules() {
    let p = place();
    assert_eq!(resolve_workdir(&p.reach, ".").unwrap(), p.top.join("ws"));
    assert_eq!(resolve_workdir(&p.reach, "src").unwrap(), p.top.join("ws/src"));
    assert!(matches!(resolve_workdir(&p.reach, "../outside").unwrap_err(), Refusal::Outside { .. }));
    assert!(matches!(resolve_workdir(&p.reach, "src/a.txt").unwrap_err(), Refusal::Unusable { .. }));
    assert!(matches!(resolve_workdir(&p.reach, "none").unwrap_err(), Refusal::Unusable { .. }));
}

#[test]
fn paths_are_shown_relative_to_the_root() {
    let p = place();
    assert_eq!(display_path(&p.reach, &p.top.join("ws/src/a.txt")), "src/a.txt");
    assert_eq!(display_path(&p.reach, &p.top.join("ws")), ".");
    assert_eq!(
        display_path(&p.reach, &p.top.join("outside/o.txt")),
        p.top.join("outside/o.txt").display().to_string()
    );
}

#[test]
fn the_inside_of_processes_is_not_read() {
    assert!(is_inside_of_process(Path::new("/proc/1/environ")));
    assert!(!is_inside_of_process(Path::new("/proc/cpuinfo")));
    let p = place();
    let refused = Guard::new(&p.reach).check(Path::new("/proc/77/mem")).unwrap_err();
    assert_eq!(ToolReport::from(refused).outcome, Outcome::Denied);
}
