use seekclaw_storage::record::log::Outcome;

use super::super::files_kit::{Kit, args};
use super::super::read_file;
use super::*;

async fn write(kit: &Kit, path: &str, content: &str) -> ToolReport {
    let report = run(&args(json!({"path": path, "content": content})), &kit.ctx).await;
    kit.note(&report);
    report
}

async fn read(kit: &Kit, path: &str) {
    let report = read_file::run(&args(json!({"path": path})), &kit.ctx).await;
    assert_eq!(report.outcome, Outcome::Ok);
    kit.note(&report);
}

#[tokio::test]
async fn new_files_are_created_with_their_parents_and_seen_ones_overwritten() {
    let kit = Kit::new().await;
    let created = write(&kit, "a/b/c.txt", "x\n").await;
    assert_eq!(created.text, "Created a/b/c.txt");
    assert_eq!(created.change.unwrap().diff, "--- a/a/b/c.txt\n+++ b/a/b/c.txt\n@@ -0,0 +1 @@\n+x\n");
    let overwrote = write(&kit, "a/b/c.txt", "y\n").await;
    assert_eq!(overwrote.text, "Overwrote a/b/c.txt");
    assert_eq!(overwrote.change.unwrap().path, "a/b/c.txt");
    assert_eq!(kit.get("a/b/c.txt"), b"y\n");
    assert_eq!(kit.names(), ["a"]);
    assert_eq!(kit.declared(), 2);
}

#[tokio::test]
async fn a_file_that_was_never_seen_is_overwritten_and_its_loss_shown() {
    let kit = Kit::new().await;
    kit.put("a", "precious\n");
    let report = write(&kit, "a", "new\n").await;
    assert_eq!(report.outcome, Outcome::Ok);
    assert!(report.text.starts_with("Overwrote a\n--- a/a\n"), "{}", report.text);
    assert!(report.text.contains("\n-precious\n+new\n"));
}

#[tokio::test]
async fn a_stale_write_shows_the_difference_once_and_then_passes() {
    let kit = Kit::new().await;
    kit.put("a", "one\n");
    read(&kit, "a").await;
    kit.put("a", "theirs\n");
    let refused = write(&kit, "a", "mine\n").await;
    assert_eq!(refused.outcome, Outcome::Failed);
    assert!(refused.text.starts_with("Stale write: a was changed"), "{}", refused.text);
    assert!(refused.text.contains("\n-theirs\n+mine\n"));
    assert_eq!((kit.get("a"), kit.declared()), (b"theirs\n".to_vec(), 0));
    assert_eq!(write(&kit, "a", "mine\n").await.text, "Overwrote a");
    assert_eq!(kit.get("a"), b"mine\n");
}

#[tokio::test]
async fn a_file_that_was_deleted_or_came_back_is_stale_too() {
    let kit = Kit::new().await;
    kit.put("a", "one\n");
    read(&kit, "a").await;
    std::fs::remove_file(kit.file("a")).unwrap();
    assert!(write(&kit, "a", "mine\n").await.text.starts_with("Stale write: a was deleted"));
    kit.put("a", "back\n");
    assert!(write(&kit, "a", "mine\n").await.text.starts_with("Stale write: a was created"));
    std::fs::remove_file(kit.file("a")).unwrap();
    assert!(write(&kit, "a", "mine\n").await.text.starts_with("Stale write: a was deleted"));
    assert_eq!(write(&kit, "a", "mine\n").await.text, "Created a");
}

#[tokio::test]
async fn encoding_mark_and_line_ends_of_the_file_are_kept() {
    let kit = Kit::new().await;
    for (old, content, new) in [
        (b"\xEF\xBB\xBFa\r\nb\r\n".to_vec(), "a\nc\nd\n", b"\xEF\xBB\xBFa\r\nc\r\nd\r\n".to_vec()),
        (b"\xFF\xFEa\0\n\0".to_vec(), "é\n", b"\xFF\xFE\xE9\0\n\0".to_vec()),
        (b"\xFE\xFF\0a".to_vec(), "b", b"\xFE\xFF\0b".to_vec()),
        (b"a\r\nb\nc\r\n".to_vec(), "a\nx\nb\nc\n", b"a\r\nx\r\nb\nc\r\n".to_vec()),
        (b"a\n".to_vec(), "a\r\n", b"a\r\n".to_vec()),
        (b"caf\xE9\n".to_vec(), "tea\n", b"tea\n".to_vec()),
        (b"a\n".to_vec(), "no end", b"no end".to_vec()),
    ] {
        kit.put("f", &old);
        read(&kit, "f").await;
        assert_eq!(write(&kit, "f", content).await.text, "Overwrote f");
        assert_eq!(kit.get("f"), new);
    }
}

#[tokio::test]
async fn writes_outside_or_through_bad_links_are_denied() {
    let kit = Kit::new().await;
    std::os::unix::fs::symlink(kit.top.join("outside"), kit.file("out")).unwrap();
    std::os::unix::fs::symlink(kit.top.join("outside/x"), kit.file("dangling")).unwrap();
    for path in ["../outside/x", "out/x", "dangling", "../home/x"] {
        let report = write(&kit, path, "x").await;
        assert_eq!(report.outcome, Outcome::Denied, "{path}");
        assert!(report.text.starts_with("Path denied: "), "{}", report.text);
    }
    assert_eq!(std::fs::read_dir(kit.top.join("outside")).unwrap().count(), 0);
    assert_eq!(kit.declared(), 0);
    std::fs::create_dir(kit.file("d")).unwrap();
    assert_eq!(write(&kit, "d", "x").await.text, "Cannot edit d: it is a directory");
    assert!(run(&args(json!({"path": "a"})), &kit.ctx).await.text.starts_with("write_file crashed: "));
}

#[tokio::test]
async fn a_long_difference_is_cut_within_the_budget() {
    let mut kit = Kit::new().await;
    kit.ctx.limits.output_chars = 20;
    kit.put("a", "é\n");
    let report = write(&kit, "a", "x\n").await;
    let whole = format!("Overwrote a\n{}", report.change.unwrap().diff);
    let shown: String = whole.chars().take(20).collect();
    let left = (whole.len() - shown.len()) as u64;
    assert_eq!(report.text, format!("{shown}\n[write_file cut: {left} bytes omitted]"));
    assert_eq!(report.omitted, left);
}
