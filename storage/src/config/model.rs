//! The fields of `config.json` and of a workspace's config (contract 6.9). Missing ones take their
//! defaults; unknown ones are kept by the file layer, not here.

use std::collections::BTreeMap;
use std::fmt;

use seekclaw_protocol::{Mode, ReasoningLevel};
use serde::{Deserialize, Deserializer, Serialize};

/// The whole of `config.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Name of the profile in use.
    pub active_profile: String,
    /// Named choices of provider, model and mode.
    pub profiles: BTreeMap<String, Profile>,
    /// Model providers.
    pub providers: Vec<Provider>,
    /// How a model is chosen and retried.
    pub routing: Routing,
    /// The agent loop.
    pub agent: Agent,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            active_profile: "default".to_owned(),
            profiles: BTreeMap::new(),
            providers: Vec::new(),
            routing: Routing::default(),
            agent: Agent::default(),
        }
    }
}

/// A named choice of provider and model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Profile {
    /// Provider id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model id or reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Strategy name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Written, never read (contract 2.5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// Dialect of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions.
    #[default]
    Openai,
    /// Messages.
    Anthropic,
}

/// A model provider.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Provider {
    /// Unique id, matched in any case.
    pub id: String,
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Dialect.
    pub kind: ProviderKind,
    /// Base URL, without `/chat/completions`.
    pub base_url: String,
    /// Key, in clear: the file is 0600.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// `OpenAI-Organization` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// Proxy URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Limit for response headers and for gaps in a stream, in seconds.
    #[serde(deserialize_with = "whole")]
    pub timeout_seconds: u64,
    /// Where models are listed, if not at the usual place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_list_url: Option<String>,
    /// Further request headers.
    pub headers: BTreeMap<String, String>,
    /// Level name to what the provider calls it.
    pub reasoning_effort_map: BTreeMap<String, String>,
    /// Anthropic cache marks.
    pub prompt_caching: bool,
    /// Disabled providers answer nothing.
    pub enabled: bool,
    /// Lower comes first.
    #[serde(deserialize_with = "whole")]
    pub priority: i64,
    /// Its models.
    pub models: Vec<Model>,
}

/// Neither the key nor what else may hold one (headers, proxy, URLs): keys never reach a log.
impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Provider");
        shown.field("id", &self.id).field("kind", &self.kind).field("enabled", &self.enabled);
        shown.field("priority", &self.priority).field("models", &self.models).finish_non_exhaustive()
    }
}

impl Default for Provider {
    fn default() -> Self {
        Self {
            id: String::new(),
            name: None,
            kind: ProviderKind::Openai,
            base_url: String::new(),
            api_key: None,
            organization: None,
            proxy: None,
            timeout_seconds: 120,
            model_list_url: None,
            headers: BTreeMap::new(),
            reasoning_effort_map: BTreeMap::new(),
            prompt_caching: true,
            enabled: true,
            priority: 0,
            models: Vec::new(),
        }
    }
}

/// One model of a provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Model {
    /// Id that the provider knows.
    pub id: String,
    /// Short name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Tokens of prompt and answer together.
    #[serde(deserialize_with = "whole")]
    pub context_window: u64,
    /// Tokens of an answer.
    #[serde(deserialize_with = "whole")]
    pub max_output: u64,
    /// USD per million input tokens.
    pub input_price_per_m_tok: f64,
    /// USD per million output tokens.
    pub output_price_per_m_tok: f64,
    /// Free words.
    pub tags: Vec<String>,
    /// What it can do.
    pub capabilities: Capabilities,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            id: String::new(),
            alias: None,
            context_window: 128_000,
            max_output: 8192,
            input_price_per_m_tok: 0.0,
            output_price_per_m_tok: 0.0,
            tags: Vec::new(),
            capabilities: Capabilities::default(),
        }
    }
}

/// What a model can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "the contract's own list of independent flags")]
pub struct Capabilities {
    /// Streams its answers.
    pub streaming: bool,
    /// Thinks on request.
    pub thinking: bool,
    /// Reads images.
    pub vision: bool,
    /// Makes images.
    pub image: bool,
    /// Calls tools.
    pub tool_calling: bool,
    /// Answers in JSON on request.
    pub json_mode: bool,
    /// Reasons on its own.
    pub reasoning: bool,
    /// Highest level it takes.
    pub max_reasoning_level: ReasoningLevel,
    /// Makes embeddings.
    pub embedding: bool,
    /// May use MCP tools.
    pub mcp: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            streaming: true,
            thinking: false,
            vision: false,
            image: false,
            tool_calling: true,
            json_mode: false,
            reasoning: false,
            max_reasoning_level: ReasoningLevel::Max,
            embedding: false,
            mcp: true,
        }
    }
}

