//! Faults for tests: something goes wrong in the turns of a session at a chosen point, that is before or
//! after a turn takes a certain message for the n-th time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test")]

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex};

use tokio::time::Instant;

use super::{After, State, TurnArgs, TurnFailure, TurnMsg};

/// Before or after the message is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
}

/// What goes wrong.
#[derive(Clone)]
pub(crate) enum How {
    Panic,
    Error,
    Kill,
    KillSession,
    KillStore,
    Do(Arc<dyn Fn(&TurnArgs) + Send + Sync>),
}

/// One fault.
#[derive(Clone)]
pub(crate) struct Fault {
    pub(crate) point: String,
    /// From 1; 0 for each time.
    pub(crate) occurrence: usize,
    pub(crate) when: When,
    pub(crate) how: How,
}

/// A point that was passed: which, for the how many-th time, when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Passage {
    pub(crate) point: String,
    pub(crate) occurrence: usize,
    pub(crate) at: Instant,
}

#[derive(Default)]
struct Plan {
    faults: Vec<Fault>,
    passages: Vec<Passage>,
    gate: Option<Receiver<()>>,
}

static PLANS: LazyLock<Mutex<HashMap<String, Plan>>> = LazyLock::new(Mutex::default);

/// Plans a fault for the turns of a session.
pub(crate) fn plan(session: &str, fault: Fault) {
    PLANS.lock().unwrap().entry(session.to_owned()).or_default().faults.push(fault);
}

/// What the turns of a session passed.
pub(crate) fn passages(session: &str) -> Vec<Passage> {
    PLANS.lock().unwrap().get(session).map(|plan| plan.passages.clone()).unwrap_or_default()
}

/// Nothing goes wrong any more.
pub(crate) fn forget(session: &str) {
    PLANS.lock().unwrap().remove(session);
}

/// A turn of the session that has read the log does not say so until the sender is dropped.
pub(crate) fn hold_load(session: &str) -> Sender<()> {
    let (sender, gate) = channel();
    PLANS.lock().unwrap().entry(session.to_owned()).or_default().gate = Some(gate);
    sender
}

/// The log has been read. Blocks.
pub(super) fn gate(session: &str) {
    let gate = PLANS.lock().unwrap().get_mut(session).and_then(|plan| plan.gate.take());
    if let Some(gate) = gate {
        gate.recv().unwrap_err();
    }
}

pub(super) struct Point {
    name: String,
    occurrence: usize,
}

/// A message was received.
pub(super) async fn reach(state: &State, message: &TurnMsg) -> Result<Point, TurnFailure> {
    let session = state.args.log.session().to_string();
    let name = name(state, message);
    let point = {
        let mut plans = PLANS.lock().unwrap();
        let passages = &mut plans.entry(session).or_default().passages;
        let occurrence = 1 + passages.iter().filter(|passage| passage.point == name).count();
        passages.push(Passage { point: name.clone(), occurrence, at: Instant::now() });
        Point { name, occurrence }
    };
    if strike(state, &point, When::Before)? {
        // A kill counts at the next await.
        std::future::pending::<()>().await;
    }
    Ok(point)
}

/// A message was taken.
pub(super) fn leave(state: &State, point: Point) -> Result<(), TurnFailure> {
    strike(state, &point, When::After).map(|_| ())
}

/// Whether this was a kill.
fn strike(state: &State, point: &Point, when: When) -> Result<bool, TurnFailure> {
    let hit = |fault: &mut Fault| {
        let counts = fault.occurrence == 0 || fault.occurrence == point.occurrence;
        fault.point == point.name && counts && fault.when == when
    };
    let how = {
        let mut plans = PLANS.lock().unwrap();
        let faults = &mut plans.entry(state.args.log.session().to_string()).or_default().faults;
        let Some(index) = faults.iter_mut().position(hit) else { return Ok(false) };
        if faults[index].occurrence == 0 { faults[index].how.clone() } else { faults.remove(index).how }
    };
    match how {
        How::Panic => panic!("injected at {}", point.name),
        How::Error => return Err(TurnFailure::internal(format!("injected at {}", point.name))),
        How::Kill => state.me.kill(),
        How::KillSession => state.args.session.kill(),
        How::KillStore => panic!("the test says how"),
        How::Do(act) => {
            act(&state.args);
            return Ok(false);
        }
    }
    Ok(true)
}

fn name(state: &State, message: &TurnMsg) -> String {
    match message {
        TurnMsg::Loaded(_) => "loaded".to_owned(),
        TurnMsg::Committed(ticket, _) => {
            let after = state.tickets.get(ticket).map_or("nothing", |after| match after {
                After::Advance => "advance",
                After::Called => "called",
                After::Declared(_) => "declared",
                After::Steered(_) => "steered",
                After::Ended => "ended",
            });
            format!("committed {after}")
        }
        TurnMsg::Steer(..) => "steer".to_owned(),
        TurnMsg::Cancel => "cancel".to_owned(),
        TurnMsg::Answered(_) => "answered".to_owned(),
        TurnMsg::Declare(call, ..) => format!("declare {call}"),
        TurnMsg::Called(call, ..) => format!("called {}", call.id),
        TurnMsg::Verified(_) => "verified".to_owned(),
        TurnMsg::Grace => "grace".to_owned(),
    }
}
