use std::os::unix::fs::symlink;

use serde_json::json;

use crate::tools::kit::Kit;

#[tokio::test]
async fn directories_come_first_and_ignored_ones_do_not_come() {
    let kit = Kit::new().await;
    kit.write("z/deep/deeper/file", "");
    kit.write("a.txt", "");
    kit.write("node_modules/x/index.js", "");
    kit.write("z/target/debug", "");
    kit.write("z/b.txt", "");
    symlink("/etc/passwd", kit.root().join("link")).unwrap();
    let report = kit.call("list_dir", json!({})).await;
    assert_eq!(report.text, "z/\n  deep/\n  b.txt\na.txt\nlink -> /etc/passwd");
    assert_eq!(report.summary, "5 entries");
    let report = kit.call("list_dir", json!({"path": "z", "depth": 9})).await;
    assert_eq!(report.text, "deep/\n  deeper/\n    file\nb.txt");
}

#[tokio::test]
async fn what_is_no_directory_is_said() {
    let kit = Kit::new().await;
    let file = kit.write("file", "");
    let report = kit.call("list_dir", json!({"path": "file"})).await;
    assert_eq!(report.text, format!("Not a directory: {}", file.display()));
    let missing = kit.root().join("missing");
    let report = kit.call("list_dir", json!({"path": "missing"})).await;
    assert_eq!(report.text, format!("Path not found: {}", missing.display()));
    std::fs::create_dir(&missing).unwrap();
    assert_eq!(kit.call("list_dir", json!({"path": "missing"})).await.text, "(empty directory)");
}

#[tokio::test]
async fn a_long_listing_says_that_it_is_cut() {
    let kit = Kit::new().await;
    (0..501).for_each(|n| drop(kit.write(&format!("{n:04}"), "")));
    let report = kit.call("list_dir", json!({})).await;
    assert_eq!(report.text.lines().count(), 501);
    assert!(report.text.ends_with("0499\n[only the first 500 entries are shown]"));
    std::fs::remove_file(kit.root().join("0000")).unwrap();
    let report = kit.call("list_dir", json!({})).await;
    assert!(report.text.ends_with("\n0500"), "500 entries are all");
}

#[tokio::test]
async fn the_home_of_the_daemon_is_not_listed_from_above() {
    let kit = Kit::new().await;
    std::fs::write(kit.ctx.reach.home.join("token"), "secret").unwrap();
    let report = kit.call("list_dir", json!({"path": ".."})).await;
    assert_eq!(report.text, "outside/\nws/");
    let report = kit.call("list_dir", json!({"path": "../home"})).await;
    assert_eq!(report.outcome, seekclaw_storage::record::log::Outcome::Denied);
}
