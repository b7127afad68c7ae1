use std::path::PathBuf;
use std::time::{Duration, Instant};

use seekclaw_storage::record::log::{Effect, Outcome};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::table;
use super::*;
use crate::tools::Survivor;
use crate::tools::kit::Kit;

/// Longest wait for a fact, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(20);

async fn bash(kit: &Kit, command: &str) -> ToolReport {
    kit.call("bash", json!({"command": command})).await
}

async fn until(fact: impl Fn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect("the fact did not come true in time");
}

fn pid_in(path: PathBuf) -> Option<u32> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn is_alive(pid: u32) -> bool {
    let started = table::started(pid).unwrap_or_default();
    table::is_same(&Survivor { pid, group: 0, started, command: String::new() })
}

/// Cancels once the command has written the pids of `files`, and returns the pids.
async fn cancelled_after(kit: &Kit, command: &str, files: &[&str]) -> (ToolReport, Vec<u32>, Duration) {
    let (report, (pids, since)) = tokio::join!(bash(kit, command), async {
        let pids = || files.iter().map(|file| pid_in(kit.root().join(file))).collect::<Option<Vec<_>>>();
        until(|| pids().is_some()).await;
        kit.cancel.cancel();
        (pids().unwrap(), Instant::now())
    });
    (report, pids, since.elapsed())
}

#[tokio::test]
async fn both_streams_are_shown_stdout_first() {
    let kit = Kit::new().await;
    let report = bash(&kit, "echo err >&2; echo out").await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Ok, "out\nerr"));
    assert_eq!(bash(&kit, "true").await.text, "(no output)");
    assert_eq!(bash(&kit, "printf 'a\\xffb'").await.text, "a\u{FFFD}b");
}

#[tokio::test]
async fn failures_begin_with_their_exit_code() {
    let kit = Kit::new().await;
    let report = bash(&kit, "echo no; exit 3").await;
    assert_eq!((report.outcome, report.text.as_str()), (Outcome::Failed, "Exit code 3\nno"));
    let report = bash(&kit, "kill -SEGV $$").await;
    assert_eq!(report.text, "Exit code 139 (killed by SIGSEGV)\n(no output)");
}

#[tokio::test]
async fn the_intent_is_declared_before_anything_runs() {
    let kit = Kit::new().await;
    kit.write("sub/x", "");
    kit.call("bash", json!({"command": "pwd", "cwd": "sub"})).await;
    let cwd = kit.root().join("sub").display().to_string();
    let declared = std::mem::take(&mut *kit.declared.lock().unwrap());
    assert_eq!(declared, [Effect::Command { command: "pwd".to_owned(), cwd }]);
    kit.record_nothing();
    let report = bash(&kit, "touch done").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(!kit.root().join("done").exists());
}

#[tokio::test]
async fn a_cancel_before_the_start_changes_nothing() {
    let kit = Kit::new().await;
    kit.cancel.cancel();
    let report = bash(&kit, "touch done").await;
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(kit.declared.lock().unwrap().is_empty() && !kit.root().join("done").exists());

    let mut kit = Kit::new().await;
    let cancel = kit.cancel.clone();
    kit.ctx.declare = std::sync::Arc::new(move |_| {
        cancel.cancel();
        Box::pin(async { Ok(()) })
    });
    let report = bash(&kit, "touch done").await;
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(!kit.root().join("done").exists());
}

#[tokio::test]
async fn the_directory_must_be_writable_by_the_rules() {
    let kit = Kit::new().await;
    for cwd in ["/", "../home", "..", "missing"] {
        let report = kit.call("bash", json!({"command": "touch done", "cwd": cwd})).await;
        assert_ne!(report.outcome, Outcome::Ok, "{cwd}");
    }
    assert!(kit.declared.lock().unwrap().is_empty());
}

#[tokio::test]
async fn standard_input_is_at_its_end() {
    let kit = Kit::new().await;
    assert_eq!(bash(&kit, "cat; read line || echo none").await.text, "none");
}

#[test]
fn commands_do_not_get_the_secrets_of_the_daemon() {
    let names = ["SEEKCLAW_TOKEN", "PATH", "SEEKCLAW_HOME", "SEEKCLAW_API_KEY"].map(OsString::from);
    let withheld: Vec<_> = withheld(names.into_iter()).collect();
    assert_eq!(withheld, ["SEEKCLAW_TOKEN", "SEEKCLAW_API_KEY"]);
}

