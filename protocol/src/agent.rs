//! Modes and reasoning levels: small closed sets that many methods and records share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a turn may do (contract 5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Reads and plans; writes nothing.
    Plan,
    /// Reads; writes nothing.
    Readonly,
    /// Everything.
    #[default]
    Edit,
    /// Everything, and takes initiative.
    Auto,
}

impl Mode {
    /// Exactly the four names, trimmed, in any case (contract 2.5).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "plan" => Some(Self::Plan),
            "readonly" => Some(Self::Readonly),
            "edit" => Some(Self::Edit),
            "auto" => Some(Self::Auto),
            _ => None,
        }
    }

    /// As config files spell it: also `planning`, `read-only`, `ro`, `autonomous`; unknown text is `edit`.
    #[must_use]
    pub fn from_config(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "planning" => Self::Plan,
            "read-only" | "ro" => Self::Readonly,
            "autonomous" => Self::Auto,
            other => Self::parse(other).unwrap_or_default(),
        }
    }

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Readonly => "readonly",
            Self::Edit => "edit",
            Self::Auto => "auto",
        }
    }

    /// Whether tools that change something may run.
    #[must_use]
    pub fn may_mutate(self) -> bool {
        matches!(self, Self::Edit | Self::Auto)
    }
}

/// How much a model should think (contract 5.8), in rising order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningLevel {
    /// Not at all.
    None,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much; what a new session starts with.
    #[default]
    High,
    /// Most models' limit.
    Max,
    /// Beyond the usual.
    Xhigh,
    /// All there is.
    Ultra,
}

impl ReasoningLevel {
    /// All levels in rising order.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Low, Self::Medium, Self::High, Self::Max, Self::Xhigh, Self::Ultra];

    /// The name, in any case, or the number 0…6 as text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let by_name = Self::ALL.iter().find(|level| level.as_str().eq_ignore_ascii_case(text));
        by_name.or_else(|| Self::ALL.get(text.parse::<usize>().ok()?)).copied()
    }

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
            Self::Xhigh => "xhigh",
            Self::Ultra => "ultra",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ReasoningLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_files_spell_modes_in_more_ways_than_requests() {
        for (text, strict, lenient) in [
            (" Plan ", Some(Mode::Plan), Mode::Plan),
            ("planning", None, Mode::Plan),
            ("RO", None, Mode::Readonly),
            ("read-only", None, Mode::Readonly),
            ("autonomous", None, Mode::Auto),
            ("nonsense", None, Mode::Edit),
        ] {
            assert_eq!((Mode::parse(text), Mode::from_config(text)), (strict, lenient), "{text}");
        }
    }

    #[test]
    fn levels_rise_and_are_read_by_name_or_number() {
        assert!(ReasoningLevel::ALL.is_sorted());
        for (number, level) in ReasoningLevel::ALL.into_iter().enumerate() {
            assert_eq!(ReasoningLevel::parse(&number.to_string()), Some(level));
            assert_eq!(ReasoningLevel::parse(&level.as_str().to_uppercase()), Some(level));
        }
        assert_eq!(ReasoningLevel::parse("7"), None);
    }
}
