//! Processes: the daemon gets a session of its own, so that neither Ctrl-C in the starter's terminal nor a tool
//! that opens `/dev/tty` connects the two; and whoever stops it sees when it has gone.

use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::process::{Pid, setsid, test_kill_process};
use rustix::termios::tcgetwinsize;

/// Makes this process the leader of a new session. Only the child itself can do so without unsafe code; one
/// that leads a group already stays where it is.
pub(crate) fn leave_terminal() {
    if let Err(error) = setsid() {
        tracing::debug!(%error, "stays in its session");
    }
}

/// Whether process `pid` has ended, reaped or not; `None` if that cannot be known.
pub(crate) fn has_ended(pid: i32) -> Option<bool> {
    match test_kill_process(Pid::from_raw(pid)?) {
        Err(Errno::SRCH) => Some(true),
        _ => Some(is_zombie(pid)),
    }
}

/// Columns of the terminal that standard error is, if it is one and tells.
pub(crate) fn terminal_columns() -> Option<usize> {
    let size = tcgetwinsize(std::io::stderr()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Whether standard input is a pipe in which something waits to be read. Does not wait itself.
pub(crate) fn stdin_holds_data() -> bool {
    holds_data(std::io::stdin())
}

fn holds_data(input: impl AsFd) -> bool {
    let is_pipe = fstat(&input).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let mut wanted = [PollFd::new(&input, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    is_pipe
        && poll(&mut wanted, Some(&at_once)).is_ok()
        && wanted.iter().any(|input| input.revents().contains(PollFlags::IN))
}

/// A zombie holds no lock and no socket any more, but its id exists until its parent looks.
fn is_zombie(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn only_a_pipe_with_something_in_it_holds_data() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        assert!(!holds_data(&reader));
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        assert!(holds_data(&reader));
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(!holds_data(&reader), "its end is no data");
        assert!(!holds_data(std::fs::File::open("/dev/null").unwrap()));
        assert!(!holds_data(std::fs::File::open("/dev/zero").unwrap()));
    }

    #[test]
    fn a_process_that_was_reaped_has_ended() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(has_ended(own), Some(false));
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        assert_eq!(has_ended(pid), Some(false));
        child.wait().unwrap();
        assert_eq!(has_ended(pid), Some(true));
    }
}
