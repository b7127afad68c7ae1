//! The system prompt of a step, assembled from texts that a user may override and from the project's own
//! notes (contract 5.4). Reads files, so it belongs on a blocking thread. Same inputs and files give the
//! same bytes, which keeps the provider's prompt cache warm.

use std::path::{Path, PathBuf};

use seekclaw_protocol::Mode;

use super::tokens::head_and_tail;
use crate::provider::Candidate;

mod files;
mod texts;
mod variables;

use files::{Text, instructions};
use texts::Texts;
use variables::Variables;

/// Base prompt of a task without a workspace, whatever the settings say.
const GLOBAL_BASE: &str = "system/global";
/// Cap of the instructions, of the memory and of each skill.
const DOCUMENT_TOKENS: u64 = 10_000;

/// What a turn knows when it starts, and the model of the step.
#[derive(Clone, Debug)]
pub struct PromptContext {
    /// The daemon's home.
    pub home: PathBuf,
    /// Root of the workspace; none for a global task.
    pub workspace: Option<PathBuf>,
    /// Where relative paths of tools start: that root, or a global session's scratch folder.
    pub root: PathBuf,
    /// The daemon's own working directory: instructions down to it apply.
    pub daemon_cwd: PathBuf,
    /// Kinds of the project, in the order of the contract (2.4).
    pub project_kinds: Vec<String>,
    /// Key of the base prompt, the workspace's over the global one.
    pub base: String,
    /// Personality, the workspace's over the global one; empty for the default.
    pub personality: String,
    /// Mode of the turn.
    pub mode: Mode,
    /// Whether the session may use the network.
    pub network: bool,
    /// Whether work is checked when the model says it is done.
    pub auto_verify: bool,
    /// Date of the turn's start, see [`today`].
    pub date: String,
    /// Language tag of the user, see [`user_language`].
    pub language: String,
    /// Model of the step.
    pub candidate: Candidate,
}

impl PromptContext {
    fn sandbox_mode(&self) -> &'static str {
        if self.mode.may_mutate() { "workspace_write" } else { "read_only" }
    }

    fn personality(&self) -> &str {
        match self.personality.trim() {
            "" => "pragmatic",
            named => named,
        }
    }

    fn base(&self) -> &str {
        if self.workspace.is_some() { self.base.trim() } else { GLOBAL_BASE }
    }

    /// Keys of the texts in front of the project's own documents, in order.
    fn keys(&self) -> Vec<String> {
        let mut keys = vec![self.base().to_owned(), format!("personality/{}", self.personality())];
        if self.candidate.model.capabilities.vision {
            keys.push("system/vision".to_owned());
        }
        if self.mode != Mode::Edit {
            keys.push(format!("mode/{}", self.mode));
        }
        keys.push(format!("permissions/{}", self.sandbox_mode()));
        keys.extend(self.project_kinds.iter().map(|kind| format!("project/{kind}")));
        keys
    }
}

/// The whole system prompt, with the prompts of enabled `skills` and of MCP servers. Blocks on files.
#[must_use]
pub fn assemble(context: &PromptContext, skills: &[String], mcp: &[String]) -> String {
    let agents = agents_md(context);
    let memory = memory_md(context);
    let documents = Variables::of(context);
    let all = documents.clone().with("agents_md", agents.as_deref()).with("memory", memory.as_deref());
    let texts = Texts::of(context);

    let mut parts: Vec<String> =
        context.keys().iter().filter_map(|key| texts.find(key)).map(|text| all.fill(&text)).collect();
    parts.extend(agents.map(|text| documents.fill(&text)));
    parts.extend(
        skills.iter().map(|text| documents.fill(&head_and_tail(text, DOCUMENT_TOKENS, "this skill"))),
    );
    parts.extend(mcp.iter().map(|text| documents.fill(text)));
    parts.extend(memory.map(|text| documents.fill(&text)));

    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// The local date for [`PromptContext::date`].
#[must_use]
pub fn today() -> String {
    chrono::Local::now().format("%Y-%m-%d").to_string()
}

/// The language tag of the environment for [`PromptContext::language`], `en` if it says none.
#[must_use]
pub fn user_language() -> String {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_MESSAGES", "LANG"]
        .into_iter()
        .find_map(set)
        .map_or_else(|| language_tag(""), |it| language_tag(&it))
}

/// `de_DE.UTF-8` is `de-DE`; the portable locales name no language.
fn language_tag(locale: &str) -> String {
    match locale.split(['.', '@']).next().unwrap_or_default() {
        "" | "C" | "POSIX" => "en".to_owned(),
        tag => tag.replace('_', "-"),
    }
}

/// The root's AGENTS.md and those on the way down to the daemon's directory; the deepest comes last, so
/// that it wins.
fn agents_md(context: &PromptContext) -> Option<String> {
    let workspace = context.workspace.as_deref()?;
    let found: Vec<String> = instructions(workspace, &context.daemon_cwd)
        .into_iter()
        .map(|(path, text)| format!("## {path}\n\n{text}"))
        .collect();
    if found.is_empty() {
        return None;
    }
    let joined = found.join("\n\n");
    let capped = head_and_tail(&joined, DOCUMENT_TOKENS, "AGENTS.md");
    Some(format!(
        "# Project instructions\n\nWritten by the project for agents like you. Follow them; where two disagree, the later one wins.\n\n{capped}"
    ))
}

fn memory_md(context: &PromptContext) -> Option<String> {
    let (base, folder) = match &context.workspace {
        Some(workspace) => (workspace, workspace.join(".seekclaw/memory")),
        None => (&context.home, context.home.join("memory")),
    };
    let text = Text::beneath(base, &folder.join("MEMORY.md"))?.into_inner();
    let capped = head_and_tail(&text, DOCUMENT_TOKENS, "MEMORY.md");
    Some(format!(
        "# Memory\n\nNotes kept from earlier work. They may be out of date: check before you rely on one.\n\n{capped}"
    ))
}

fn display(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests;
