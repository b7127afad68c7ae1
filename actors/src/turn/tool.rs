//! Tool calls of a turn: refused, run as a batch, recorded as they end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use seekclaw_protocol::event::WorkflowKind;
use seekclaw_storage::record::log::{Body, Call, CallResult, Effect, Intent, Notice, Outcome};
use tokio::sync::oneshot;

use super::{After, State, TurnMsg, Work};
use crate::agent::arguments;
use crate::session::{SessionMsg, record};
use crate::supervision::tell;
use crate::tools::{DeclareIntent, NotRecorded, ToolContext, ToolReport, registry};

/// Calls of one batch that run at the same time; more only fight for the disk.
const CALLS_AT_ONCE: usize = 8;

impl State {
    /// Announces the batch, then runs it.
    pub(super) fn run_calls(&mut self, calls: Vec<Call>) {
        let calls: Vec<Call> = calls.into_iter().take(CALLS_AT_ONCE).collect();
        for call in &calls {
            self.workflow(WorkflowKind::Tool, &call.name);
        }
        self.work = Work::Calling(calls.len());
        for call in calls {
            self.start_call(call);
        }
    }

    fn start_call(&mut self, call: Call) {
        let summary = registry::argument_summary(&call.arguments);
        self.publish(Notice::ToolStart { call: call.id.clone(), tool: call.name.clone(), summary });
        let (me, context) = (self.me.clone(), self.context(&call));
        if let Some(refusal) = self.args.capture.refusal(&call.name) {
            let report = ToolReport::new(Outcome::Denied, refusal);
            return tell(&me, TurnMsg::Called(call, Box::new(report), Duration::ZERO));
        }
        self.publish(record::status(registry::label(&call.name)));
        self.tasks.spawn(async move {
            let started = Instant::now();
            let report = match arguments::parse(&call.arguments) {
                Ok(arguments) => registry::run(&call.name, &arguments, &context).await,
                Err(problem) => ToolReport::failed(problem),
            };
            tell(&me, TurnMsg::Called(call, Box::new(report), started.elapsed()));
        });
    }

    pub(super) fn context(&self, call: &Call) -> ToolContext {
        let capture = &self.args.capture;
        ToolContext {
            call_id: call.id.clone(),
            reach: Arc::clone(&capture.reach),
            seen: Arc::clone(&self.seen),
            locks: self.args.services.locks.clone(),
            owner: format!("{}/{}", self.args.log.session(), self.args.turn.short()),
            holder: self.me.get_cell(),
            declare: self.declarer(call),
            cancel: self.cancel.clone(),
            limits: capture.limits,
        }
    }

    /// Asks this turn to record an intent and waits until it is durable, or the turn is gone.
    fn declarer(&self, call: &Call) -> DeclareIntent {
        let (me, id) = (self.me.clone(), call.id.clone());
        Arc::new(move |effect| {
            let (ack, recorded) = oneshot::channel();
            tell(&me, TurnMsg::Declare(id.clone(), effect, ack));
            Box::pin(async move { recorded.await.map_err(|_| NotRecorded) })
        })
    }

    /// A cancelled turn begins no effect any more: the dropped `ack` says so.
    pub(super) fn declare(&mut self, call: String, effect: Effect, ack: oneshot::Sender<()>) {
        if self.cancelled() {
            return;
        }
        let tool = self.turn.calls.iter().find(|state| state.call.id == call);
        let tool = tool.map(|state| state.call.name.clone()).unwrap_or_default();
        self.commit(vec![Body::Intent(Intent { call, tool, effect })], After::Declared(ack));
    }

    pub(super) fn called(&mut self, call: &Call, report: ToolReport, took: Duration) {
        if !matches!(self.work, Work::Calling(_)) {
            tracing::debug!(call = %call.id, "a call ended after it was given up");
            return;
        }
        for seen in &report.seen {
            self.seen.note(seen);
        }
        if !report.survivors.is_empty() {
            tell(&self.args.session, SessionMsg::Survived(self.args.turn.clone(), report.survivors.clone()));
        }
        let mut bodies = Vec::new();
        if let Some(change) = &report.change {
            let (path, diff) = (change.path.clone(), change.diff.clone());
            bodies.push(Body::Notice(Notice::FileDiff { call: call.id.clone(), path, diff }));
        }
        bodies.push(Body::Result(result_of(call, report, took)));
        self.commit(bodies, After::Called);
    }

    pub(super) fn call_settled(&mut self) {
        if let Work::Calling(running) = &mut self.work {
            *running -= 1;
            if *running == 0 {
                self.idle();
            }
        }
    }
}

fn result_of(call: &Call, report: ToolReport, took: Duration) -> CallResult {
    CallResult {
        call: call.id.clone(),
        tool: call.name.clone(),
        outcome: report.outcome,
        summary: registry::result_summary(&report),
        text: report.text,
        took_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        omitted: report.omitted,
        seen: report.seen,
        images: Vec::new(),
    }
}

/// The result of a call that did not run, or whose effect is unknown.
pub(crate) fn unrun_result(call: &Call, outcome: Outcome) -> CallResult {
    let text = if outcome == Outcome::Uncertain {
        "The outcome of this call is uncertain: it was interrupted after it may have begun, and it was not repeated. \
         Look at the present state before you act on it."
    } else {
        "This call was not run: the answer that asked for it was cut by the output limit."
    };
    CallResult {
        call: call.id.clone(),
        tool: call.name.clone(),
        outcome,
        summary: text.split(':').next().unwrap_or_default().to_owned(),
        text: text.to_owned(),
        took_us: 0,
        omitted: 0,
        seen: Vec::new(),
        images: Vec::new(),
    }
}

/// Tells watchers which calls have an unknown effect.
pub(crate) fn recovered(calls: &[&Call]) -> Notice {
    let uncertain = calls
        .iter()
        .map(|call| (call.id.clone(), call.name.clone(), registry::argument_summary(&call.arguments)))
        .collect();
    Notice::Recovered { reason: "a call was interrupted after it may have begun".to_owned(), uncertain }
}
