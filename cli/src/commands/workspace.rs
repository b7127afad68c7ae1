//! `workspace`: the daemon's current workspace, which clients that name no directory work in.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::directory;
use crate::client::line::Line;
use crate::commands::{Context, document};
use crate::render::escape::neutral;
use crate::status::Status;

/// What to do with the workspace.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Show the current workspace of the daemon
    Show,
    /// Make the project around a directory the current workspace, for every client
    Open {
        /// A directory of the project
        #[arg(default_value = ".")]
        path: PathBuf,
    },
    /// Make the folders that seekclaw uses in the current workspace
    Init,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Workspace {
    path: String,
    name: String,
    project_kinds: Vec<String>,
    mode: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Created {
    path: String,
    created: Vec<String>,
}

/// Runs a `workspace` command.
pub(crate) async fn run(context: &Context, command: WorkspaceCommand) -> anyhow::Result<Status> {
    match command {
        WorkspaceCommand::Show => {
            let mut client = context.connect().await?;
            show(context, &client.call("show the workspace", "workspace.get", json!({})).await?)
        }
        WorkspaceCommand::Open { path } => {
            let params = json!({"path": directory(Some(&path))?});
            let mut client = context.connect().await?;
            show(context, &client.call("open the workspace", "workspace.open", params).await?)
        }
        WorkspaceCommand::Init => init(context).await,
    }
}

fn show(context: &Context, answer: &Line) -> anyhow::Result<Status> {
    let raw: Value = document(answer, "the workspace")?;
    let workspace: Workspace = document(answer, "the workspace")?;
    context.output.result(&raw, |_| describe(&workspace))?;
    Ok(Status::Done)
}

fn describe(workspace: &Workspace) -> String {
    let kinds = if workspace.project_kinds.is_empty() {
        "plain".to_owned()
    } else {
        workspace.project_kinds.join(", ")
    };
    neutral(&format!("{}\n  {} · {kinds} · mode {}\n", workspace.path, workspace.name, workspace.mode))
}

async fn init(context: &Context) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call("prepare the workspace", "workspace.init", json!({})).await?;
    let raw: Value = document(&answer, "what was made")?;
    let created: Created = document(&answer, "what was made")?;
    context.output.result(&raw, |_| list_created(&created))?;
    Ok(Status::Done)
}

fn list_created(created: &Created) -> String {
    if created.created.is_empty() {
        return neutral(&format!("{} is complete already\n", created.path));
    }
    let made: Vec<String> = created.created.iter().map(|path| format!("  {path}\n")).collect();
    neutral(&format!("made in {}:\n{}", created.path, made.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_described_in_two_lines() {
        let workspace = Workspace {
            path: "/p".into(),
            name: "p".into(),
            project_kinds: vec!["git".into(), "rust".into()],
            mode: "edit".into(),
        };
        assert_eq!(describe(&workspace), "/p\n  p · git, rust · mode edit\n");
    }

    #[test]
    fn what_was_made_is_listed() {
        let made = Created { path: "/p".into(), created: vec![".seekclaw".into()] };
        assert_eq!(list_created(&made), "made in /p:\n  .seekclaw\n");
        assert_eq!(list_created(&Created { path: "/p".into(), created: vec![] }), "/p is complete already\n");
    }
}
