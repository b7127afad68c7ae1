use std::io::Write;
use std::os::unix::fs::symlink;

use seekclaw_storage::record::log::Outcome;
use serde_json::json;

use crate::tools::kit::Kit;

#[tokio::test]
async fn matches_come_by_path_and_line() {
    let kit = Kit::new().await;
    kit.write("b.rs", "fn b() {}\nnothing\nfn c() {}\n");
    kit.write("a/z.rs", "  fn z() {}\r\n");
    kit.write("a.txt", "fn text\n");
    let report = kit.call("grep", json!({"pattern": r"^\s*fn \w"})).await;
    assert_eq!(report.text, "a/z.rs:1:   fn z() {}\na.txt:1: fn text\nb.rs:1: fn b() {}\nb.rs:3: fn c() {}");
    assert_eq!((report.outcome, report.summary.as_str()), (Outcome::Ok, "4 matches in 3 files"));
    let report = kit.call("grep", json!({"pattern": "fn", "glob": "*.rs", "path": "a"})).await;
    assert_eq!(report.text, "a/z.rs:1:   fn z() {}");
    let report = kit.call("grep", json!({"pattern": "fn", "path": "b.rs", "max_results": 1})).await;
    assert_eq!(report.text, "b.rs:1: fn b() {}\n[only the first 1 are shown; narrow the search]");
    assert_eq!(kit.call("grep", json!({"pattern": "absent"})).await.text, "No matches found.");
}

#[tokio::test]
async fn line_ends_of_both_kinds_end_a_line() {
    let kit = Kit::new().await;
    kit.write("a", "one end\r\ntwo end\n");
    let report = kit.call("grep", json!({"pattern": "end$"})).await;
    assert_eq!(report.text, "a:1: one end\na:2: two end");
}

#[tokio::test]
async fn a_broken_expression_is_a_failed_result() {
    let kit = Kit::new().await;
    let report = kit.call("grep", json!({"pattern": "a("})).await;
    assert!(report.text.starts_with("Invalid regex: "), "{}", report.text);
    assert_eq!(report.outcome, Outcome::Failed);
    let report = kit.call("grep", json!({"pattern": r"(\w{1000}){1000}"})).await;
    assert!(report.text.starts_with("Invalid regex: "), "{}", report.text);
}

#[tokio::test]
async fn binary_files_are_skipped_but_not_those_with_a_late_nul() {
    let kit = Kit::new().await;
    kit.write("binary", [b"needle\n".as_slice(), &[0], b"needle\n"].concat());
    kit.write("late", [b"needle\n".repeat(2000).as_slice(), &[0], b"\nlast needle\n"].concat());
    kit.write("latin", b"caf\xe9 needle\n");
    let report = kit.call("grep", json!({"pattern": "needle", "glob": "binary"})).await;
    assert_eq!(report.text, "No matches found.");
    let report = kit.call("grep", json!({"pattern": "last needle"})).await;
    assert_eq!(report.text, "late:2002: last needle");
    let report = kit.call("grep", json!({"pattern": "binary|f. needle|(?-u:\\xE9) needle"})).await;
    assert_eq!(report.text, "latin:1: caf\u{FFFD} needle");
}

#[tokio::test]
async fn long_lines_are_cut_and_endless_ones_are_given_up() {
    let kit = Kit::new().await;
    kit.write("long", format!("x{}\n", "é".repeat(500)));
    let report = kit.call("grep", json!({"pattern": "x"})).await;
    assert_eq!(report.text, format!("long:1: x{}…", "é".repeat(399)));
    let mut huge = std::fs::File::create(kit.root().join("huge")).unwrap();
    huge.write_all(b"needle first\n").unwrap();
    (0..20).for_each(|_| huge.write_all(&vec![b'y'; 1024 * 1024]).unwrap());
    let report = kit.call("grep", json!({"pattern": "needle", "path": "huge"})).await;
    assert!(
        report.text.starts_with("huge:1: needle first\n[1 file was not searched to the end, first huge: ")
    );
}

#[tokio::test]
async fn output_is_cut_at_the_budget_by_whole_lines() {
    let mut kit = Kit::new().await;
    kit.ctx.limits.output_chars = 100;
    kit.write("f", "0123456789ü\n".repeat(50));
    let report = kit.call("grep", json!({"pattern": "0"})).await;
    let lines: Vec<_> = report.text.lines().collect();
    assert_eq!(lines.first(), Some(&"f:1: 0123456789ü"));
    let shown: usize = lines.iter().filter(|l| l.starts_with("f:")).map(|l| l.len() + 1).sum();
    let all: usize = (1..=50).map(|n| format!("f:{n}: 0123456789ü\n").len()).sum();
    assert_eq!(report.omitted as usize, all - shown);
    assert!(lines.last().unwrap().contains(&format!("{} bytes", report.omitted)));
}

#[tokio::test]
async fn links_and_the_home_are_not_searched() {
    let kit = Kit::new().await;
    std::fs::write(kit.ctx.reach.home.join("config.json"), "needle").unwrap();
    symlink(&kit.ctx.reach.home, kit.root().join("link")).unwrap();
    symlink(kit.ctx.reach.home.join("config.json"), kit.root().join("config")).unwrap();
    kit.write("own", "needle");
    let report = kit.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(report.text, "own:1: needle");
    let above = kit.call("grep", json!({"pattern": "needle", "path": ".."})).await;
    assert_eq!(above.text, "own:1: needle");
    let linked = kit.call("grep", json!({"pattern": "needle", "path": "config"})).await;
    assert_eq!(linked.outcome, Outcome::Denied);
}

#[tokio::test]
async fn a_name_with_a_line_break_does_not_forge_a_match() {
    let kit = Kit::new().await;
    kit.write("x\nforged", "needle");
    let report = kit.call("grep", json!({"pattern": "needle"})).await;
    assert_eq!(report.text, "x\u{FFFD}forged:1: needle");
}
