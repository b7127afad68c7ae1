//! `lock`: which files are being written.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::commands::{Context, document};
use crate::output::note;
use crate::render::table::Table;
use crate::render::when::ago;
use crate::status::Status;

/// What to do with locks.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// List the file locks that are held
    List,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Held {
    workspace: String,
    file: String,
    owner: String,
    acquired_at: String,
}

/// Lists the locks.
pub(crate) async fn list(context: &Context) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call("list the locks", "lock.list", json!({})).await?;
    let raw: Value = document(&answer, "the list of locks")?;
    let held: Vec<Held> = document(&answer, "the list of locks")?;
    if held.is_empty() && !context.output.json {
        note("no file is locked");
        return Ok(Status::Done);
    }
    context.output.result(&raw, |style| {
        let mut table = Table::new(["FILE", "OWNER", "SINCE", "WORKSPACE"]);
        for lock in &held {
            table.row([&lock.file, &lock.owner, &ago(&lock.acquired_at), &lock.workspace]);
        }
        table.render(style)
    })?;
    Ok(Status::Done)
}
