//! Providers that misbehave: nothing half is taken for whole, nothing is asked too often, and what had
//! streamed in vain is withdrawn (contract 5.6, 6; rulings 1, 4, 5, 11, 12, 16, 23, 35).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

#[path = "kit/lib.rs"]
mod kit;

#[path = "providers/broken.rs"]
mod broken;
#[path = "providers/refused.rs"]
mod refused;
#[path = "providers/requests.rs"]
mod requests;

use kit::events::{self, text};
use serde_json::Value;

/// Steps that `model_start` announced.
fn steps(lines: &[Value]) -> Vec<u64> {
    events::of(lines, "model_start").iter().map(|line| line["details"]["step"].as_u64().unwrap()).collect()
}

/// Kinds of the nodes of the chart.
fn kinds(lines: &[Value]) -> Vec<String> {
    events::of(lines, "workflow").iter().map(|line| text(&line["details"]["kind"])).collect()
}

#[track_caller]
fn last<'a>(lines: &'a [Value], event: &str) -> &'a Value {
    let line = lines.last().unwrap();
    assert_eq!(line["event"], event, "{line}");
    line
}
