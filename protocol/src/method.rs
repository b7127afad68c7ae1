//! The method table: every method declared once, with its aliases, its params, whether it is journaled
//! and what it lets a client count on. Dispatch, `protocol.info` and the schema hash come from it.

use crate::chat::{CancelParams, ChatParams, SteerParams};
use crate::error::{ErrorCode, WireError};
use crate::hello::HelloParams;
use crate::mode::ModeSwitch;
use crate::model::ModelParams;
use crate::params::{FromParams, NoParams, Params};
use crate::provider::{ProviderParams, ProviderTest, ProviderUpsert};
use crate::session::{
    SessionArchive, SessionList, SessionNew, SessionParams, SessionResume, SessionTruncate, SessionUpdate,
};
use crate::workspace::WorkspaceOpen;

macro_rules! methods {
    (
        ready { $($ready:ident = $name:literal, aliases: [$($alias:literal),*], params: $params:ty,
            mutating: $mutating:literal, capabilities: [$($capability:literal),*];)+ }
        later { $($later:ident = $later_name:literal, aliases: [$($later_alias:literal),*],
            mutating: $later_mutating:literal, capabilities: [$($later_capability:literal),*];)+ }
    ) => {
        /// A known method.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method {
            $(#[doc = concat!("`", $name, "`")] $ready,)+
            $(#[doc = concat!("`", $later_name, "`, not available yet")] $later,)+
        }

        impl Method {
            /// Every method, the available ones first.
            pub const ALL: &[Self] = &[$(Self::$ready,)+ $(Self::$later,)+];

            /// Finds a method by its name or one of its aliases.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $alias)* => Some(Self::$ready),)+
                    $($later_name $(| $later_alias)* => Some(Self::$later),)+
                    _ => None,
                }
            }

            /// The name on the wire.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$ready => $name,)+ $(Self::$later => $later_name,)+ }
            }

            /// Other names that mean the same.
            #[must_use]
            pub fn aliases(self) -> &'static [&'static str] {
                match self { $(Self::$ready => &[$($alias),*],)+ $(Self::$later => &[$($later_alias),*],)+ }
            }

            /// Whether a `commandId` makes it happen once (ruling 28).
            #[must_use]
            pub fn mutating(self) -> bool {
                match self { $(Self::$ready => $mutating,)+ $(Self::$later => $later_mutating,)+ }
            }

            /// What `protocol.info` says a client can count on once this method is available.
            #[must_use]
            pub fn capabilities(self) -> &'static [&'static str] {
                match self {
                    $(Self::$ready => &[$($capability),*],)+
                    $(Self::$later => &[$($later_capability),*],)+
                }
            }

            /// Whether this version runs it.
            #[must_use]
            pub fn available(self) -> bool {
                match self { $(Self::$ready => true,)+ $(Self::$later => false,)+ }
            }
        }

        /// A request whose parameters have been read.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Command {
            $(#[doc = concat!("`", $name, "`")] $ready($params),)+
            /// A known method that this version does not run.
            NotYet(Method),
        }

        impl Command {
            /// Reads the parameters of `method`.
            ///
            /// # Errors
            /// The first broken rule of the method's parameters.
            pub fn decode(method: Method, params: &Params) -> Result<Self, WireError> {
                Ok(match method {
                    $(Method::$ready => Self::$ready(<$params as FromParams>::from_params(params)?),)+
                    $(Method::$later)|+ => Self::NotYet(method),
                })
            }

            /// The method that was asked for.
            #[must_use]
            pub fn method(&self) -> Method {
                match self {
                    $(Self::$ready(_) => Method::$ready,)+
                    Self::NotYet(method) => *method,
                }
            }
        }
    };
}

