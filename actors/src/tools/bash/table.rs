//! The process table of the system, as far as it tells which processes belong to a command.

use super::group::Trace;
use crate::tools::Survivor;

/// Characters of a command line that are kept (ruling 40).
const COMMAND_CHARS: usize = 200;

#[cfg(target_os = "linux")]
pub(super) use self::linux::{is_same, marked, members, started};
#[cfg(not(target_os = "linux"))]
pub(super) use self::portable::{is_same, marked, members, started};

fn shorten(command: &str) -> String {
    command.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).take(COMMAND_CHARS).collect()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use super::{Survivor, Trace, shorten};

    /// What `/proc/<pid>/stat` tells.
    struct Stat {
        name: String,
        alive: bool,
        group: u32,
        started: u64,
    }

    /// Living processes of a command, by pid.
    pub(in crate::tools::bash) fn members(trace: &Trace) -> Vec<Survivor> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut members: Vec<_> = pids.filter_map(|pid| member(pid, trace)).collect();
        members.sort_by_key(|member| member.pid);
        members
    }

    /// Living processes with an environment entry that starts with `prefix` and not with `except`; never
    /// this process and never its parent, which may have been started by an orphan.
    pub(in crate::tools::bash) fn marked(prefix: &str, except: &str) -> Vec<Survivor> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let spared = [std::process::id(), std::os::unix::process::parent_id()];
        let orphans = pids.filter(|pid| !spared.contains(pid) && is_marked(*pid, prefix, except));
        orphans.filter_map(|pid| survivor(pid, stat(pid).filter(|stat| stat.alive)?)).collect()
    }

    fn is_marked(pid: u32, prefix: &str, except: &str) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let ours =
            |entry: &[u8]| entry.starts_with(prefix.as_bytes()) && !entry.starts_with(except.as_bytes());
        environment.split(|byte| *byte == 0).any(ours)
    }

    /// When a process was started, in ticks since the system was.
    pub(in crate::tools::bash) fn started(pid: u32) -> Option<u64> {
        stat(pid).map(|stat| stat.started)
    }

    /// Whether it lives and its number was not taken by another one.
    pub(in crate::tools::bash) fn is_same(survivor: &Survivor) -> bool {
        stat(survivor.pid).is_some_and(|stat| stat.alive && stat.started == survivor.started)
    }

    fn member(pid: u32, trace: &Trace) -> Option<Survivor> {
        let stat = stat(pid).filter(|stat| stat.alive)?;
        let marked = || stat.started >= trace.since && has_mark(pid, &trace.mark);
        if stat.group != trace.group && !marked() {
            return None;
        }
        survivor(pid, stat)
    }

    fn survivor(pid: u32, stat: Stat) -> Option<Survivor> {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = shorten(&String::from_utf8_lossy(&line).replace('\0', " "));
        let command = if command.is_empty() { stat.name } else { command };
        Some(Survivor { pid, group: stat.group, started: stat.started, command })
    }

    fn stat(pid: u32) -> Option<Stat> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        parse_stat(&String::from_utf8_lossy(&text))
    }

    fn parse_stat(text: &str) -> Option<Stat> {
        // The name may contain anything, parentheses and spaces included.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let alive = !matches!(fields.next()?, "Z" | "X" | "x");
        let group = fields.nth(1)?.parse().ok()?;
        let started = fields.nth(16)?.parse().ok()?;
        Some(Stat { name: name.to_owned(), alive, group, started })
    }

    fn has_mark(pid: u32, mark: &str) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_name_full_of_parentheses_is_no_obstacle() {
            let line = "42 (a) S (b) 1) R 7 40 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 99 8";
            let stat = parse_stat(line).unwrap();
            assert_eq!((stat.name.as_str(), stat.alive), ("a) S (b) 1", true));
            assert_eq!((stat.group, stat.started), (40, 12345));
        }

        #[test]
        fn the_own_process_is_found_by_its_start() {
            let pid = std::process::id();
            let this = Survivor { pid, group: 0, started: started(pid).unwrap(), command: String::new() };
            assert!(is_same(&this));
            assert!(!is_same(&Survivor { started: this.started + 1, ..this }));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use std::process::{Command, Stdio};

    use super::{Survivor, Trace, shorten};

    /// Living processes of the group, by pid. Those that left the group are not found here.
    pub(in crate::tools::bash) fn members(trace: &Trace) -> Vec<Survivor> {
        let mut members: Vec<_> = all().into_iter().filter(|one| one.group == trace.group).collect();
        members.sort_by_key(|member| member.pid);
        members
    }

    /// Environments are not read here: orphans of a killed daemon are not found.
    pub(in crate::tools::bash) fn marked(_prefix: &str, _except: &str) -> Vec<Survivor> {
        Vec::new()
    }

    /// Start times are not read here.
    pub(in crate::tools::bash) fn started(_pid: u32) -> Option<u64> {
        None
    }

    /// Whether a process of that number, group and command lives.
    pub(in crate::tools::bash) fn is_same(survivor: &Survivor) -> bool {
        all().contains(survivor)
    }

    fn all() -> Vec<Survivor> {
        let listed =
            Command::new("ps").args(["-axo", "pid=,pgid=,stat=,args="]).stdin(Stdio::null()).output();
        let Ok(listed) = listed else { return Vec::new() };
        String::from_utf8_lossy(&listed.stdout).lines().filter_map(parse).collect()
    }

    fn parse(line: &str) -> Option<Survivor> {
        let mut words = line.split_ascii_whitespace();
        let (pid, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        if words.next()?.starts_with('Z') {
            return None;
        }
        let command = shorten(&words.collect::<Vec<_>>().join(" "));
        Some(Survivor { pid, group, started: 0, command })
    }
}
