//! Checking the work (contract 5.7): the project's own check, run like a command of the agent.

use std::sync::Arc;
use std::time::Duration;

use seekclaw_protocol::event::WorkflowKind;
use seekclaw_storage::record::log::{Body, Call, Note, Notice, Outcome};
use serde_json::Map;

use super::{After, State, TurnMsg, Work};
use crate::history::check::FailedCheck;
use crate::session::record;
use crate::supervision::tell;
use crate::tools::{ToolContext, registry};

/// Limit of a check (contract 4.7).
const CHECK_LIMIT: Duration = Duration::from_mins(10);
/// Characters of a failed check's output that the model gets (contract 5.7).
const TAIL_CHARS: usize = 8000;
/// Label of a check (contract 3.2).
const LABEL_VERIFY: &str = "构建验证";
/// Label of a repair: the step that follows a failed check.
const LABEL_REPAIR: &str = "修复";

/// How a check ended.
#[derive(Debug)]
pub(crate) struct Verification {
    command: String,
    outcome: Outcome,
    exit_code: Option<i32>,
    tail: String,
}

impl State {
    /// Runs the check; without a command there is nothing to check.
    pub(super) fn verify(&mut self) {
        let Some(command) = self.args.capture.verify_command.clone() else {
            return self.end_done(super::state::DoneBecause::Complete);
        };
        self.workflow(WorkflowKind::Verify, LABEL_VERIFY);
        self.publish(record::status("Verifying"));
        self.work = Work::Checking;
        let call = Call { id: "verification".to_owned(), name: "bash".to_owned(), arguments: String::new() };
        let mut context = self.context(&call);
        // A check may run again: there is nothing to declare.
        context.declare = Arc::new(|_| Box::pin(async { Ok(()) }));
        context.limits.bash_timeout = CHECK_LIMIT;
        let me = self.me.clone();
        self.tasks.spawn(async move {
            let verification = check(command, &context).await;
            tell(&me, TurnMsg::Verified(Box::new(verification)));
        });
    }

    /// Passed: on to the end. Failed: the model hears the output and goes on.
    pub(super) fn verified(&mut self, verification: Verification) {
        if self.work != Work::Checking {
            return;
        }
        if self.cancelled() {
            return self.idle();
        }
        let ok = verification.outcome == Outcome::Ok;
        let Verification { command, exit_code, tail, .. } = verification;
        let notice = Notice::Verification { command: command.clone(), ok, exit_code, tail: tail.clone() };
        let mut bodies = vec![Body::Notice(notice)];
        if !ok {
            bodies.push(Body::Notice(record::workflow(self.turn.step, WorkflowKind::Repair, LABEL_REPAIR)));
            let text = FailedCheck { command: &command, tail: &tail }.note();
            bodies.push(Body::Note(Note { text }));
        }
        self.work = Work::Committing;
        self.commit(bodies, After::Advance);
    }
}

async fn check(command: String, context: &ToolContext) -> Verification {
    let mut arguments = Map::new();
    arguments.insert("command".to_owned(), command.clone().into());
    let report = registry::run("bash", &arguments, context).await;
    let exit_code = match report.outcome {
        Outcome::Ok => Some(0),
        Outcome::Failed | Outcome::Denied | Outcome::Cancelled | Outcome::Uncertain => {
            exit_code(&report.text)
        }
    };
    Verification { command, outcome: report.outcome, exit_code, tail: tail(&report.text) }
}

/// A failed command's result starts with `Exit code <n>` (contract 5.3).
fn exit_code(text: &str) -> Option<i32> {
    let rest = text.strip_prefix("Exit code ")?;
    rest.split(|digit: char| !digit.is_ascii_digit()).next()?.parse().ok()
}

fn tail(text: &str) -> String {
    let skip = text.chars().count().saturating_sub(TAIL_CHARS);
    text.chars().skip(skip).collect()
}
