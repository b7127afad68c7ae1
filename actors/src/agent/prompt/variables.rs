//! `{{name}}` in prompt texts. Unknown names stay as they are, and values are never looked into again.

use super::{PromptContext, display};

/// Names and what they stand for.
#[derive(Clone)]
pub(super) struct Variables(Vec<(&'static str, String)>);

impl Variables {
    /// All but the two that hold whole documents: those must not be repeated inside of documents.
    pub(super) fn of(context: &PromptContext) -> Self {
        let model = &context.candidate.model;
        let can = &model.capabilities;
        let workspace = context.workspace.as_deref();
        let project = context.workspace.as_ref().unwrap_or(&context.root).file_name();
        Self(vec![
            ("cwd", display(&context.root)),
            ("datetime", context.date.clone()),
            ("os", std::env::consts::OS.to_owned()),
            ("platform", format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)),
            ("workspace", workspace.map_or_else(|| "none".to_owned(), display)),
            ("project", project.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()),
            ("language", context.language.clone()),
            ("scope", if workspace.is_some() { "workspace" } else { "global" }.to_owned()),
            ("model", model.id.clone()),
            ("provider", context.candidate.provider.id.clone()),
            ("vision", can.vision.to_string()),
            ("image", can.image.to_string()),
            ("tool", can.tool_calling.to_string()),
            ("mode", context.mode.to_string()),
            ("network", switch(context.network)),
            ("approval_policy", "never".to_owned()),
            ("sandbox_mode", context.sandbox_mode().to_owned()),
            ("auto_verify", switch(context.auto_verify)),
            ("personality", context.personality().to_owned()),
        ])
    }

    pub(super) fn with(mut self, name: &'static str, value: Option<&str>) -> Self {
        self.0.push((name, value.unwrap_or_default().to_owned()));
        self
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            rest = if let Some((value, tail)) = self.at(after) {
                filled.push_str(value);
                tail
            } else {
                filled.push_str("{{");
                after
            };
        }
        filled.push_str(rest);
        filled
    }

    /// The value whose name `text` starts with, and what follows its closing braces.
    fn at<'a>(&self, text: &'a str) -> Option<(&str, &'a str)> {
        self.0
            .iter()
            .find_map(|(name, value)| Some((value.as_str(), text.strip_prefix(name)?.strip_prefix("}}")?)))
    }
}

fn switch(on: bool) -> String {
    if on { "enabled" } else { "disabled" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_filled_and_unknown_ones_stay() {
        let variables = Variables(vec![("os", "linux".to_owned()), ("memory", "{{os}}".to_owned())]);
        for (text, filled) in [
            ("on {{os}}.", "on linux."),
            ("{{os}}{{os}}", "linuxlinux"),
            ("{{unknown}} {{os}}", "{{unknown}} linux"),
            ("{{memory}}", "{{os}}"),
            ("{{{{os}}}}", "{{linux}}"),
            ("${{ os }} {{os", "${{ os }} {{os"),
            ("{{", "{{"),
            ("", ""),
        ] {
            assert_eq!(variables.fill(text), filled, "{text}");
        }
    }
}