/// How a model is chosen and retried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Routing {
    /// Whether the next candidate is asked when one fails.
    pub failover_enabled: bool,
    /// Adaptations for one provider (contract 6.2).
    pub deep_seek_optimization_enabled: bool,
    /// Named lists of model references.
    pub strategies: BTreeMap<String, Vec<String>>,
    /// References tried last.
    pub fallback: Vec<String>,
    /// How a strategy list is ordered.
    pub load_balance: String,
    /// Retries of one candidate.
    pub retry: Retry,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            failover_enabled: true,
            deep_seek_optimization_enabled: false,
            strategies: BTreeMap::new(),
            fallback: Vec::new(),
            load_balance: "priority".to_owned(),
            retry: Retry::default(),
        }
    }
}

/// Retries of one candidate (contract 6.5, 6.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// Attempts in all.
    #[serde(deserialize_with = "whole")]
    pub max_attempts: u32,
    /// First wait.
    pub base_delay_seconds: f64,
    /// Longest wait of the doubling.
    pub max_delay_seconds: f64,
    /// Consecutive failures that open the breaker.
    #[serde(deserialize_with = "whole")]
    pub circuit_break_threshold: u32,
    /// How long it stays open.
    pub circuit_cooldown_seconds: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            base_delay_seconds: 1.0,
            max_delay_seconds: 20.0,
            circuit_break_threshold: 4,
            circuit_cooldown_seconds: 60.0,
        }
    }
}

/// The agent loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Agent {
    /// Model steps of a turn.
    #[serde(deserialize_with = "whole")]
    pub max_steps: u32,
    /// Whether a turn that changed files checks its work.
    pub auto_verify: bool,
    /// Repairs after a failed check.
    #[serde(deserialize_with = "whole")]
    pub max_repair_attempts: u32,
    /// Tone of the answers.
    pub personality: String,
    /// Whether long histories are summarised.
    pub enable_context_compaction: bool,
    /// Continuations of a capped answer in a row.
    #[serde(deserialize_with = "whole")]
    pub max_output_continuations: u32,
    /// Global mode.
    pub mode: String,
    /// Key of the base prompt.
    pub system_prompt: String,
    /// Anthropic thinking budget.
    #[serde(deserialize_with = "whole")]
    pub thinking_budget_tokens: u64,
    /// Level of new sessions.
    pub reasoning_level: ReasoningLevel,
    /// Upper bound of a tool's output, in characters.
    #[serde(deserialize_with = "whole")]
    pub max_tool_output_chars: u64,
    /// Limit of a command, in seconds.
    #[serde(deserialize_with = "whole")]
    pub bash_timeout_seconds: u64,
    /// Limit of a scheduled turn, in seconds.
    #[serde(deserialize_with = "whole")]
    pub scheduled_turn_timeout_seconds: u64,
    /// Ours: directories that tools may write beside the workspace (ruling 17).
    pub additional_directories: Vec<String>,
    /// Ours: paths that tools may not read, beside the default list (ruling 38).
    pub denied_read_paths: Vec<String>,
    /// Ours: what happens at start with turns found open: `recent`, `always`, `never` (extensions 6).
    pub resume_turns: String,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            max_steps: 40,
            auto_verify: true,
            max_repair_attempts: 3,
            personality: "pragmatic".to_owned(),
            enable_context_compaction: true,
            max_output_continuations: 6,
            mode: Mode::Edit.as_str().to_owned(),
            system_prompt: "system/default".to_owned(),
            thinking_budget_tokens: 16_384,
            reasoning_level: ReasoningLevel::High,
            max_tool_output_chars: 60_000,
            bash_timeout_seconds: 180,
            scheduled_turn_timeout_seconds: 1800,
            additional_directories: Vec::new(),
            denied_read_paths: Vec::new(),
            resume_turns: "recent".to_owned(),
        }
    }
}

/// A workspace's own `.seekclaw/config.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceConfig {
    /// Provider id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Strategy name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Mode that wins over the global one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Key of the base prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Tone of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub personality: Option<String>,
    /// Skills that are off here.
    pub disabled_skills: Vec<String>,
    /// Tools that are neither offered nor run here.
    pub disabled_tools: Vec<String>,
    /// Whether turns check their work here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_verify: Option<bool>,
    /// Command that checks the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_command: Option<String>,
}

/// Numbers may be written as integers or as fractions (ruling 24); a fraction is rounded.
fn whole<'de, D: Deserializer<'de>, T: TryFrom<i64>>(deserializer: D) -> Result<T, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let rounded = number.round();
    let fits = rounded.abs() < 9e15;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be far inside of i64")]
    let value = if fits { T::try_from(rounded as i64).ok() } else { None };
    value.ok_or_else(|| serde::de::Error::custom(format!("number out of range: {number}")))
}
