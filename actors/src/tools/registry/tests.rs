use futures_util::FutureExt;
use seekclaw_storage::record::log::Outcome;
use serde_json::json;

use super::*;
use crate::tools::kit::Kit;

#[test]
fn specs_are_sorted_and_agree_with_the_lookups() {
    let specs = specs();
    assert_eq!(specs.len(), 7);
    assert!(specs.is_sorted_by(|a, b| a.name < b.name));
    for spec in specs {
        assert!(known(&spec.name), "{}", spec.name);
        assert_eq!(is_mutating(&spec.name), spec.mutating, "{}", spec.name);
        assert_ne!(label(&spec.name), label("unknown"), "{}", spec.name);
        assert_eq!(spec.parameters.get("type"), Some(&json!("object")), "{}", spec.name);
    }
    assert!(!known("web_search") && is_mutating("web_search"));
}

#[tokio::test]
async fn an_unknown_tool_is_a_failed_result() {
    let report = Kit::new().await.call("nope", json!({})).await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Failed, "Unknown tool: nope"));
}

#[tokio::test]
async fn a_panic_in_a_tool_is_a_failed_result() {
    let mut kit = Kit::new().await;
    kit.ctx.declare = std::sync::Arc::new(|_| async { panic!("the store is {}", "upside down") }.boxed());
    let report = kit.call("bash", json!({"command": "true"})).await;
    assert_eq!(report.text, "bash crashed: the store is upside down");
    assert_eq!(report.outcome, Outcome::Failed);
}

#[tokio::test]
async fn tools_are_run_by_their_names() {
    let kit = Kit::new().await;
    let written = kit.call("write_file", json!({"path": "a.txt", "content": "one\n"})).await;
    assert_eq!(written.outcome, Outcome::Ok, "{}", written.text);
    written.seen.iter().for_each(|seen| kit.ctx.seen.note(seen));
    let edited =
        kit.call("edit_file", json!({"path": "a.txt", "old_string": "one", "new_string": "two"})).await;
    assert_eq!(edited.outcome, Outcome::Ok, "{}", edited.text);
    assert_eq!(kit.call("read_file", json!({"path": "a.txt"})).await.text.trim_end(), "1\ttwo");
    assert_eq!(kit.call("grep", json!({"pattern": "two"})).await.text, "a.txt:1: two");
    assert_eq!(kit.call("bash", json!({"command": "cat a.txt"})).await.text, "two");
}
