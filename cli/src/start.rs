//! Starting a daemon when none answers. Any number of starters at once end with one daemon: the kernel
//! lock of the home decides, the losers exit 73, and every starter connects to the winner.

mod log;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use crate::client::{Client, ConnectError};
use crate::place::Place;
use crate::start::log::LogTail;
use crate::status::{Failure, Status};

/// Until then a daemon that was started answers.
const START_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks at the socket.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// A starter that lost waits this long for the winner before it tries again: the owner of the lock may have
/// been on its way out.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// A connection, to a daemon that is started if none answers and `may_start`.
pub(crate) async fn connect(place: &Place, may_start: bool) -> Result<Client, Failure> {
    match Client::connect(place).await {
        Ok(client) => Ok(client),
        Err(ConnectError::Absent | ConnectError::Leaving) if may_start => start(place).await,
        Err(error) => Err(error.into_failure(place)),
    }
}

async fn start(place: &Place) -> Result<Client, Failure> {
    place.create()?;
    crate::logging::complain();
    let deadline = Instant::now() + START_LIMIT;
    let log = LogTail::open(place)?;
    let mut starter = Starter { child: spawn(place, &log)?, lost_at: None };
    loop {
        match Client::connect(place).await {
            Ok(client) => return Ok(client),
            Err(ConnectError::Failed(failure)) => return Err(failure),
            Err(ConnectError::Absent | ConnectError::Leaving | ConnectError::Silent) => {}
        }
        if Instant::now() >= deadline {
            return Err(not_started("it does not answer after 5 s", &log, place));
        }
        starter.check(place, &log)?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

struct Starter {
    child: Child,
    lost_at: Option<Instant>,
}

impl Starter {
    /// Looks after the child: one that lost is tried again later, one that failed is an error.
    fn check(&mut self, place: &Place, log: &LogTail) -> Result<(), Failure> {
        if let Some(lost_at) = self.lost_at {
            if lost_at.elapsed() >= RETRY_AFTER {
                *self = Self { child: spawn(place, log)?, lost_at: None };
            }
            return Ok(());
        }
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) if status.code() == Some(i32::from(Status::Owned.code())) => {
                self.lost_at = Some(Instant::now());
                Ok(())
            }
            Ok(Some(status)) => Err(not_started(&ended(status), log, place)),
            Err(error) => Err(not_started(&format!("its process cannot be watched: {error}"), log, place)),
        }
    }
}

fn spawn(place: &Place, log: &LogTail) -> Result<Child, Failure> {
    let failed = |error: std::io::Error| not_started(&error.to_string(), log, place);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command.args(["daemon", "run", "--detached"]).stdin(Stdio::null());
    command.stdout(log.writer().map_err(failed)?).stderr(log.writer().map_err(failed)?);
    command.spawn().map_err(failed)
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("it ended with status {code}"),
        None => format!("it ended: {status}"),
    }
}

fn not_started(why: &str, log: &LogTail, place: &Place) -> Failure {
    let said = log.since_opened();
    let text = if said.is_empty() {
        format!("cannot start the daemon: {why}")
    } else {
        format!("cannot start the daemon: {why}; it said:\n{said}")
    };
    Failure::new(Status::Unreachable, text).next(format!(
        "`seekclaw daemon run` shows it in the foreground; the log is {}",
        place.log().display()
    ))
}
