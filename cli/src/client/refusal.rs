//! What a refused request means for the user: the attempt, the daemon's reason, the next step.

use seekclaw_protocol::ErrorCode;

use crate::client::line::Line;
use crate::render::escape::neutral;
use crate::render::when::took;
use crate::status::{Failure, Status};

/// Passes a terminal line on unless it says that the request failed. `attempt` completes "cannot …".
pub(crate) fn accepted(line: Line, attempt: &str, names_session: bool) -> Result<Line, Failure> {
    match line.event.as_str() {
        "error" => Err(refused(&line, attempt, names_session)),
        "cancelled" => Err(Failure::new(Status::Stopped, format!("cannot {attempt}: it was cancelled"))),
        _ => Ok(line),
    }
}

/// The failure that an `error` line is.
pub(crate) fn refused(line: &Line, attempt: &str, names_session: bool) -> Failure {
    failure(line, attempt, names_session, &Names::of(line))
}

/// The failure that the `error` line of a turn is, which asked `model` (`provider/model`, or nothing) last.
pub(crate) fn failed_turn(line: &Line, names_session: bool, session: &str, model: &str) -> Failure {
    let mut names = Names::of(line);
    names.session = Some(session);
    if let Some((provider, _)) = model.split_once('/') {
        (names.provider, names.model) = (names.provider.or(Some(provider)), Some(model));
    }
    failure(line, "finish the turn", names_session, &names)
}

fn failure(line: &Line, attempt: &str, names_session: bool, names: &Names<'_>) -> Failure {
    let code = line.code();
    let unknown_session = names_session && is_about_session(line);
    let status = if unknown_session { Status::Usage } else { Status::of_error(code) };
    let failure = Failure::new(status, format!("cannot {attempt}: {}", neutral(line.data.trim_end())));
    let code = if unknown_session { Some(ErrorCode::NotFound) } else { code };
    match advice(code, unknown_session, names) {
        Some(next) => failure.next(next),
        None => failure,
    }
}

/// Whether it is the session that is not found, and not a model or a directory that the same request names.
fn is_about_session(line: &Line) -> bool {
    let missing = line.code() == Some(ErrorCode::NotFound) && line.data.starts_with("Session");
    missing || line.data.starts_with("Invalid session id")
}

/// What is known of what an error is about.
#[derive(Debug, Default)]
pub(crate) struct Names<'a> {
    provider: Option<&'a str>,
    model: Option<&'a str>,
    session: Option<&'a str>,
    wait_ms: Option<u64>,
}

impl<'a> Names<'a> {
    /// What the line itself says.
    pub(crate) fn of(line: &'a Line) -> Self {
        let wait_ms = line.count("retryAfterMs");
        Self { provider: line.text("provider"), model: line.text("model"), session: None, wait_ms }
    }

    /// `advice` with all that is known in its place.
    fn fill(&self, advice: &str) -> String {
        let wait = self.wait_ms.map_or_else(|| "a moment".to_owned(), |ms| took(ms as f64));
        let known = [
            ("{session}", self.session.unwrap_or("SESSION")),
            ("{provider}", self.provider.unwrap_or("ID")),
            ("{model}", self.model.unwrap_or("MODEL")),
            ("{wait}", &wait),
        ];
        known.iter().fold(advice.to_owned(), |text, (name, value)| text.replace(name, &neutral(value)))
    }
}

/// What to do about a code.
pub(crate) fn advice(code: Option<ErrorCode>, names_session: bool, names: &Names<'_>) -> Option<String> {
    let code = code?;
    if code == ErrorCode::NotFound && !names_session {
        return None;
    }
    ADVICE.iter().find(|(known, _)| *known == code).map(|(_, text)| names.fill(text))
}

