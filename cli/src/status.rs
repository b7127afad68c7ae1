//! How a command ends: its exit status, and errors that say what was attempted, why it failed, what to do next.

use std::fmt;
use std::process::ExitCode;

use seekclaw_protocol::ErrorCode;

/// The exit statuses of the command line contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// What was asked is done.
    Done,
    /// The turn or request ended in error.
    Failed,
    /// The command line, or the session it names, is wrong.
    Usage,
    /// No daemon answers, or none could be started.
    Unreachable,
    /// A rule refused it.
    Denied,
    /// Timed out, or ended by someone else.
    Stopped,
    /// Client and daemon speak different versions.
    Mismatch,
    /// Another daemon owns this home.
    Owned,
    /// The user interrupted it.
    Interrupted,
}

impl Status {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Denied => 4,
            Self::Stopped => 5,
            Self::Mismatch => 6,
            Self::Owned => 73,
            Self::Interrupted => 130,
        }
    }

    /// Where an `error` line leads.
    pub(crate) fn of_error(code: Option<ErrorCode>) -> Self {
        match code {
            Some(ErrorCode::ModeDenied | ErrorCode::PathDenied) => Self::Denied,
            Some(ErrorCode::ShuttingDown | ErrorCode::Timeout) => Self::Stopped,
            Some(ErrorCode::ProtocolIncompatible) => Self::Mismatch,
            Some(_) | None => Self::Failed,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

/// An error with an exit status of its own; every other error exits 1.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the process ends.
    pub(crate) status: Status,
    /// What was attempted and why it failed.
    text: String,
    /// What to do next.
    next: Option<String>,
}

impl Failure {
    /// A failure that says what was attempted and why it failed.
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), next: None }
    }

    /// A mistake on the command line.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::new(Status::Usage, text)
    }

    /// Adds what the user can do about it.
    pub(crate) fn next(mut self, advice: impl Into<String>) -> Self {
        self.next = Some(advice.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.next.as_ref().map_or(Ok(()), |next| write!(f, "\n  {next}"))
    }
}

impl std::error::Error for Failure {}

/// The status that `error` ends the process with.
pub(crate) fn of(error: &anyhow::Error) -> Status {
    if is_broken_pipe(error) {
        return Status::Done;
    }
    error.downcast_ref::<Failure>().map_or(Status::Failed, |failure| failure.status)
}

/// Whether whoever read our output has gone: nothing to tell anybody.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_the_contract() {
        let all = [
            (Status::Done, 0),
            (Status::Failed, 1),
            (Status::Usage, 2),
            (Status::Unreachable, 3),
            (Status::Denied, 4),
            (Status::Stopped, 5),
            (Status::Mismatch, 6),
            (Status::Owned, 73),
            (Status::Interrupted, 130),
        ];
        for (status, code) in all {
            assert_eq!(status.code(), code);
        }
    }

    #[test]
    fn error_codes_lead_to_their_status() {
        assert_eq!(Status::of_error(Some(ErrorCode::NotFound)), Status::Failed);
        assert_eq!(Status::of_error(Some(ErrorCode::ShuttingDown)), Status::Stopped);
        assert_eq!(Status::of_error(Some(ErrorCode::ModeDenied)), Status::Denied);
        assert_eq!(Status::of_error(Some(ErrorCode::ProtocolIncompatible)), Status::Mismatch);
        assert_eq!(Status::of_error(Some(ErrorCode::ProviderAuth)), Status::Failed);
        assert_eq!(Status::of_error(None), Status::Failed);
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        let pipe = anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(of(&pipe), Status::Done);
        assert_eq!(of(&anyhow::anyhow!("other")), Status::Failed);
        assert_eq!(of(&Failure::usage("x").into()), Status::Usage);
    }

    #[test]
    fn the_advice_follows_on_its_own_line() {
        let failure = Failure::new(Status::Unreachable, "cannot reach it: refused").next("start it");
        assert_eq!(failure.to_string(), "cannot reach it: refused\n  start it");
    }
}
