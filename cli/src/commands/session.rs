//! `session`: list, show and change sessions of one scope.

mod show;

use clap::Subcommand;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::Scope;
use crate::client::{Client, Fields};
use crate::commands::run::levels::parse_level;
use crate::commands::{Context, document};
use crate::output::{note, print};
use crate::render::style::Style;
use crate::render::table::Table;
use crate::render::when::ago;
use crate::status::{Failure, Status};

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List the sessions of a directory, the latest first
    List {
        /// Include archived sessions
        #[arg(long, short)]
        all: bool,
        #[command(flatten)]
        scope: Scope,
    },
    /// Show the conversation of a session
    Show {
        /// The session
        id: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Make an empty session and print its id
    New {
        /// How much models should think in it: none, low, medium, high, max, xhigh, ultra
        #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
        reasoning: Option<seekclaw_protocol::ReasoningLevel>,
        #[command(flatten)]
        scope: Scope,
    },
    /// Give a session another title; an empty one clears it
    Rename {
        /// The session
        id: String,
        /// The title
        title: String,
        #[command(flatten)]
        scope: Scope,
    },
    /// Put a session out of sight
    Archive {
        /// The session
        id: String,
        /// Take it back instead
        #[arg(long)]
        undo: bool,
        #[command(flatten)]
        scope: Scope,
    },
    /// Delete sessions for good
    Rm {
        /// The sessions
        #[arg(required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        scope: Scope,
    },
}

/// What lists tell about one session.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Header {
    /// Its id.
    pub(crate) id: String,
    /// Its title, once it has one.
    pub(crate) title: Option<String>,
    /// Whether it is out of sight.
    pub(crate) archived: bool,
    /// How much models think in it.
    pub(crate) reasoning_level: String,
    /// Model calls so far.
    pub(crate) llm_rounds: u64,
    /// Tokens sent so far.
    pub(crate) total_input_tokens: u64,
    /// Tokens received so far.
    pub(crate) output_tokens: u64,
    /// When it last changed.
    pub(crate) updated_at: String,
}

/// Runs a `session` command.
pub(crate) async fn run(context: &Context, command: SessionCommand) -> anyhow::Result<Status> {
    match command {
        SessionCommand::List { all, scope } => list(context, &scope, all).await,
        SessionCommand::Show { id, scope } => show::run(context, &scope, &id).await,
        SessionCommand::New { reasoning, scope } => {
            let level = reasoning.map(|level| ("reasoningLevel", json!(level.as_str())));
            let params = with(&scope, level)?;
            let mut client = context.connect().await?;
            let answer = client.call("make a session", "session.new", params).await?;
            print_id(context, &answer.data)
        }
        SessionCommand::Rename { id, title, scope } => {
            let params = with(&scope, [("id", json!(id)), ("title", json!(title))])?;
            change(context, "rename the session", "session.update", params).await
        }
        SessionCommand::Archive { id, undo, scope } => {
            let params = with(&scope, [("id", json!(id)), ("archived", json!(!undo))])?;
            change(context, "archive the session", "session.archive", params).await
        }
        SessionCommand::Rm { ids, scope } => remove(context, &scope, &ids).await,
    }
}

/// The scope's parameters with `more`.
fn with<'a>(scope: &Scope, more: impl IntoIterator<Item = (&'a str, Value)>) -> Result<Fields, Failure> {
    let mut params = scope.params()?;
    params.extend(more.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Ok(params)
}

/// The sessions of a scope, the latest first.
pub(crate) async fn listed(
    client: &mut Client,
    scope: &Scope,
    archived: bool,
) -> Result<Vec<Header>, Failure> {
    let params = with(scope, [("includeArchived", json!(archived))])?;
    document(&client.call("list the sessions", "session.list", params).await?, "the list of sessions")
}

async fn list(context: &Context, scope: &Scope, all: bool) -> anyhow::Result<Status> {
    let params = with(scope, [("includeArchived", json!(all))])?;
    let mut client = context.connect().await?;
    let answer = client.call("list the sessions", "session.list", params).await?;
    let raw: Value = document(&answer, "the list of sessions")?;
    let headers: Vec<Header> = document(&answer, "the list of sessions")?;
    if headers.is_empty() && !context.output.json {
        note(&format!("no sessions in {}", scope.describe()));
        return Ok(Status::Done);
    }
    context.output.result(&raw, |style| table(&headers, style))?;
    Ok(Status::Done)
}

fn table(headers: &[Header], style: Style) -> String {
    let mut table = Table::new(["ID", "TITLE", "UPDATED", "CALLS", "TOKENS"]);
    for header in headers {
        let title = header.title.as_deref().unwrap_or("–");
        let title = if header.archived { format!("{title} (archived)") } else { title.to_owned() };
        let tokens = format!("{} in, {} out", header.total_input_tokens, header.output_tokens);
        table.row([&header.id, &title, &ago(&header.updated_at), &header.llm_rounds.to_string(), &tokens]);
    }
    table.render(style)
}

async fn change(context: &Context, attempt: &str, method: &str, params: Fields) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call_on_session(attempt, method, params).await?;
    let raw: Value = document(&answer, "the session")?;
    let header: Header = document(&answer, "the session")?;
    context.output.result(&raw, |style| table(std::slice::from_ref(&header), style))?;
    Ok(Status::Done)
}

async fn remove(context: &Context, scope: &Scope, ids: &[String]) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    for id in ids {
        let params = with(scope, [("id", json!(id))])?;
        let attempt = format!("delete session {id}");
        let answer = client.call_on_session(&attempt, "session.delete", params).await?;
        print_id(context, &answer.data)?;
    }
    Ok(Status::Done)
}

fn print_id(context: &Context, id: &str) -> anyhow::Result<Status> {
    if context.output.json {
        print(&format!("{}\n", json!({"id": id})))?;
    } else {
        print(&format!("{}\n", crate::render::escape::neutral(id)))?;
    }
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_shows_title_age_and_use() {
        let headers: Vec<Header> = serde_json::from_value(json!([
            {"id": "20260731-120000-a1b2c3", "title": "rename foo", "updatedAt": "1999-07-31T12:00:00Z",
             "llmRounds": 2, "totalInputTokens": 900, "outputTokens": 40, "archived": false},
            {"id": "x", "archived": true, "updatedAt": "1999-07-31T12:00:00Z", "somethingNew": 1},
        ]))
        .unwrap();
        let text = table(&headers, Style::PLAIN);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("20260731-120000-a1b2c3  rename foo"), "{text}");
        assert!(lines[1].ends_with("1999-07-31  2      900 in, 40 out"), "{text}");
        assert!(lines[2].contains("– (archived)"), "{text}");
    }

    #[test]
    fn requests_carry_the_scope() {
        let scope = Scope { dir: None, global: true };
        let params = with(&scope, [("id", json!("s")), ("title", json!("t"))]).unwrap();
        assert_eq!(Value::Object(params), json!({"global": true, "id": "s", "title": "t"}));
    }
}
