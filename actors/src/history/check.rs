//! The note that tells a model of a failed check, and how to recognise it.

const BEFORE: &str = "The check `";
const BETWEEN: &str = "` failed. Repair what it found.\n\n";

/// What a failed check said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedCheck<'a> {
    /// The command of the check.
    pub(crate) command: &'a str,
    /// The end of its output.
    pub(crate) tail: &'a str,
}

impl<'a> FailedCheck<'a> {
    /// The note for the model.
    pub(crate) fn note(&self) -> String {
        format!("{BEFORE}{}{BETWEEN}{}", self.command, self.tail)
    }

    /// The check that `note` is about, if it is about one.
    pub(crate) fn in_note(note: &'a str) -> Option<Self> {
        let (command, tail) = note.strip_prefix(BEFORE)?.split_once(BETWEEN)?;
        Some(Self { command, tail })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_recognised_and_others_are_not() {
        let check = FailedCheck { command: "make `x`", tail: "Exit code 1\n\nboom" };
        let note = check.note();
        assert_eq!(note, "The check `make `x`` failed. Repair what it found.\n\nExit code 1\n\nboom");
        assert_eq!(FailedCheck::in_note(&note), Some(check));
        assert_eq!(FailedCheck::in_note(">>> [output truncated] go on"), None);
    }
}
