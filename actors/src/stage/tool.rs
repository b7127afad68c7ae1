//! Tools that no model has: one that counts its effects and then hangs, whatever it is told.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use seekclaw_storage::record::log::Effect;
use serde_json::{Map, Value};

use crate::tools::{ToolContext, ToolReport};

/// Declares an effect, counts it under `key`, and ignores its token for ever.
pub(crate) const STUBBORN: &str = "stubborn";

static EFFECTS: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

/// How often the effect of `key` happened.
pub(crate) fn effects(key: &str) -> usize {
    EFFECTS.lock().unwrap().get(key).copied().unwrap_or_default()
}

/// Runs a call of [`STUBBORN`].
pub(crate) async fn run(arguments: &Map<String, Value>, ctx: &ToolContext) -> ToolReport {
    let key = arguments.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
    let effect = Effect::Other { what: key.clone() };
    if let Err(error) = (ctx.declare)(effect).await {
        return ToolReport::failed(error.to_string());
    }
    *EFFECTS.lock().unwrap().entry(key).or_default() += 1;
    std::future::pending().await
}
