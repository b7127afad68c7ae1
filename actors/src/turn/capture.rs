//! What a turn works with, captured when it starts (contract 4.2): later changes of settings, mode or
//! workspace do not reach it, restarts included. Prompt files are read again at every step.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use seekclaw_protocol::{ErrorCode, Mode, ReasoningLevel};
use seekclaw_storage::config::model::{Config, WorkspaceConfig};
use seekclaw_storage::record::session::SessionRow;
use seekclaw_storage::record::turn::TurnRow;
use seekclaw_storage::store::Reader;

use super::TurnFailure;
use super::state::Bounds;
use crate::agent::fit;
use crate::agent::permissions::Permissions;
use crate::agent::prompt::{self, PromptContext};
use crate::config::{OwnConfig, Settings};
use crate::history::Message;
use crate::provider::{Candidate, ProviderError, Request, chain};
use crate::services::Services;
use crate::tools::{Reach, ToolLimits, ToolSpec, registry};
use crate::workspace::Workspace;

/// How long a file lock is waited for (contract 10).
const LOCK_WAIT: Duration = Duration::from_secs(30);
/// Least output of a tool that the model gets, in characters (contract 5.3).
const MIN_OUTPUT_CHARS: u64 = 4000;

/// What holds for the whole turn.
pub(crate) struct Capture {
    pub(crate) config: Arc<Config>,
    pub(crate) mode: Mode,
    pub(crate) reasoning: ReasoningLevel,
    pub(crate) reach: Arc<Reach>,
    pub(crate) limits: ToolLimits,
    pub(crate) verify_command: Option<String>,
    own: WorkspaceConfig,
    choice: Option<String>,
    network: bool,
    workspace: Option<Arc<Workspace>>,
    home: PathBuf,
    cwd: PathBuf,
    date: String,
    language: String,
    specs: Vec<ToolSpec>,
}

/// What one step is made of.
pub(crate) struct Prepared {
    messages: Vec<Message>,
    /// System prompt of each candidate, by reference.
    systems: HashMap<String, String>,
}

impl Capture {
    /// Finds out what the turn of `turn` in the session of `row` works with.
    pub(crate) async fn job(
        services: Services,
        row: SessionRow,
        turn: TurnRow,
    ) -> Result<Arc<Self>, TurnFailure> {
        let (settings, workspace) = match row.workspace.as_str() {
            "" => (services.config.fresh().await, None),
            path => {
                let settings = services
                    .config
                    .fresh_in(path.into())
                    .await
                    .map_err(|error| TurnFailure { code: error.code, message: error.message })?;
                let workspace = Arc::clone(&settings.workspace);
                (Arc::new(settings), Some(workspace))
            }
        };
        let captured =
            tokio::task::spawn_blocking(move || Self::of(&services, &settings, workspace, &row, &turn));
        let cut_off = |error: tokio::task::JoinError| TurnFailure::internal(error.to_string());
        captured.await.map_err(cut_off)?.map(Arc::new)
    }

    /// Reads what is on disk. Blocks.
    fn of(
        services: &Services,
        settings: &Settings,
        workspace: Option<Arc<Workspace>>,
        row: &SessionRow,
        turn: &TurnRow,
    ) -> Result<Self, TurnFailure> {
        let config = Arc::clone(&settings.config);
        let own = if workspace.is_some() { settings.own.config.clone() } else { WorkspaceConfig::default() };
        let reach = Arc::new(reach(services, &config, workspace.as_deref(), &row.key.id)?);
        let configured =
            if workspace.is_some() { settings.mode() } else { OwnConfig::default().mode(&config) };
        let verify = workspace.as_ref().filter(|_| own.auto_verify.unwrap_or(config.agent.auto_verify));
        let choice = (!turn.model.is_empty()).then(|| turn.model.clone());
        Ok(Self {
            mode: Mode::parse(&turn.mode).unwrap_or(configured),
            reasoning: row.reasoning,
            limits: limits(&config, &own, choice.as_deref()),
            verify_command: verify.and_then(|workspace| verify_command(&own, workspace)),
            network: row.network,
            home: services.home.path().to_owned(),
            cwd: services.cwd.as_ref().clone(),
            date: prompt::today(),
            language: prompt::user_language(),
            specs: registry::specs(),
            workspace,
            config,
            reach,
            own,
            choice,
        })
    }

    /// Bounds of the turn.
    pub(crate) fn bounds(&self) -> Bounds {
        let agent = &self.config.agent;
        Bounds {
            max_answers: agent.max_steps.saturating_add(agent.max_repair_attempts.min(128)),
            max_continuations: agent.max_output_continuations,
            max_repairs: agent.max_repair_attempts.min(128),
            verify: self.verify_command.is_some(),
        }
    }

    /// Why `tool` may not run, if so; enforced where it would run.
    pub(crate) fn refusal(&self, tool: &str) -> Option<String> {
        let spec = self.specs.iter().find(|spec| spec.name == tool)?;
        self.permissions(true).refusal(spec)
    }

    fn permissions(&self, vision: bool) -> Permissions {
        Permissions {
            mode: self.mode,
            disabled: self.own.disabled_tools.clone(),
            network: self.network,
            vision,
        }
    }

