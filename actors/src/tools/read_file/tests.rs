use serde_json::json;

use super::super::files_kit::{Kit, args};
use super::super::text::hash;
use super::*;

async fn read(kit: &Kit, value: Value) -> ToolReport {
    run(&args(value), &kit.ctx).await
}

#[tokio::test]
async fn a_part_is_read_and_the_whole_is_seen() {
    let kit = Kit::new().await;
    kit.put("a.txt", "one\ntwo\nthree\n");
    let report = read(&kit, json!({"path": "a.txt", "offset": 2, "limit": 1})).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Ok, "2\ttwo"));
    let path = kit.file("a.txt").to_string_lossy().into_owned();
    assert_eq!(report.seen, [Seen { path, hash: hash(b"one\ntwo\nthree\n") }]);
    assert_eq!(report.summary, "Read a.txt (1 of 3 lines)");
}

#[tokio::test]
async fn empty_missing_and_short_files_say_so() {
    let kit = Kit::new().await;
    kit.put("empty", "");
    kit.put("short", "x");
    std::os::unix::fs::symlink("nowhere", kit.file("dangling")).unwrap();
    assert_eq!(read(&kit, json!({"path": "empty"})).await.text, "(empty file)");
    let short = read(&kit, json!({"path": "short", "offset": 5})).await;
    assert_eq!(short.text, "(no line 5: the file has 1 lines)");
    for name in ["missing", "no/dir", "dangling"] {
        let report = read(&kit, json!({"path": name})).await;
        assert_eq!(report.text, format!("File not found: {}", kit.file(name).display()));
        assert_eq!(report.outcome, Outcome::Failed);
        assert!(report.seen.is_empty());
    }
}

#[tokio::test]
async fn encodings_are_recognised_across_chunks() {
    let kit = Kit::new().await;
    let line = "é😀x\n".repeat(CHUNK / 4);
    let utf16: Vec<u8> = "\u{FEFF}"
        .chars()
        .chain(line.chars())
        .collect::<String>()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    kit.put("utf8", &line);
    kit.put("utf16", &utf16);
    kit.put("bom", [b"\xEF\xBB\xBF".as_slice(), line.as_bytes()].concat());
    for name in ["utf8", "utf16", "bom"] {
        let report = read(&kit, json!({"path": name, "offset": CHUNK / 4, "limit": 2})).await;
        assert_eq!(report.text, format!("{}\té😀x", CHUNK / 4), "{name}");
    }
    kit.put("latin", b"caf\xE9\n");
    assert_eq!(read(&kit, json!({"path": "latin"})).await.text, "1\tcaf\u{FFFD}");
    kit.put("binary", b"\x7fELF\0\0");
    assert!(read(&kit, json!({"path": "binary"})).await.text.contains("binary"));
}

#[tokio::test]
async fn the_budget_holds_and_says_what_is_missing() {
    let mut kit = Kit::new().await;
    kit.ctx.limits.output_chars = 6;
    kit.put("a", "aa\nbb\ncc\n");
    let report = read(&kit, json!({"path": "a"})).await;
    assert_eq!(report.text, "1\taa\n2\n[read_file cut: 8 bytes omitted]");
    assert_eq!(report.omitted, 8);
}

#[tokio::test]
async fn directories_pipes_and_denied_places_are_not_read() {
    let kit = Kit::new().await;
    std::fs::write(kit.top.join("home/db"), "x").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        kit.file("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(read(&kit, json!({"path": "."})).await.text.ends_with("it is a directory"));
    assert!(read(&kit, json!({"path": "pipe"})).await.text.ends_with("it is not a regular file"));
    let denied = read(&kit, json!({"path": "../home/db"})).await;
    assert_eq!(denied.outcome, Outcome::Denied);
    assert!(denied.text.starts_with("Path denied: "), "{}", denied.text);
}

#[tokio::test]
async fn wrong_arguments_and_cancel_have_their_results() {
    let kit = Kit::new().await;
    kit.put("a", "x");
    let report = read(&kit, json!({"path": 7})).await;
    assert!(report.text.starts_with("read_file crashed: "), "{}", report.text);
    assert!(read(&kit, json!({})).await.text.contains("path"));
    kit.ctx.cancel.cancel();
    assert_eq!(read(&kit, json!({"path": "a"})).await.outcome, Outcome::Cancelled);
}
