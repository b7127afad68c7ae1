//! Cheap at rest, quick when asked, nothing left behind.

use std::time::Duration;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use crate::kit::desk::in_session;
use crate::kit::events::{self, data_of};
use crate::kit::{Daemon, Desk, Home, Reply, process, until};

/// The builds that users get are held to the bounds of the contract; a debug build is bigger and slower.
const IDLE_RSS_KIB: u64 = if cfg!(debug_assertions) { 40 * 1024 } else { 21 * 1024 };

#[test]
fn an_idle_daemon_is_small_and_sleeps() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    client.call("ping", json!({}));
    let rss = process::rss_kib(daemon.pid());
    assert!(rss < IDLE_RSS_KIB, "{rss} KiB");
    // Start-up work ends at some time; whatever ticks leaves no second without a wake-up.
    let sleeps = (0..10).any(|_| {
        let before = process::wake_ups(daemon.pid());
        crate::kit::pass_time(Duration::from_secs(1), "a periodic wake-up shows only over time");
        process::wake_ups(daemon.pid()) == before
    });
    assert!(sleeps, "woken in each of ten seconds of idleness");
}

#[test]
fn a_ping_is_answered_at_once() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    let mut times: Vec<Duration> = (0..300)
        .map(|_| {
            let before = Instant::now();
            client.call("ping", json!({}));
            before.elapsed()
        })
        .collect();
    times.sort();
    // Far above what it takes, far below what a forgotten flush or a polled queue costs.
    assert!(times[150] < Duration::from_millis(10), "{:?}", times[150]);
}

#[test]
fn connections_and_turns_leave_no_descriptor_and_no_process_behind() {
    let mut desk = Desk::plain([]);
    desk.provider.rule(|request| {
        let call = json!({"command": "true"});
        Some(if request.texts("tool").is_empty() {
            Reply::call("c1", "bash", call)
        } else {
            Reply::answer("ok")
        })
    });
    let round = |desk: &mut Desk| {
        let mut client = desk.daemon().connect();
        let session = client.ok("session.new", json!({ "workspace": desk.workspace }));
        let params = in_session(&session, &desk.workspace, json!({"message": "go"}));
        let id = client.send("chat", params);
        assert_eq!(client.terminal(id)["event"], "done");
    };
    (0..3).for_each(|_| round(&mut desk));
    let pid = desk.daemon().pid();
    let before = process::open_files(pid);
    (0..25).for_each(|_| round(&mut desk));
    until("the descriptors are closed", || process::open_files(pid) <= before + 2);
    assert_eq!(desk.home.processes(), [pid]);
}

#[test]
fn a_hang_up_signal_reads_the_config_again() {
    let home = Home::new();
    home.configure(&json!({}));
    let daemon = Daemon::start(&home);
    let mut client = daemon.connect();
    home.configure(&json!({"agent": {"mode": "plan"}}));
    process::signal(daemon.pid(), Signal::HUP);
    until("the new mode", || client.ok("agent.mode.get", json!({})) == "plan");
    let lines = events::outline(&client.lines);
    assert!(data_of(&client.lines, "error").is_empty(), "{lines:?}");
}
