//! A place where the other side waits until the test lets it pass.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use super::LIMIT;

/// Shared by the test and whoever waits.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    reached: usize,
    open: bool,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits until somebody stands at the gate.
    #[track_caller]
    pub fn reached(&self) {
        self.reached_times(1);
    }

    /// Waits until somebody has come to the gate `times` times.
    #[track_caller]
    pub fn reached_times(&self, times: usize) {
        let (state, changed) = &*self.0;
        let deadline = Instant::now() + LIMIT;
        let mut state = state.lock().unwrap();
        while state.reached < times {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nobody came to the gate: {} of {times}", state.reached);
            state = changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Lets everybody pass from now on.
    pub fn open(&self) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().open = true;
        changed.notify_all();
    }

    /// Says that somebody came, without waiting.
    pub fn mark(&self) {
        let (state, changed) = &*self.0;
        state.lock().unwrap().reached += 1;
        changed.notify_all();
    }

    /// Comes to the gate and waits; gives up when `gone` says that there is nobody left to go on for.
    pub fn pass(&self, mut gone: impl FnMut() -> bool) {
        const LOOK: Duration = Duration::from_millis(50);
        self.mark();
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        while !state.open {
            state = changed.wait_timeout(state, LOOK).unwrap().0;
            if !state.open && gone() {
                return;
            }
        }
    }
}
