//! The real daemon as a child process.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;

use rustix::process::Signal;
use serde_json::Value;

use super::client::Client;
use super::home::Home;
use super::{LIMIT, process, until_some};

/// A running daemon; killed when it is dropped.
pub struct Daemon {
    child: Child,
    socket: std::path::PathBuf,
    /// The line that it printed once it listened.
    pub ready: Value,
}

impl Daemon {
    /// Starts `daemon run` in `home` and waits until it says that it listens.
    #[track_caller]
    pub fn start(home: &Home) -> Self {
        Self::start_in(home, home.path())
    }

    /// As [`Daemon::start`], from the directory `cwd`.
    #[track_caller]
    pub fn start_in(home: &Home, cwd: &Path) -> Self {
        let mut command = home.command();
        command.current_dir(cwd);
        Self::spawn(home, command)
    }

    /// Starts the daemon with a prepared command.
    #[track_caller]
    pub fn spawn(home: &Home, mut command: Command) -> Self {
        command.args(["daemon", "run"]).stdout(Stdio::piped()).stderr(log_file(home));
        let mut child = command.spawn().unwrap();
        let ready = ready_line(&mut child);
        let Some(ready) = ready else {
            let status = child.wait().unwrap();
            panic!("the daemon did not start: {status}\n{}", home.log());
        };
        Self { child, socket: home.socket(), ready }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A new connection.
    #[track_caller]
    pub fn connect(&self) -> Client {
        Client::connect(&self.socket)
    }

    /// A new connection that has said hello.
    #[track_caller]
    pub fn hello(&self, client: &str) -> Client {
        let mut connection = self.connect();
        connection.hello(client);
        connection
    }

    /// Kills it as a crash would, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop by a signal and waits for its end.
    #[track_caller]
    pub fn stop(mut self) -> ExitStatus {
        process::signal(self.child.id(), Signal::TERM);
        self.wait()
    }

    /// Waits for its end.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        until_some("the end of the daemon", || self.child.try_wait().unwrap())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn log_file(home: &Home) -> File {
    OpenOptions::new().create(true).append(true).open(home.path().join("daemon.log")).unwrap()
}

fn ready_line(child: &mut Child) -> Option<Value> {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        if output.read_line(&mut line).is_ok() && send.send(line).is_ok() {
            // Whatever else it prints must not fill the pipe.
            drop(std::io::copy(&mut output, &mut std::io::sink()));
        }
    });
    let line = receive.recv_timeout(LIMIT).expect("the daemon said nothing at all");
    serde_json::from_str(&line).ok()
}
