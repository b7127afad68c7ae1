//! `provider`: where models are served.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Fields;
use crate::commands::{Context, document, read_stdin};
use crate::output::note;
use crate::render::escape::neutral;
use crate::render::style::Style;
use crate::render::table::Table;
use crate::render::when::took;
use crate::status::{Failure, Status};

/// What to do with providers.
#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// Add a provider, or change one of that id; what is not given stays as it is
    Add(Box<AddArgs>),
    /// List the providers
    List,
    /// Let the active profile use a provider
    Use {
        /// The provider
        id: String,
    },
    /// Remove a provider
    Rm {
        /// The provider
        id: String,
    },
    /// Ask providers whether they answer
    Test {
        /// One provider instead of all
        id: Option<String>,
    },
}

/// Arguments of `provider add`.
#[derive(Debug, Default, Args)]
pub(crate) struct AddArgs {
    /// Id of the provider: the part of a model reference before the slash
    id: String,
    /// Where its API is, for example http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// A model it serves; may be given more than once
    #[arg(long = "model", value_name = "MODEL")]
    models: Vec<String>,
    /// The dialect it speaks: openai or anthropic
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Take the key from this environment variable
    #[arg(long, value_name = "VARIABLE", group = "key")]
    api_key_env: Option<String>,
    /// The key; `-` reads it from standard input. Others can see the arguments of a process: better use one of these
    #[arg(long, value_name = "KEY", group = "key")]
    api_key: Option<String>,
    /// Forget the key
    #[arg(long, group = "key")]
    clear_api_key: bool,
    /// Name for people
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Proxy to reach it through
    #[arg(long, value_name = "URL")]
    proxy: Option<String>,
    /// Order among providers, the lowest first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Seconds until an answer must begin
    #[arg(long, value_name = "SECONDS")]
    timeout_seconds: Option<u32>,
    /// Keep it configured, but out of use
    #[arg(long, conflicts_with = "enable")]
    disable: bool,
    /// Take it into use again
    #[arg(long)]
    enable: bool,
    /// Let the active profile use it from now on
    #[arg(long = "use")]
    activate: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Provider {
    id: String,
    kind: String,
    base_url: String,
    api_key_configured: bool,
    models: Vec<String>,
    enabled: bool,
    active: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Probe {
    id: String,
    online: bool,
    latency_ms: f64,
    detail: String,
}

/// Runs a `provider` command.
pub(crate) async fn run(context: &Context, command: ProviderCommand) -> anyhow::Result<Status> {
    match command {
        ProviderCommand::Add(args) => add(context, &args).await,
        ProviderCommand::List => list(context).await,
        ProviderCommand::Use { id } => simple(context, "use the provider", "provider.use", &id).await,
        ProviderCommand::Rm { id } => simple(context, "remove the provider", "provider.remove", &id).await,
        ProviderCommand::Test { id } => test(context, id.as_deref()).await,
    }
}

async fn add(context: &Context, args: &AddArgs) -> anyhow::Result<Status> {
    let key = key(args, |name| std::env::var(name).ok(), read_stdin)?;
    let mut client = context.connect().await?;
    let answer = client.call("add the provider", "provider.upsert", upsert(args, key)).await?;
    let raw: Value = document(&answer, "the provider")?;
    let provider: Provider = document(&answer, "the provider")?;
    if args.activate {
        client.call("use the provider", "provider.use", json!({"id": args.id})).await?;
    }
    context.output.result(&without_keys(raw), |style| table(std::slice::from_ref(&provider), style))?;
    if !context.output.json {
        note(&format!("`seekclaw provider test {}` asks whether it answers", args.id));
    }
    Ok(Status::Done)
}

fn key(
    args: &AddArgs,
    variable: impl FnOnce(&str) -> Option<String>,
    stdin: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<Option<String>> {
    let key = match (&args.api_key_env, args.api_key.as_deref()) {
        (Some(name), _) => variable(name).with_context(|| {
            Failure::usage(format!(
                "cannot take the key from {name}: the variable is not set, or not valid UTF-8"
            ))
        })?,
        (None, Some("-")) => stdin()?,
        (None, Some(key)) => key.to_owned(),
        (None, None) => return Ok(None),
    };
    let key = key.trim();
    if key.is_empty() {
        return Err(Failure::usage("cannot add the provider: the key is empty").into());
    }
    Ok(Some(key.to_owned()))
}

fn upsert(args: &AddArgs, key: Option<String>) -> Fields {
    let enabled = (args.enable || args.disable).then_some(args.enable);
    let given = [
        ("id", Some(json!(args.id))),
        ("baseUrl", args.base_url.as_ref().map(|url| json!(url))),
        ("models", (!args.models.is_empty()).then(|| json!(args.models))),
        ("kind", args.kind.as_ref().map(|kind| json!(kind))),
        ("apiKey", key.map(|key| json!(key))),
        ("clearApiKey", args.clear_api_key.then_some(Value::Bool(true))),
        ("name", args.name.as_ref().map(|name| json!(name))),
        ("proxy", args.proxy.as_ref().map(|proxy| json!(proxy))),
        ("priority", args.priority.map(|priority| json!(priority))),
        ("timeoutSeconds", args.timeout_seconds.map(|seconds| json!(seconds))),
        ("enabled", enabled.map(|enabled| json!(enabled))),
    ];
    given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

async fn list(context: &Context) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call("list the providers", "provider.list", json!({})).await?;
    let raw: Value = document(&answer, "the list of providers")?;
    let providers: Vec<Provider> = document(&answer, "the list of providers")?;
    if providers.is_empty() && !context.output.json {
        note("no providers: the built-in offline model answers");
        note("add one with `seekclaw provider add ID --base-url URL --model MODEL --api-key-env VARIABLE`");
        return Ok(Status::Done);
    }
    context.output.result(&without_keys(raw), |style| table(&providers, style))?;
    Ok(Status::Done)
}

/// Keys are for the daemon: what is printed lands in logs and scrollback.
fn without_keys(mut raw: Value) -> Value {
    let hide = |provider: &mut Value| {
        if let Some(key) = provider.get_mut("apiKey") {
            *key = Value::Null;
        }
    };
    match raw.as_array_mut() {
        Some(providers) => providers.iter_mut().for_each(hide),
        None => hide(&mut raw),
    }
    raw
}

fn table(providers: &[Provider], style: Style) -> String {
    let mut table = Table::new(["", "ID", "KIND", "URL", "KEY", "MODELS"]);
    for provider in providers {
        let active = if provider.active { "*" } else { "" };
        let key = if provider.api_key_configured { "set" } else { "none" };
        let id = if provider.enabled { provider.id.clone() } else { format!("{} (disabled)", provider.id) };
        let models = provider.models.join(", ");
        table.row([active, &id, &provider.kind, &provider.base_url, key, &models]);
    }
    table.render(style)
}

async fn simple(context: &Context, attempt: &str, method: &str, id: &str) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let answer = client.call(attempt, method, json!({"id": id})).await?;
    context.output.result(&json!({"id": answer.data}), |_| format!("{}\n", neutral(&answer.data)))?;
    Ok(Status::Done)
}

async fn test(context: &Context, id: Option<&str>) -> anyhow::Result<Status> {
    let mut client = context.connect().await?;
    let params = id.map_or_else(|| json!({}), |id| json!({"id": id}));
    let answer = client.call("test providers", "provider.test", params).await?;
    let raw: Value = document(&answer, "the test")?;
    let probes: Vec<Probe> = document(&answer, "the test")?;
    context.output.result(&raw, |style| probe_table(&probes, style))?;
    let online = probes.iter().all(|probe| probe.online);
    Ok(if online { Status::Done } else { Status::Failed })
}

fn probe_table(probes: &[Probe], style: Style) -> String {
    let mut table = Table::new(["ID", "ONLINE", "TOOK", "DETAIL"]);
    for probe in probes {
        let online = if probe.online { "yes" } else { "no" };
        table.row([&probe.id, online, &took(probe.latency_ms), &probe.detail]);
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(line: &[&str]) -> Result<AddArgs, clap::Error> {
        let command = Cli::try_parse_from([&["seekclaw", "provider", "add"], line].concat())?.command;
        let Command::Provider(ProviderCommand::Add(args)) = command else { panic!("{command:?}") };
        Ok(*args)
    }

    #[test]
    fn only_what_is_given_is_sent() {
        let args = parse(&["local", "--base-url", "http://h/v1", "--model", "a", "--model", "b"]).unwrap();
        let expected = json!({"id": "local", "baseUrl": "http://h/v1", "models": ["a", "b"]});
        assert_eq!(Value::Object(upsert(&args, None)), expected);
        let args = parse(&["local", "--disable", "--priority", "-1", "--clear-api-key"]).unwrap();
        let expected = json!({"id": "local", "enabled": false, "priority": -1, "clearApiKey": true});
        assert_eq!(Value::Object(upsert(&args, None)), expected);
    }

    #[test]
    fn a_key_comes_from_one_place() {
        let none = |_: &str| None;
        let unread = || anyhow::bail!("stdin was read");
        let args = parse(&["x", "--api-key-env", "KEY"]).unwrap();
        assert_eq!(key(&args, |_| Some(" k \n".into()), unread).unwrap().as_deref(), Some("k"));
        assert_eq!(crate::status::of(&key(&args, none, unread).unwrap_err()), Status::Usage);
        let args = parse(&["x", "--api-key", "-"]).unwrap();
        assert_eq!(key(&args, none, || Ok("k\n".into())).unwrap().as_deref(), Some("k"));
        assert!(key(&args, none, || Ok("\n".into())).is_err());
        assert_eq!(key(&parse(&["x"]).unwrap(), none, unread).unwrap(), None);
        assert!(parse(&["x", "--api-key", "k", "--api-key-env", "E"]).is_err());
    }

    #[test]
    fn keys_are_never_printed() {
        let raw =
            json!([{"id": "a", "apiKey": "secret", "apiKeyConfigured": true}, {"id": "b", "apiKey": null}]);
        assert!(!without_keys(raw).to_string().contains("secret"));
        assert!(!without_keys(json!({"apiKey": "secret"})).to_string().contains("secret"));
    }

    #[test]
    fn the_list_marks_the_active_one() {
        let providers: Vec<Provider> = serde_json::from_value(json!([
            {"id": "a", "kind": "openai", "baseUrl": "http://h", "apiKeyConfigured": true, "models": ["m", "n"],
             "enabled": true, "active": true},
            {"id": "b", "kind": "openai", "enabled": false},
        ]))
        .unwrap();
        let text = table(&providers, Style::PLAIN);
        assert!(text.contains("*  a             openai  http://h  set   m, n\n"), "{text}");
        assert!(text.contains("   b (disabled)  openai            none\n"), "{text}");
    }
}