#[tokio::test]
async fn the_time_limit_ends_the_command_and_shows_what_it_said() {
    let kit = Kit::new().await;
    let begin = Instant::now();
    let arguments = json!({"command": "echo so far; sleep 100", "timeout_seconds": 1});
    let report = kit.call("bash", arguments).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert_eq!(report.text, "Command timed out after 1s: echo so far; sleep 100\nso far");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn endless_output_stays_within_bounds() {
    let mut kit = Kit::new().await;
    kit.ctx.limits.output_chars = 4000;
    let report = kit.call("bash", json!({"command": "yes 0123456789", "timeout_seconds": 1})).await;
    assert!(report.text.chars().count() <= 4000, "{}", report.text.chars().count());
    assert!(report.text.contains(&format!("[… {} bytes of stdout omitted …]", report.omitted)));
    assert!(report.omitted > 1_000_000, "{}", report.omitted);
}

#[tokio::test]
async fn large_output_keeps_its_ends_and_counts_the_rest() {
    let mut kit = Kit::new().await;
    kit.ctx.limits.output_chars = 4000;
    let report = bash(&kit, "seq 1 300000; echo oops >&2").await;
    assert!(
        report.text.starts_with("1\n2\n3\n") && report.text.ends_with("\n300000\noops"),
        "{}",
        report.text
    );
    let all: usize = (1..=300_000).map(|n: u32| n.to_string().len() + 1).sum();
    let marker = format!("\n[… {} bytes of stdout omitted …]\n", report.omitted);
    let kept = report.text.replace(&marker, "");
    assert_eq!(kept.len() - "oops".len() + report.omitted as usize, all);
    assert!(report.text.chars().count() <= 4000);
}

#[tokio::test]
async fn a_background_process_does_not_hold_the_result() {
    let kit = Kit::new().await;
    let begin = Instant::now();
    let report = bash(&kit, "sleep 1000 & echo $! > pid; echo started").await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    let pid = pid_in(kit.root().join("pid")).unwrap();
    assert_eq!(report.text, format!("started\n[Still running in the background: {pid} (sleep 1000)]"));
    assert_eq!(report.survivors.iter().map(|s| s.pid).collect::<Vec<_>>(), [pid]);
    assert!(is_alive(pid), "what was left in the background lives on");
    end_survivors(report.survivors).await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_process_that_left_the_group_is_named_too() {
    let kit = Kit::new().await;
    let report =
        bash(&kit, "(setsid bash -c 'echo $$ > pid; exec sleep 1000' &) ; while [ ! -s pid ]; do :; done")
            .await;
    let pid = pid_in(kit.root().join("pid")).unwrap();
    assert!(report.survivors.iter().any(|s| s.pid == pid), "{report:?}");
    end_survivors(report.survivors).await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn cancel_ends_all_stages_of_a_pipe() {
    let kit = Kit::new().await;
    let stage = |n| format!("bash -c 'echo $$ > p{n}; sleep 1000; true'");
    let command = format!("{} | {} | {}", stage(1), stage(2), stage(3));
    let (report, pids, took) = cancelled_after(&kit, &command, &["p1", "p2", "p3"]).await;
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(report.text.starts_with("Command cancelled: bash -c"), "{}", report.text);
    assert!(pids.into_iter().all(|pid| !is_alive(pid)) && report.survivors.is_empty());
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn cancel_ends_double_forks_in_and_out_of_the_group() {
    let kit = Kit::new().await;
    let command = "(bash -c 'echo $$ > in; exec sleep 1000' &); \
                   (setsid bash -c 'echo $$ > out; exec sleep 1000' &); sleep 1000";
    let (report, pids, took) = cancelled_after(&kit, command, &["in", "out"]).await;
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(pids.into_iter().all(|pid| !is_alive(pid)) && report.survivors.is_empty());
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn cancel_does_not_wait_for_those_that_ignore_it() {
    let kit = Kit::new().await;
    let command = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done";
    let (report, pids, took) = cancelled_after(&kit, command, &["pid"]).await;
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert!(pids.into_iter().all(|pid| table::started(pid).is_none()), "the shell was not reaped");
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_running() {
    let kit = Kit::new().await;
    let arguments: Value = json!({"command": "sleep 1000 & echo $! > child; echo $$ > pid; wait"});
    let files = ["child", "pid"].map(|file| kit.root().join(file));
    let pids = || files.iter().map(|file| pid_in(file.clone())).collect::<Option<Vec<_>>>();
    tokio::select! {
        report = kit.call("bash", arguments) => panic!("ended by itself: {report:?}"),
        () = until(|| pids().is_some()) => {}
    }
    let pids = pids().unwrap();
    until(|| pids.iter().all(|pid| !is_alive(*pid))).await;
}

#[tokio::test]
async fn a_shell_that_cannot_start_is_a_failed_result() {
    let kit = Kit::new().await;
    let report = bash(&kit, "echo \0").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.text.starts_with("Cannot start the command in "), "{}", report.text);
    let report = bash(&kit, "  ").await;
    assert_eq!(report.text, "bash crashed: argument `command` is missing");
}