methods! {
    ready {
        Ping = "ping", aliases: [], params: NoParams, mutating: false, capabilities: [];
        ProtocolInfo = "protocol.info", aliases: [], params: NoParams, mutating: false, capabilities: ["error-codes"];
        ClientHello = "client.hello", aliases: [], params: HelloParams, mutating: false,
            capabilities: ["client.hello", "event-cursors"];
        Shutdown = "shutdown", aliases: [], params: NoParams, mutating: false, capabilities: [];
        Doctor = "doctor", aliases: [], params: NoParams, mutating: false, capabilities: ["doctor"];
        LockList = "lock.list", aliases: [], params: NoParams, mutating: false, capabilities: ["file-locks"];
        Chat = "chat", aliases: ["agent.runTurn", "agent/runTurn"], params: ChatParams, mutating: true,
            capabilities: ["chat", "image-input", "concurrent-turns", "reasoning-level"];
        AgentSteer = "agent.steer", aliases: [], params: SteerParams, mutating: true, capabilities: ["agent.steer"];
        AgentCancel = "agent.cancel", aliases: [], params: CancelParams, mutating: true, capabilities: ["agent.cancel"];
        AgentModeGet = "agent.mode.get", aliases: [], params: NoParams, mutating: false, capabilities: ["agent.mode"];
        AgentModeSwitch = "agent.mode.switch", aliases: [], params: ModeSwitch, mutating: true, capabilities: ["agent.mode"];
        WorkspaceGet = "workspace.get", aliases: [], params: NoParams, mutating: false, capabilities: ["workspace"];
        WorkspaceOpen = "workspace.open", aliases: [], params: WorkspaceOpen, mutating: true, capabilities: ["workspace"];
        WorkspaceInit = "workspace.init", aliases: [], params: NoParams, mutating: true, capabilities: ["workspace"];
        ModelList = "model.list", aliases: [], params: NoParams, mutating: false, capabilities: ["model"];
        ModelCatalog = "model.catalog", aliases: [], params: NoParams, mutating: false, capabilities: ["model"];
        ModelSwitch = "model.switch", aliases: [], params: ModelParams, mutating: true, capabilities: ["model"];
        ModelTest = "model.test", aliases: [], params: ModelParams, mutating: false, capabilities: ["model"];
        ProviderList = "provider.list", aliases: [], params: NoParams, mutating: false, capabilities: ["provider"];
        ProviderUpsert = "provider.upsert", aliases: [], params: ProviderUpsert, mutating: true, capabilities: ["provider"];
        ProviderUse = "provider.use", aliases: [], params: ProviderParams, mutating: true, capabilities: ["provider"];
        ProviderRemove = "provider.remove", aliases: [], params: ProviderParams, mutating: true, capabilities: ["provider"];
        ProviderTest = "provider.test", aliases: [], params: ProviderTest, mutating: false, capabilities: ["provider"];
        SessionList = "session.list", aliases: [], params: SessionList, mutating: false, capabilities: ["session"];
        SessionGet = "session.get", aliases: [], params: SessionParams, mutating: false, capabilities: ["session"];
        SessionUpdate = "session.update", aliases: [], params: SessionUpdate, mutating: true, capabilities: ["session"];
        SessionArchive = "session.archive", aliases: [], params: SessionArchive, mutating: true, capabilities: ["session"];
        SessionDelete = "session.delete", aliases: [], params: SessionParams, mutating: true, capabilities: ["session"];
        SessionTruncate = "session.truncate", aliases: [], params: SessionTruncate, mutating: true, capabilities: ["session"];
        SessionResume = "session.resume", aliases: [], params: SessionResume, mutating: false, capabilities: ["session"];
        SessionNew = "session.new", aliases: [], params: SessionNew, mutating: true, capabilities: ["session", "global-session"];
    }
    later {
        DoctorRun = "doctor.run", aliases: [], mutating: false, capabilities: ["doctor"];
        FactoryReset = "factory.reset", aliases: [], mutating: true, capabilities: ["factory-reset"];
        UsageGet = "usage.get", aliases: [], mutating: false, capabilities: ["usage"];
        RoutingGet = "routing.get", aliases: [], mutating: false, capabilities: ["routing"];
        RoutingSet = "routing.set", aliases: [], mutating: true, capabilities: ["routing"];
        ModelUpdate = "model.update", aliases: [], mutating: true, capabilities: ["model"];
        PromptOptimize = "prompt.optimize", aliases: [], mutating: false, capabilities: ["prompt-optimize"];
        ProfileList = "profile.list", aliases: [], mutating: false, capabilities: ["profile"];
        ProfileUpsert = "profile.upsert", aliases: [], mutating: true, capabilities: ["profile"];
        ProfileUse = "profile.use", aliases: [], mutating: true, capabilities: ["profile"];
        ProfileRemove = "profile.remove", aliases: [], mutating: true, capabilities: ["profile"];
        ProviderModelsFetch = "provider.models.fetch", aliases: [], mutating: false, capabilities: ["provider"];
        McpList = "mcp.list", aliases: [], mutating: false, capabilities: ["mcp"];
        McpUpsert = "mcp.upsert", aliases: [], mutating: true, capabilities: ["mcp"];
        McpRemove = "mcp.remove", aliases: [], mutating: true, capabilities: ["mcp"];
        McpReload = "mcp.reload", aliases: [], mutating: true, capabilities: ["mcp"];
        SkillList = "skill.list", aliases: [], mutating: false, capabilities: ["skill"];
        SkillToggle = "skill.toggle", aliases: [], mutating: true, capabilities: ["skill"];
        SkillImport = "skill.import", aliases: [], mutating: true, capabilities: ["skill"];
        ProjectList = "project.list", aliases: [], mutating: false, capabilities: ["project"];
        ProjectUpsert = "project.upsert", aliases: [], mutating: true, capabilities: ["project"];
        ProjectRemove = "project.remove", aliases: [], mutating: true, capabilities: ["project"];
        ScheduleList = "schedule.list", aliases: [], mutating: false, capabilities: ["schedule"];
        ScheduleCreate = "schedule.create", aliases: [], mutating: true, capabilities: ["schedule"];
        ScheduleUpdate = "schedule.update", aliases: [], mutating: true, capabilities: ["schedule"];
        ScheduleToggle = "schedule.toggle", aliases: [], mutating: true, capabilities: ["schedule"];
        ScheduleDelete = "schedule.delete", aliases: [], mutating: true, capabilities: ["schedule"];
        ScheduleRun = "schedule.run", aliases: [], mutating: true, capabilities: ["schedule"];
    }
}

