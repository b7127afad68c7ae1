//! What the kernel says about processes.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal};

/// Resident memory in KiB.
pub fn rss_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Open descriptors.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count()
}

/// Switches of context that the process asked for, all its threads together: each is a wake-up.
pub fn wake_ups(pid: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |status: String| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    };
    threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok())
        .map(of_thread)
        .sum()
}

/// Whether it exists and is no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Processes whose command line has `text` in it, except this one.
pub fn with_command(text: &str) -> Vec<u32> {
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(text) && is_alive(*pid)
    };
    all().into_iter().filter(has).filter(|pid| *pid != std::process::id()).collect()
}

/// Processes that belong to a private home: they have it in their environment.
pub fn of_home(home: &Path) -> Vec<u32> {
    let needle = format!("HOME={}", home.display());
    let has = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == needle.as_bytes()) && is_alive(*pid)
    };
    all().into_iter().filter(has).filter(|pid| *pid != std::process::id()).collect()
}

/// Sends SIGKILL.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Sends a signal; a process that has ended already is none's loss.
pub fn signal(pid: u32, signal: Signal) {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if raw.is_some_and(|pid| rustix::process::kill_process(pid, signal).is_err()) {
        super::home::show(&format!("process {pid} had ended before {signal:?}"));
    }
}

fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