const ADVICE: &[(ErrorCode, &str)] = &[
    (
        ErrorCode::NotFound,
        "`seekclaw session list` shows the sessions of a directory; -C DIR or --global looks elsewhere",
    ),
    (
        ErrorCode::ProviderAuth,
        "give the provider a valid key: `seekclaw provider add {provider} --api-key-env VARIABLE`",
    ),
    (
        ErrorCode::ProviderUnavailable,
        "`seekclaw provider test` asks every provider; `seekclaw model use MODEL` chooses another model",
    ),
    (
        ErrorCode::ProviderRejected,
        "`seekclaw model test {model}` shows what the provider says; `seekclaw model use MODEL` chooses another model",
    ),
    (ErrorCode::ProviderRateLimited, "wait {wait}, or choose another model with `seekclaw model use MODEL`"),
    (
        ErrorCode::NoModel,
        "`seekclaw model list` shows the models; `seekclaw provider add ID --base-url URL --model MODEL` adds some",
    ),
    (ErrorCode::ContextOverflow, "start a new session, or choose a model with a larger context"),
    (
        ErrorCode::QueueFull,
        "wait until the session is idle, or end its turn with `seekclaw cancel {session}`",
    ),
    (
        ErrorCode::SessionBusy,
        "wait until the session is idle, or end its turn with `seekclaw cancel {session}`",
    ),
    (ErrorCode::ModeDenied, "`seekclaw mode set edit` allows changes"),
    (ErrorCode::StepLimit, "`seekclaw run --session {session} \"go on\"` goes on from here"),
    (ErrorCode::StorageFull, "free some space on the disk of the daemon's home"),
    (ErrorCode::StorageCorrupt, "`seekclaw daemon logs` shows more; `seekclaw doctor` checks"),
    (ErrorCode::Internal, "`seekclaw daemon logs` shows more; `seekclaw doctor` checks"),
    (ErrorCode::ShuttingDown, "run the command again: it starts a new daemon"),
    (ErrorCode::Unavailable, "this version of the daemon does not offer it"),
];

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn line(text: &'static str) -> Line {
        Line::parse(&Bytes::from_static(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_refusal_names_attempt_reason_and_next_step() {
        let refused =
            line(r#"{"id":1,"event":"error","data":"Session x not found","details":{"code":"not_found"}}"#);
        let failure = accepted(refused.clone(), "show the session", true).unwrap_err();
        assert_eq!(failure.status, Status::Usage);
        assert_eq!(
            failure.to_string(),
            "cannot show the session: Session x not found\n  `seekclaw session list` shows the sessions of a \
             directory; -C DIR or --global looks elsewhere"
        );
        assert_eq!(accepted(refused, "use the provider", false).unwrap_err().status, Status::Failed);
    }

    #[test]
    fn an_unknown_model_is_not_taken_for_an_unknown_session() {
        let text = r#"{"id":1,"event":"error","data":"Unknown model x","details":{"code":"not_found"}}"#;
        assert_eq!(accepted(line(text), "finish the turn", true).unwrap_err().status, Status::Failed);
        let text = r#"{"id":1,"event":"error","data":"Invalid session id. (Parameter 'sessionId')"}"#;
        assert_eq!(accepted(line(text), "show the session", true).unwrap_err().status, Status::Usage);
    }

    #[test]
    fn advice_can_be_typed_as_it_stands() {
        let of = |code: &str, session, model| {
            let text = format!(
                r#"{{"id":1,"event":"error","data":"no","details":{{"code":"{code}","retryAfterMs":90000}}}}"#
            );
            failed_turn(&Line::parse(&Bytes::from(text)).unwrap(), false, session, model).to_string()
        };
        assert!(of("provider_rejected", "s1", "p/m").contains("`seekclaw model test p/m` shows"));
        assert!(of("provider_rejected", "s1", "").contains("`seekclaw model test MODEL` shows"));
        assert!(
            of("provider_auth", "s1", "p/m").contains("`seekclaw provider add p --api-key-env VARIABLE`")
        );
        assert!(of("provider_rate_limited", "s1", "p/m").contains("wait 1 min 30 s, or"));
        assert!(of("session_busy", "s1", "p/m").contains("`seekclaw cancel s1`"));
        let limited = r#"{"id":1,"event":"error","data":"no","details":{"code":"provider_rate_limited","provider":"p"}}"#;
        assert!(refused(&line(limited), "test", false).to_string().contains("wait a moment"));
    }

    #[test]
    fn escapes_in_an_error_do_not_reach_the_terminal() {
        let refused = line(r#"{"id":1,"event":"error","data":"bad \u001b[31m"}"#);
        assert!(!accepted(refused, "do it", false).unwrap_err().to_string().contains('\u{1b}'));
    }

    #[test]
    fn results_pass_and_cancelled_is_stopped() {
        assert!(accepted(line(r#"{"id":1,"event":"result","data":"ok"}"#), "x", false).is_ok());
        let cancelled = accepted(line(r#"{"id":1,"event":"cancelled","data":""}"#), "x", false);
        assert_eq!(cancelled.unwrap_err().status, Status::Stopped);
    }
}