impl Method {
    /// Finds a method by its name or one of its aliases.
    ///
    /// # Errors
    /// `Unknown method: <name>`.
    pub fn resolve(name: &str) -> Result<Self, WireError> {
        Self::from_name(name)
            .ok_or_else(|| WireError::new(ErrorCode::UnknownMethod, format!("Unknown method: {name}")))
    }

    /// Whether `params` that are no object are refused; elsewhere they count as empty (contract 1.3).
    #[must_use]
    pub fn needs_object(self) -> bool {
        matches!(
            self,
            Self::AgentCancel
                | Self::AgentModeSwitch
                | Self::WorkspaceOpen
                | Self::ModelSwitch
                | Self::SessionArchive
                | Self::SessionDelete
                | Self::SessionResume
        )
    }

    /// Every name that this version accepts and runs, aliases included.
    pub fn accepted_names() -> impl Iterator<Item = &'static str> {
        let ready = Self::ALL.iter().filter(|method| method.available());
        ready.flat_map(|method| std::iter::once(method.name()).chain(method.aliases().iter().copied()))
    }

    /// What a client can count on in this version, each once, in the order of the table.
    #[must_use]
    pub fn available_capabilities() -> Vec<&'static str> {
        let mut all = Vec::new();
        for capability in Self::ALL.iter().filter(|m| m.available()).flat_map(|m| m.capabilities()) {
            if !all.contains(capability) {
                all.push(*capability);
            }
        }
        all
    }
}

/// What a known method answers that this version does not run.
#[must_use]
pub fn not_yet(method: Method) -> WireError {
    WireError::new(ErrorCode::Unavailable, format!("{} is not available in this version yet", method.name()))
}

#[cfg(test)]
mod tests;
