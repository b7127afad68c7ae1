use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::tools::kit::Kit;

fn set_age(kit: &Kit, path: &str, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 - seconds);
    File::options().write(true).open(kit.root().join(path)).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn newest_files_come_first_and_equal_ones_by_path() {
    let kit = Kit::new().await;
    for (path, age) in [("a.rs", 3), ("src/b.rs", 1), ("src/x/c.rs", 2), ("src/x/a.rs", 2), ("d.txt", 0)] {
        kit.write(path, "");
        set_age(&kit, path, age);
    }
    let report = kit.call("glob", json!({"pattern": "**/*.rs"})).await;
    assert_eq!(report.text, "src/b.rs\nsrc/x/a.rs\nsrc/x/c.rs\na.rs");
    assert_eq!(report.summary, "4 files");
    let report = kit.call("glob", json!({"pattern": "*.rs", "path": "src"})).await;
    assert_eq!(report.text, "src/b.rs");
    assert_eq!(kit.call("glob", json!({"pattern": "*.py"})).await.text, "No files matched.");
}

#[tokio::test]
async fn ignore_files_of_the_search_root_hold() {
    let kit = Kit::new().await;
    let files = ["keep.log", "drop.LOG", "sub/drop.log", "sub/only/x", "only/x", "dist/x", "docs/y"];
    files.iter().for_each(|path| drop(kit.write(path, "")));
    kit.write(".gitignore", "*.log\n/only/\ndocs\n");
    kit.write(".seekclawignore", "!keep.log\n.*ignore\n");
    kit.write("sub/.gitignore", "x\n");
    let report = kit.call("glob", json!({"pattern": "**/*"})).await;
    let mut found: Vec<_> = report.text.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["keep.log", "sub/only/x"]);
}

#[tokio::test]
async fn links_and_protected_folders_are_not_entered() {
    let mut kit = Kit::new().await;
    let outside = kit.top().join("outside");
    std::fs::write(outside.join("f.txt"), "").unwrap();
    std::fs::write(kit.ctx.reach.home.join("f.txt"), "").unwrap();
    let private = kit.write("private/f.txt", "");
    symlink(&outside, kit.root().join("link")).unwrap();
    symlink(outside.join("f.txt"), kit.root().join("f.txt")).unwrap();
    let mut reach = (*kit.ctx.reach).clone();
    reach.denied.push(private.parent().unwrap().to_path_buf());
    kit.ctx.reach = reach.into();
    assert_eq!(kit.call("glob", json!({"pattern": "**/f.txt"})).await.text, "No files matched.");
    let report = kit.call("glob", json!({"pattern": "**/f.txt", "path": ".."})).await;
    assert_eq!(report.text, outside.join("f.txt").display().to_string());
}

#[tokio::test]
async fn more_than_can_be_shown_is_counted() {
    let kit = Kit::new().await;
    (0..203).for_each(|n| drop(kit.write(&format!("f{n}"), "")));
    let report = kit.call("glob", json!({"pattern": "f*"})).await;
    assert_eq!(report.text.lines().count(), 201);
    assert!(report.text.ends_with("\n[3 older files are not shown]"));
    assert_eq!(report.summary, "203 files");
}

#[tokio::test]
async fn a_broken_pattern_is_a_failed_result() {
    let kit = Kit::new().await;
    let report = kit.call("glob", json!({"pattern": "a{b"})).await;
    assert!(report.text.starts_with("Invalid pattern: "), "{}", report.text);
    let report = kit.call("glob", json!({})).await;
    assert_eq!(report.text, "glob crashed: argument `pattern` is missing");
}

#[tokio::test]
async fn a_cancelled_search_says_so() {
    let kit = Kit::new().await;
    kit.cancel.cancel();
    let report = kit.call("glob", json!({"pattern": "*"})).await;
    assert_eq!(report.outcome, seekclaw_storage::record::log::Outcome::Cancelled);
}
