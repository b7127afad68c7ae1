//! `model`: which one answers.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commands::{Context, document};
use crate::render::escape::{neutral, one_line};
use crate::render::style::Style;
use crate::render::table::Table;
use crate::render::when::took;
use crate::status::Status;

/// Columns of a test's detail.
const DETAIL_COLUMNS: usize = 400;

/// What to do with models.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// List the models; * marks the one that answers
    List,
    /// Let a model answer from now on
    Use {
        /// Reference `provider/model`, alias, or a model id that only one provider has
        model: String,
    },
    /// Send a model one short message
    Test {
        /// Reference, alias or id
        model: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    r#ref: String,
    active: bool,
    provider_enabled: bool,
    alias: Option<String>,
    context_window: u64,
    max_output: u64,
    capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Capabilities {
    tools: bool,
    thinking: bool,
    vision: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outcome {
    model: String,
    success: bool,
    detail: String,
    latency_ms: f64,
}

/// Runs a `model` command.
pub(crate) async fn run(context: &Context, command: ModelCommand) -> anyhow::Result<Status> {
    match command {
        ModelCommand::List => list(context).await,
        ModelCommand::Use { model } => switch(context, &model).await,
        ModelCommand::Test { model } => test(context, &model).await,
    }
}

async fn list(context: &Context) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call("list the models", "model.catalog", json!({})).await?;
    let raw: Value = document(&answer, "the list of models")?;
    let entries: Vec<Entry> = document(&answer, "the list of models")?;
    context.output.result(&raw, |style| table(&entries, style))?;
    Ok(Status::Done)
}

fn table(entries: &[Entry], style: Style) -> String {
    let mut table = Table::new(["", "MODEL", "ALIAS", "CONTEXT", "OUTPUT", "CAN"]);
    for entry in entries {
        let can = [
            ("tools", entry.capabilities.tools),
            ("thinking", entry.capabilities.thinking),
            ("vision", entry.capabilities.vision),
        ];
        let can: Vec<&str> = can.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
        let name =
            if entry.provider_enabled { entry.r#ref.clone() } else { format!("{} (disabled)", entry.r#ref) };
        let active = if entry.active { "*" } else { "" };
        table.row([
            active,
            &name,
            entry.alias.as_deref().unwrap_or(""),
            &entry.context_window.to_string(),
            &entry.max_output.to_string(),
            &can.join(", "),
        ]);
    }
    table.render(style)
}

async fn switch(context: &Context, model: &str) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call("use the model", "model.switch", json!({"model": model})).await?;
    context.output.result(&json!({"result": answer.data}), |_| format!("{}\n", neutral(&answer.data)))?;
    Ok(Status::Done)
}

async fn test(context: &Context, model: &str) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call("test the model", "model.test", json!({"model": model})).await?;
    let raw: Value = document(&answer, "the test")?;
    let outcome: Outcome = document(&answer, "the test")?;
    context.output.result(&raw, |_| {
        let mark = if outcome.success { "✓" } else { "✗" };
        let detail = one_line(&outcome.detail, DETAIL_COLUMNS);
        format!("{mark} {} ({}): {detail}\n", neutral(&outcome.model), took(outcome.latency_ms))
    })?;
    Ok(if outcome.success { Status::Done } else { Status::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_marks_the_model_that_answers() {
        let entries: Vec<Entry> = serde_json::from_value(json!([
            {"ref": "builtin/offline", "active": true, "provider": "builtin", "providerEnabled": true, "id": "offline",
             "alias": null, "contextWindow": 128000, "maxOutput": 8192, "tags": [],
             "capabilities": {"streaming": true, "tools": true, "vision": false}},
        ]))
        .unwrap();
        let text = table(&entries, Style::PLAIN);
        assert!(text.lines().nth(1).unwrap().starts_with("*  builtin/offline"), "{text}");
        assert!(text.ends_with("128000   8192    tools\n"), "{text}");
    }
}
