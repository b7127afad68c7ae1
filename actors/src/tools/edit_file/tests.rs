use seekclaw_storage::record::log::Outcome;

use super::super::files_kit::{Kit, args};
use super::*;

async fn edit(kit: &Kit, old: &str, new: &str) -> ToolReport {
    run(&args(json!({"path": "f", "old_string": old, "new_string": new})), &kit.ctx).await
}

async fn edit_all(kit: &Kit, old: &str, new: &str) -> ToolReport {
    run(&args(json!({"path": "f", "old_string": old, "new_string": new, "replace_all": true})), &kit.ctx)
        .await
}

#[tokio::test]
async fn one_place_is_edited_without_an_earlier_read() {
    let kit = Kit::new().await;
    kit.put("f", "a\nb\nc");
    let report = edit(&kit, "b", "B").await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Ok, "Edited f"));
    assert!(report.change.unwrap().diff.contains("\n-b\n+B\n"));
    assert_eq!(kit.get("f"), b"a\nB\nc");
    assert_eq!(report.seen.len(), 1);
    let again = edit_all(&kit, "a", "aa").await;
    assert_eq!(again.text, "Replaced 1 occurrences in f");
}

#[tokio::test]
async fn every_refusal_says_what_to_do() {
    let kit = Kit::new().await;
    assert_eq!(edit(&kit, "a", "b").await.text, format!("File not found: {}", kit.file("f").display()));
    kit.put("f", "x\nx\n");
    assert!(edit(&kit, "", "b").await.text.contains("must not be empty"));
    assert!(edit(&kit, "x", "x").await.text.contains("are the same"));
    assert!(edit(&kit, "y", "b").await.text.contains("Re-read"));
    assert!(edit(&kit, "x", "b").await.text.contains("occurs 2 times"));
    let wrong = args(json!({"path": "f", "old_string": "x", "new_string": "y", "replace_all": "yes"}));
    assert_eq!(
        run(&wrong, &kit.ctx).await.text,
        "edit_file crashed: argument `replace_all` must be true or false"
    );
    assert_eq!((kit.get("f"), kit.declared()), (b"x\nx\n".to_vec(), 0));
    assert_eq!(edit_all(&kit, "x", "b").await.text, "Replaced 2 occurrences in f");
    assert_eq!(kit.get("f"), b"b\nb\n");
}

#[tokio::test]
async fn line_ends_are_matched_loosely_and_kept_line_by_line() {
    let kit = Kit::new().await;
    for (file, old, new, expected) in [
        ("a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\n", "a\r\nB\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nb", "a\r\nx\r\nb", "a\r\nx\r\nb\r\nc\r\n"),
        ("a\r\nb\nc\r\nd\n", "b\nc", "B\nC", "a\r\nB\nC\r\nd\n"),
        ("a\nb\nc\r\n", "b\n", "", "a\nc\r\n"),
        ("a\r\nb", "b", "b\nc\n", "a\r\nb\r\nc\r\n"),
        ("a\r\r\nb\n", "b", "c", "a\r\r\nc\n"),
        ("a\rb\n", "a\rb", "c", "c\n"),
    ] {
        kit.put("f", file);
        assert_eq!(edit(&kit, old, new).await.text, "Edited f", "{file:?}");
        assert_eq!(String::from_utf8(kit.get("f")).unwrap(), expected, "{file:?}");
    }
    kit.put("f", "x\r\n-\nx\n-\r\nx\r\n");
    edit_all(&kit, "x\n", "y\nz\n").await;
    assert_eq!(kit.get("f"), b"y\r\nz\r\n-\ny\nz\n-\r\ny\r\nz\r\n");
}

#[tokio::test]
async fn encodings_survive_an_edit() {
    let kit = Kit::new().await;
    for (file, old, new, expected) in [
        (b"\xEF\xBB\xBFab".to_vec(), "b", "é", "\u{FEFF}aé".as_bytes().to_vec()),
        (b"\xFF\xFEa\0b\0".to_vec(), "b", "é", b"\xFF\xFEa\0\xE9\0".to_vec()),
        (b"\xFE\xFF\0a\0b".to_vec(), "b", "\n", b"\xFE\xFF\0a\0\n".to_vec()),
        (b"caf\xE9 a\x80\n".to_vec(), "a\u{80}", "", Vec::new()),
        (b"caf\xE9 b\x80\n".to_vec(), " b", " c", b"caf\xE9 c\x80\n".to_vec()),
    ] {
        kit.put("f", &file);
        let report = edit(&kit, old, new).await;
        if expected.is_empty() {
            assert!(report.text.contains("only ASCII"), "{}", report.text);
            assert_eq!(kit.get("f"), file);
        } else {
            assert_eq!(report.text, "Edited f");
            assert_eq!(kit.get("f"), expected);
        }
    }
}
