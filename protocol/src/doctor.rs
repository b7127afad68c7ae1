//! `doctor` (contract 2.2): local checks, one line each.

use serde::Serialize;

/// What a check looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// Something on this machine.
    Runtime,
    /// A provider over the network.
    Provider,
}

/// One check and how it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DoctorCheck {
    /// What was checked.
    pub name: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What the check looked at.
    pub kind: CheckKind,
}

impl DoctorCheck {
    /// A check of something on this machine.
    pub fn runtime(name: impl Into<String>, ok: bool, detail: impl Into<String>) -> Self {
        Self { name: name.into(), ok, detail: detail.into(), kind: CheckKind::Runtime }
    }

    /// `[OK] <name>: <detail>` or `[FAIL] <name>: <detail>`.
    #[must_use]
    pub fn line(&self) -> String {
        let verdict = if self.ok { "OK" } else { "FAIL" };
        format!("[{verdict}] {}: {}", self.name, self.detail)
    }
}

/// The answer of `doctor`: one line per check.
#[must_use]
pub fn report(checks: &[DoctorCheck]) -> String {
    checks.iter().map(DoctorCheck::line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_one_line_per_check() {
        let checks = [
            DoctorCheck::runtime("Workspace Root", true, "/w"),
            DoctorCheck::runtime("Config File", false, "unreadable"),
        ];
        assert_eq!(report(&checks), "[OK] Workspace Root: /w\n[FAIL] Config File: unreadable");
    }
}
