//! One daemon a home: locks, sockets, homes that cannot be one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::Output;
use std::process::Stdio;

use serde_json::json;

use crate::kit::{Client, Daemon, Home, until};

/// Runs the program to its end.
fn run(home: &Home, arguments: &[&str]) -> Output {
    home.command().args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_second_daemon_on_a_home_exits_73_and_names_the_first() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    let second = run(&home, &["daemon", "run"]);
    assert_eq!(second.status.code(), Some(73));
    assert!(stderr(&second).contains(&daemon.pid().to_string()), "{}", stderr(&second));
    assert!(second.stdout.is_empty());
    assert_eq!(daemon.connect().call("ping", json!({}))["event"], "pong");
}

#[test]
fn fifty_starters_at_once_end_with_one_daemon() {
    let home = Home::new();
    let starters: Vec<_> = (0..50)
        .map(|_| {
            let mut command = home.command();
            command.args(["daemon", "start"]).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    let statuses: Vec<_> = starters.into_iter().map(|mut starter| starter.wait().unwrap()).collect();
    assert!(statuses.iter().all(|status| status.success()), "{statuses:?}");
    assert_eq!(Client::connect(&home.socket()).call("ping", json!({}))["event"], "pong");
    until("one daemon", || home.processes().len() == 1);
    assert_eq!(Client::connect(&home.socket()).call("shutdown", json!({}))["event"], "bye");
    until("no daemon", || home.processes().is_empty());
}

#[test]
fn a_socket_that_a_crash_left_is_replaced() {
    let home = Home::new();
    Daemon::start(&home).kill();
    assert!(home.socket().exists());
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.connect().call("ping", json!({}))["event"], "pong");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home.socket()), mode(&home.state())), (0o600, 0o700));
}

#[test]
fn what_is_no_socket_of_ours_is_never_removed() {
    let home = Home::new();
    home.make_state();
    fs::write(home.socket(), "precious").unwrap();
    let refused = run(&home, &["daemon", "run"]);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(home.socket()).unwrap(), "precious");

    fs::remove_file(home.socket()).unwrap();
    let foreign = UnixListener::bind(home.socket()).unwrap();
    let refused = run(&home, &["daemon", "run"]);
    assert!(!refused.status.success());
    drop(foreign);
    assert!(home.socket().exists());
}

#[test]
fn a_home_that_cannot_be_one_is_a_clear_error() {
    let home = Home::new();
    fs::write(home.state(), "a file").unwrap();
    let refused = run(&home, &["daemon", "run"]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains(&home.state().display().to_string()), "{}", stderr(&refused));

    let long = home.path().join("x".repeat(100));
    let refused = home.command().env("SEEKCLAW_HOME", &long).args(["daemon", "run"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("socket") && stderr(&refused).contains("long"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(home.state()).unwrap(), "a file");
}

#[test]
fn an_exiting_daemon_leaves_the_socket_of_its_successor() {
    let home = Home::new();
    let first = Daemon::start(&home);
    // Somebody removed the socket: the exiting daemon must not take another one with it.
    fs::remove_file(home.socket()).unwrap();
    let foreign = UnixListener::bind(home.socket()).unwrap();
    assert!(first.stop().success());
    assert!(home.socket().exists());
    drop(foreign);
}
