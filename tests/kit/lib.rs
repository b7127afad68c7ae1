//! What the end-to-end suites share: a scripted provider, the real daemon in a private home, a client of its
//! socket. Everything waits for facts, with a limit; nothing sleeps.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test kit: each suite uses a part of it, and a broken expectation is a failed test"
)]

pub mod client;
pub mod daemon;
pub mod desk;
pub mod events;
pub mod files;
pub mod gate;
pub mod home;
pub mod http;
pub mod openai;
pub mod process;
pub mod provider;

use std::time::{Duration, Instant};

pub use client::Client;
pub use daemon::Daemon;
pub use desk::Desk;
pub use gate::Gate;
pub use home::Home;
pub use openai::Reply;
pub use provider::Provider;

/// Longest wait for anything that must happen: a loaded machine is slow, a broken daemon is never.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Waits until `fact` holds. For facts outside of this process that nobody can announce: files, processes.
///
/// # Panics
/// It does not hold in time.
#[track_caller]
pub fn until(what: &str, mut fact: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !fact() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        pause();
    }
}

/// Waits until `fact` gives something.
///
/// # Panics
/// It does not in time.
#[track_caller]
pub fn until_some<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(what, || {
        found = fact();
        found.is_some()
    });
    found.expect("just found")
}

/// Between two looks at a fact.
#[expect(clippy::disallowed_methods, reason = "polls a fact of another process; decides nothing by itself")]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Lets time pass, where time itself is what a test is about; `why` says so in the test.
#[expect(clippy::disallowed_methods, reason = "the caller states why time must pass")]
pub fn pass_time(time: Duration, why: &str) {
    assert!(!why.is_empty());
    std::thread::sleep(time);
}
