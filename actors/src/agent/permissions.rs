//! Which tools a turn may use (contract 5.2): the same rule decides what a model is offered and what is
//! executed, so a call that was never offered is refused as well.

use seekclaw_protocol::Mode;

use crate::tools::ToolSpec;

/// Tools that reach out of the machine.
const NETWORK_TOOLS: [&str; 2] = ["web_fetch", "web_search"];
/// Tools whose result is of no use to a model that reads no images.
const VISION_TOOLS: [&str; 1] = ["capture_screen"];

/// What decides about a tool, captured when a turn starts; `vision` belongs to the model of the step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Mode of the turn.
    pub mode: Mode,
    /// Tools that the workspace switched off, in any case.
    pub disabled: Vec<String>,
    /// Whether the session may use the network.
    pub network: bool,
    /// Whether the model reads images.
    pub vision: bool,
}

impl Permissions {
    /// The tools of `specs` that a model is offered, sorted by name so that the prompt stays cacheable.
    #[must_use]
    pub fn offered(&self, specs: &[ToolSpec]) -> Vec<ToolSpec> {
        let mut offered: Vec<ToolSpec> =
            specs.iter().filter(|tool| self.refusal(tool).is_none()).cloned().collect();
        offered.sort_by(|a, b| a.name.cmp(&b.name));
        offered
    }

    /// The text of the failed result if `tool` must not run.
    #[must_use]
    pub fn refusal(&self, tool: &ToolSpec) -> Option<String> {
        let reason = self.reason(tool)?;
        Some(format!("Tool execution denied: {} {reason} ({} mode).", tool.name, self.mode))
    }

    fn reason(&self, tool: &ToolSpec) -> Option<&'static str> {
        let name = tool.name.as_str();
        if tool.mutating && !self.mode.may_mutate() {
            Some("may change something, and this mode only reads")
        } else if self.disabled.iter().any(|disabled| disabled.trim().eq_ignore_ascii_case(name)) {
            Some("is disabled in this workspace")
        } else if !self.network && NETWORK_TOOLS.contains(&name) {
            Some("needs the network, which is off for this session")
        } else if !self.vision && VISION_TOOLS.contains(&name) {
            Some("returns an image, which this model cannot read")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, mutating: bool) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::json!({}),
            mutating,
        }
    }

    fn all() -> Vec<ToolSpec> {
        vec![
            tool("write_file", true),
            tool("read_file", false),
            tool("bash", true),
            tool("web_fetch", false),
            tool("capture_screen", false),
        ]
    }

    fn everything(mode: Mode) -> Permissions {
        Permissions { mode, disabled: Vec::new(), network: true, vision: true }
    }

    fn names(permissions: &Permissions) -> Vec<String> {
        permissions.offered(&all()).into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn reading_modes_neither_offer_nor_run_what_changes_something() {
        for mode in [Mode::Plan, Mode::Readonly] {
            let permissions = everything(mode);
            assert_eq!(names(&permissions), ["capture_screen", "read_file", "web_fetch"]);
            let refusal = permissions.refusal(&tool("write_file", true)).unwrap();
            assert!(refusal.starts_with("Tool execution denied: write_file "), "{refusal}");
            assert!(refusal.contains(mode.as_str()), "{refusal}");
        }
    }

    #[test]
    fn writing_modes_offer_everything_sorted_by_name() {
        for mode in [Mode::Edit, Mode::Auto] {
            let offered = names(&everything(mode));
            assert_eq!(offered, ["bash", "capture_screen", "read_file", "web_fetch", "write_file"]);
        }
    }

    #[test]
    fn switched_off_tools_are_refused_at_execution_too() {
        let disabled = Permissions { disabled: vec![" Bash".to_owned()], ..everything(Mode::Edit) };
        let offline = Permissions { network: false, ..everything(Mode::Edit) };
        let blind = Permissions { vision: false, ..everything(Mode::Edit) };
        for (permissions, name) in [(disabled, "bash"), (offline, "web_fetch"), (blind, "capture_screen")] {
            assert_eq!(names(&permissions).len(), 4);
            assert!(permissions.refusal(&tool(name, name == "bash")).unwrap().contains(name));
            assert_eq!(permissions.refusal(&tool("read_file", false)), None);
        }
    }
}