    /// Chooses candidates, loads images, reads prompt files. Blocks.
    pub(crate) fn prepare(
        &self,
        mut messages: Vec<Message>,
        reader: &Reader,
        uid: u64,
        restarts: u32,
    ) -> Result<(Vec<Candidate>, Prepared), ProviderError> {
        let vision = messages.iter().any(|message| !message.images.is_empty());
        let candidates = chain::candidates(&self.config, &self.own, self.choice.as_deref(), vision)
            .map_err(|error| refused(ErrorCode::NoModel, error.to_string()))?;
        let candidates = self.after_restarts(candidates, restarts);
        for image in messages.iter_mut().flat_map(|message| &mut message.images) {
            let bytes = reader
                .image(uid, &image.id)
                .map_err(|error| refused(ErrorCode::Internal, error.to_string()))?;
            image.bytes = bytes.map(Arc::new);
        }
        let system = |candidate: &Candidate| (candidate.reference(), self.system(candidate));
        let systems = candidates.iter().map(system).collect();
        Ok((candidates, Prepared { messages, systems }))
    }

    /// The first restart asks the same model, the next ones those after it (rulings 1, 34).
    fn after_restarts(&self, mut candidates: Vec<Candidate>, restarts: u32) -> Vec<Candidate> {
        if self.config.routing.failover_enabled {
            let skip = usize::try_from(restarts.saturating_sub(1)).unwrap_or(usize::MAX);
            candidates.drain(..skip.min(candidates.len().saturating_sub(1)));
        }
        candidates
    }

    fn system(&self, candidate: &Candidate) -> String {
        let kinds = self.workspace.iter().flat_map(|workspace| &workspace.kinds);
        let context = PromptContext {
            home: self.home.clone(),
            workspace: self.workspace.as_ref().map(|workspace| workspace.root.clone()),
            root: self.reach.root.clone(),
            daemon_cwd: self.cwd.clone(),
            project_kinds: kinds.map(|kind| (*kind).to_owned()).collect(),
            base: self.own.system_prompt.clone().unwrap_or_else(|| self.config.agent.system_prompt.clone()),
            personality: self
                .own
                .personality
                .clone()
                .unwrap_or_else(|| self.config.agent.personality.clone()),
            mode: self.mode,
            network: self.network,
            auto_verify: self.verify_command.is_some(),
            date: self.date.clone(),
            language: self.language.clone(),
            candidate: candidate.clone(),
        };
        prompt::assemble(&context, &[], &[])
    }

    /// The request for one candidate.
    pub(crate) fn request(&self, candidate: &Candidate, prepared: &Prepared) -> Request {
        let model = &candidate.model;
        let system = prepared.systems.get(&candidate.reference()).cloned().unwrap_or_default();
        let offered = self.permissions(model.capabilities.vision).offered(&self.specs);
        let tools = if model.capabilities.tool_calling { offered } else { Vec::new() };
        let fitted = fit::prepare(prepared.messages.clone(), &system, &tools, model);
        Request {
            messages: fitted.messages,
            tools,
            max_output: model.max_output,
            temperature: self.own.temperature.or_else(|| self.profile_temperature()),
            reasoning: self.reasoning,
            system,
        }
    }

    fn profile_temperature(&self) -> Option<f64> {
        self.config.profiles.get(&self.config.active_profile)?.temperature
    }
}

fn refused(code: ErrorCode, message: String) -> ProviderError {
    ProviderError { code, message, retryable: false, committed: false, retry_after: None }
}

/// A global session writes only in a scratch folder of its own (ruling 17).
fn reach(
    services: &Services,
    config: &Config,
    workspace: Option<&Workspace>,
    session: &str,
) -> Result<Reach, TurnFailure> {
    let root = match workspace {
        Some(workspace) => workspace.root.clone(),
        None => scratch(&services.home.scratch().join(session))?,
    };
    Ok(Reach {
        root,
        additional: config.agent.additional_directories.iter().map(PathBuf::from).collect(),
        home: services.home.path().to_owned(),
        denied: config.agent.denied_read_paths.iter().map(PathBuf::from).collect(),
    })
}

fn scratch(folder: &Path) -> Result<PathBuf, TurnFailure> {
    let made = std::fs::create_dir_all(folder).and_then(|()| folder.canonicalize());
    made.map_err(|error| {
        TurnFailure::internal(format!("cannot make the scratch folder {}: {error}", folder.display()))
    })
}

/// Output of a call: 5 % of the context window, within bounds (contract 5.3).
fn limits(config: &Config, own: &WorkspaceConfig, choice: Option<&str>) -> ToolLimits {
    let head = chain::candidates(config, own, choice, false).ok().and_then(|all| all.into_iter().next());
    let window = head.map_or(128_000, |candidate| candidate.model.context_window);
    let most = config.agent.max_tool_output_chars.max(MIN_OUTPUT_CHARS);
    let chars = (window / 5).clamp(MIN_OUTPUT_CHARS, most);
    ToolLimits {
        output_chars: usize::try_from(chars).unwrap_or(usize::MAX),
        bash_timeout: Duration::from_secs(config.agent.bash_timeout_seconds.clamp(1, 3600)),
        lock_wait: LOCK_WAIT,
    }
}

/// The workspace's own check, else that of its first kind that has one (contract 5.7).
fn verify_command(own: &WorkspaceConfig, workspace: &Workspace) -> Option<String> {
    if let Some(command) = own.verify_command.as_deref().map(str::trim).filter(|command| !command.is_empty())
    {
        return Some(command.to_owned());
    }
    let check = |kind: &&str| match *kind {
        "dotnet" => Some("dotnet build"),
        "node" => has_build_script(&workspace.root).then_some("npm run build"),
        "rust" => Some("cargo check"),
        "go" => Some("go build ./..."),
        _ => None,
    };
    workspace.kinds.iter().find_map(check).map(str::to_owned)
}

fn has_build_script(root: &Path) -> bool {
    let package = std::fs::read(root.join("package.json")).unwrap_or_default();
    let package: serde_json::Value = serde_json::from_slice(&package).unwrap_or_default();
    package.pointer("/scripts/build").is_some_and(serde_json::Value::is_string)
}
