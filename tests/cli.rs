//! The command line: the README's first command, exit statuses, `--json`, Ctrl-C (cli contract; rulings 27, 42).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test")]

#[path = "kit/lib.rs"]
mod kit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use kit::events::{is_terminal, text};
use kit::files::Effects;
use kit::{Client, Daemon, Gate, Home, Provider, Reply, process, until, until_some};
use rustix::process::Signal;
use serde_json::{Value, json};

/// How the program ended and what it said.
struct Run {
    status: i32,
    out: String,
    err: String,
}

impl Run {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let status = output.status.code().unwrap_or_else(|| panic!("{output:?}"));
        Self { status, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Expects a status.
    #[track_caller]
    fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Standard output as JSON objects, one a line.
    #[track_caller]
    fn objects(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }
}

/// The program in `directory`.
fn command(home: &Home, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = home.command();
    command.current_dir(directory).args(arguments);
    command
}

fn run_in(home: &Home, directory: &Path, arguments: &[&str]) -> Run {
    Run::of(&command(home, directory, arguments).output().unwrap())
}

fn run(home: &Home, arguments: &[&str]) -> Run {
    run_in(home, home.path(), arguments)
}

/// A home with a provider and a workspace.
fn prepared(replies: impl IntoIterator<Item = Reply>) -> (Provider, Home, PathBuf) {
    let provider = Provider::script(replies);
    let home = Home::with(&provider);
    let workspace = home.workspace("w");
    (provider, home, workspace)
}

/// A running command whose end is waited for.
fn start(home: &Home, directory: &Path, arguments: &[&str]) -> Child {
    command(home, directory, arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn end_of(mut child: Child) -> Run {
    until_some("the end of the command", || child.try_wait().unwrap());
    Run::of(&child.wait_with_output().unwrap())
}

/// The only session of a workspace.
#[track_caller]
fn only_session(home: &Home, workspace: &Path) -> Value {
    let mut client = Client::connect(&home.socket());
    let listed = client.json("session.list", json!({ "workspace": workspace }));
    let [session] = &listed.as_array().unwrap()[..] else { panic!("{listed}") };
    client.json("session.get", json!({"id": session["id"], "workspace": workspace}))
}

// === The first command ===

#[test]
fn the_first_command_of_the_readme_works_on_an_empty_home() {
    let home = Home::new();
    let workspace = home.workspace("w");
    fs::write(workspace.join("README.md"), "# A project about whistling\n").unwrap();
    fs::write(workspace.join("main.rs"), "fn main() {}\n").unwrap();
    let ran = run_in(&home, &workspace, &["run", "what is in this folder?"]).exits(0);
    assert!(ran.out.contains("README.md") && ran.out.contains("main.rs"), "{}", ran.out);
    assert!(ran.err.contains("list_dir"), "{}", ran.err);
    assert!(ran.err.contains("provider add") || ran.out.contains("provider add"), "{}\n{}", ran.out, ran.err);
    let session = only_session(&home, &workspace);
    let used =
        session["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool").count();
    assert!(used >= 2, "{session}");
}

#[test]
fn the_built_in_model_edits_and_runs_what_it_is_asked_to() {
    let home = Home::new();
    let workspace = home.workspace("w");
    fs::write(workspace.join("a.txt"), "one foo\n").unwrap();
    run_in(&home, &workspace, &["run", "replace foo with bar in a.txt"]).exits(0);
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "one bar\n");
    let ran = run_in(&home, &workspace, &["run", "run echo it-works"]).exits(0);
    assert!(ran.out.contains("it-works"), "{}", ran.out);
    let ran = run_in(&home, &workspace, &["run", "--mode", "plan", "replace bar with baz in a.txt"]).exits(0);
    assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "one bar\n", "{}", ran.out);
}

// === run ===

#[test]
fn the_answer_alone_goes_to_stdout_and_progress_to_stderr() {
    let (_provider, home, workspace) = prepared([
        Reply::stream()
            .thinking("Hm.")
            .text("I shall write.")
            .tool("c1", "write_file", json!({"path": "a.txt", "content": "x\n"}))
            .stop(),
        Reply::stream().text("Writ").text("ten.").stop(),
    ]);
    let ran = run_in(&home, &workspace, &["run", "write", "it"]).exits(0);
    assert!(ran.out.ends_with("Written.\n"), "{:?}", ran.out);
    assert!(!ran.out.contains("write_file") && !ran.out.contains('\u{1b}'), "{:?}", ran.out);
    assert!(
        ran.err.contains("write_file") && ran.err.contains("+x") && !ran.err.contains('\u{1b}'),
        "{}",
        ran.err
    );
    assert_eq!(only_session(&home, &workspace)["messages"][0]["text"], "write it");
}

#[test]
fn json_prints_one_event_a_line_and_nothing_else() {
    let (_provider, home, workspace) = prepared([Reply::answer("Hello.")]);
    let lines = run_in(&home, &workspace, &["run", "--json", "hi"]).exits(0).objects();
    assert_eq!(lines.last().unwrap()["data"], "Hello.");
    assert!(lines[..lines.len() - 1].iter().all(|line| !is_terminal(line)));
    assert!(lines.iter().all(|line| line["cursor"]["seq"].is_u64()), "run says hello first");
}

#[test]
fn a_prompt_can_come_from_stdin() {
    let (provider, home, workspace) = prepared([Reply::answer("a"), Reply::answer("b")]);
    for (arguments, expected) in
        [(vec!["run", "-"], "piped"), (vec!["run", "explain", "-"], "explain\n\npiped")]
    {
        let mut child = command(&home, &workspace, &arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"piped\n").unwrap();
        end_of(child).exits(0);
        assert_eq!(provider.requests().pop().unwrap().texts("user").pop().unwrap(), expected);
    }
}

#[test]
fn run_makes_a_session_or_goes_on_with_one() {
    let (provider, home, workspace) =
        prepared([Reply::answer("1"), Reply::answer("2"), Reply::answer("3"), Reply::answer("4")]);
    run_in(&home, &workspace, &["run", "one"]).exits(0);
    let first = text(&only_session(&home, &workspace)["id"]);
    run_in(&home, &workspace, &["run", "two"]).exits(0);
    assert_eq!(provider.request(2).texts("user"), ["two"]);
    run_in(&home, &workspace, &["run", "--session", &first, "three"]).exits(0);
    assert_eq!(provider.request(3).texts("user"), ["one", "three"]);
    run_in(&home, &workspace, &["run", "--continue", "four"]).exits(0);
    assert_eq!(provider.request(4).texts("user"), ["one", "three", "four"]);
}

#[test]
fn exit_statuses_say_how_a_run_ended() {
    let (_provider, home, workspace) = prepared([Reply::refusal(400, "no"), Reply::answer("ok")]);
    run_in(&home, &workspace, &["run", "--no-start", "hi"]).exits(3);
    let failed = run_in(&home, &workspace, &["run", "hi"]).exits(1);
    assert!(failed.err.contains("p returned HTTP 400: no") && failed.out.is_empty(), "{}", failed.err);
    run_in(&home, &workspace, &["run"]).exits(2);
    run_in(&home, &workspace, &["run", " "]).exits(2);
    run_in(&home, &workspace, &["run", "--mode", "root", "hi"]).exits(2);
    run_in(&home, &workspace, &["run", "--no-such-flag"]).exits(2);
    run_in(&home, &workspace, &["run", "-C", "/no/such/place", "hi"]).exits(2);
    let unknown = run_in(&home, &workspace, &["run", "--session", "nope", "hi"]).exits(2);
    assert!(unknown.err.contains("nope"), "{}", unknown.err);
    run_in(&home, &workspace, &["run", "hi"]).exits(0);
}

#[test]
fn a_turn_that_somebody_else_cancels_exits_5() {
    let gone = Gate::new();
    let (_provider, home, workspace) = prepared([Reply::stream().text("Half").hang(&gone)]);
    let daemon = Daemon::start(&home);
    let child = start(&home, &workspace, &["run", "hi"]);
    let mut other = daemon.hello("other");
    until("the turn", || {
        let listed = other.json("session.list", json!({ "workspace": workspace }));
        let id = listed[0]["id"].clone();
        id.is_string() && other.ok("agent.cancel", json!({"sessionId": id})) != "no active turn"
    });
    end_of(child).exits(5);
}

#[test]
fn shutdown_under_a_run_exits_5_and_death_of_the_daemon_3() {
    let (one, two) = (Gate::new(), Gate::new());
    let (_provider, home, workspace) =
        prepared([Reply::stream().text("Half").hang(&one), Reply::stream().text("Half").hang(&two)]);
    let daemon = Daemon::start(&home);
    let child = start(&home, &workspace, &["run", "--json", "hi"]);
    _provider.request(1);
    assert_eq!(daemon.connect().call("shutdown", json!({}))["event"], "bye");
    end_of(child).exits(5);
    drop(daemon);

    let daemon = Daemon::start(&home);
    let child = start(&home, &workspace, &["run", "hi"]);
    _provider.request(2);
    daemon.kill();
    let ended = end_of(child).exits(3);
    assert!(ended.err.contains("session"), "{}", ended.err);
}

#[test]
fn the_first_ctrl_c_cancels_and_waits_for_the_end() {
    let gone = Gate::new();
    let (_provider, home, workspace) = prepared([Reply::stream().text("Half").hang(&gone)]);
    let daemon = Daemon::start(&home);
    let child = start(&home, &workspace, &["run", "hi"]);
    _provider.request(1);
    process::signal(child.id(), Signal::INT);
    let ended = end_of(child).exits(130);
    assert!(ended.err.contains("cancel"), "{}", ended.err);
    gone.reached();
    assert_eq!(
        daemon.hello("x").ok("agent.cancel", json!({"sessionId": only_session(&home, &workspace)["id"]})),
        "no active turn"
    );
}

#[test]
fn the_second_ctrl_c_stops_waiting_and_names_the_session() {
    let (provider, home, workspace) = prepared([]);
    let effects = Effects::in_directory(&workspace);
    // A check that ignores polite signals keeps the turn from ending at once.
    let stubborn = "trap '' TERM INT; echo x >> effects.txt; exec sleep 600";
    provider.then(Reply::call("c1", "bash", json!({"command": stubborn})));
    let daemon = Daemon::start(&home);
    let child = start(&home, &workspace, &["run", "hi"]);
    effects.wait(1);
    // Stopped, the daemon cannot answer: the second Ctrl-C comes while the first is still waiting.
    process::signal(daemon.pid(), Signal::STOP);
    process::signal(child.id(), Signal::INT);
    let mut child = child;
    let mut heard = String::new();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    while !heard.contains("Ctrl-C again") {
        let read = std::io::BufRead::read_line(&mut stderr, &mut heard).unwrap();
        assert!(read > 0, "{heard}");
    }
    process::signal(child.id(), Signal::INT);
    let status = until_some("the end of the command", || child.try_wait().unwrap());
    std::io::Read::read_to_string(&mut stderr, &mut heard).unwrap();
    process::signal(daemon.pid(), Signal::CONT);
    assert_eq!(status.code(), Some(130));
    let session = text(&only_session(&home, &workspace)["id"]);
    assert!(
        heard.contains(&format!("no longer waiting; the turn in session {session} is being cancelled")),
        "{heard}"
    );
}

#[test]
fn a_time_limit_cancels_and_exits_5() {
    let gone = Gate::new();
    let (_provider, home, workspace) = prepared([Reply::stream().text("Half").hang(&gone)]);
    run_in(&home, &workspace, &["run", "--timeout", "1s", "hi"]).exits(5);
    gone.reached();
}

#[test]
fn an_answer_that_hits_the_output_cap_is_printed_whole() {
    let (_provider, home, workspace) = prepared([
        Reply::stream().text("First ha").finish("length"),
        Reply::stream().text("lf, second half.").stop(),
    ]);
    let ran = run_in(&home, &workspace, &["run", "hi"]).exits(0);
    assert_eq!(ran.out, "First half, second half.\n", "{}", ran.err);
}

#[test]
fn a_check_is_shown_with_what_it_said() {
    let write = |content: &str| Reply::call("c1", "write_file", json!({"path": "a.txt", "content": content}));
    let provider = Provider::script([write("wrong"), Reply::answer("a"), write("right"), Reply::answer("b")]);
    let home = Home::with(&provider);
    let workspace = home.workspace_with("w", &json!({"verifyCommand": "cat a.txt; grep -q right a.txt"}));
    let ran = run_in(&home, &workspace, &["run", "hi"]).exits(0);
    let (failed, passed) =
        ("✗ check: cat a.txt; grep -q right a.txt (", "✓ check: cat a.txt; grep -q right a.txt (");
    assert!(
        ran.err.contains(failed) && ran.err.contains("\n  wrong\n") && ran.err.contains(passed),
        "{}",
        ran.err
    );
}

#[test]
fn a_refused_model_leaves_no_session_behind() {
    let (_provider, home, workspace) = prepared([Reply::refusal(400, "no")]);
    let refused = run_in(&home, &workspace, &["run", "--model", "nope", "hi"]).exits(1);
    assert!(refused.err.contains("Unknown model nope"), "{}", refused.err);
    assert_eq!(run_in(&home, &workspace, &["session", "list", "--all", "--json"]).exits(0).out, "");
    run_in(&home, &workspace, &["run", "hi"]).exits(1);
    assert_eq!(only_session(&home, &workspace)["messages"][0]["text"], "hi", "what was accepted stays");
}

#[test]
fn what_was_piped_in_and_not_read_is_mentioned() {
    let (provider, home, workspace) = prepared([Reply::answer("a"), Reply::answer("b")]);
    let _daemon = Daemon::start(&home);
    for (arguments, mentioned) in [(vec!["run", "explain"], true), (vec!["run", "explain", "-"], false)] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"piped\n").unwrap();
        drop(writer);
        let ran = Run::of(&command(&home, &workspace, &arguments).stdin(reader).output().unwrap()).exits(0);
        let said = ran.err.contains("note: standard input was not read; add - to include it");
        assert_eq!(said, mentioned, "{}", ran.err);
    }
    assert_eq!(provider.request(1).texts("user"), ["explain"]);
}

#[test]
fn a_log_filter_that_is_none_is_mentioned() {
    let home = Home::new();
    let mut start = home.command();
    start.env("SEEKCLAW_LOG", "nonsense").args(["daemon", "start"]);
    let started = Run::of(&start.output().unwrap()).exits(0);
    assert!(started.err.contains("SEEKCLAW_LOG is no valid filter"), "{}", started.err);
}

#[test]
fn mode_is_set_without_the_word_too() {
    let home = Home::new();
    run(&home, &["mode", "plan"]).exits(0);
    assert_eq!(run(&home, &["mode"]).exits(0).out, "plan\n");
    run(&home, &["mode", "yolo"]).exits(2);
}

// === daemon ===

#[test]
fn the_daemon_is_started_shown_and_stopped() {
    let home = Home::new();
    let stopped = run(&home, &["daemon", "status"]).exits(3);
    assert!(stopped.out.contains("not running"), "{}", stopped.out);
    run(&home, &["daemon", "stop"]).exits(0);
    run(&home, &["daemon", "start"]).exits(0);
    run(&home, &["daemon", "start"]).exits(0);
    let status = run(&home, &["daemon", "status", "--json"]).exits(0).objects().remove(0);
    assert_eq!(status["running"], true);
    let pid = status["pid"].as_u64().unwrap();
    assert!(process::is_alive(u32::try_from(pid).unwrap()));
    run(&home, &["daemon", "restart"]).exits(0);
    let again = run(&home, &["daemon", "status", "--json"]).exits(0).objects().remove(0);
    assert!(again["pid"].is_u64() && again["pid"] != pid, "{again}");
    run(&home, &["daemon", "stop"]).exits(0);
    assert!(!home.socket().exists() && home.processes().is_empty());
}

#[test]
fn the_ready_line_is_all_that_a_daemon_prints() {
    let home = Home::new();
    let daemon = Daemon::start(&home);
    assert_eq!(daemon.ready["event"], "ready");
    assert_eq!(daemon.ready["pid"], daemon.pid());
    assert_eq!((&daemon.ready["socket"], &daemon.ready["protocol"]), (&json!(home.socket()), &json!("2.1")));
    let bare = home.command().arg("daemon").output().unwrap();
    assert_eq!((bare.status.code(), bare.stdout.len()), (Some(73), 0));
}

#[test]
fn another_home_is_another_daemon() {
    let home = Home::new();
    let _daemon = Daemon::start(&home);
    let elsewhere = home.path().join("elsewhere");
    let mut other = home.command();
    other.env("SEEKCLAW_HOME", &elsewhere);
    Run::of(&other.args(["daemon", "start"]).output().unwrap()).exits(0);
    assert!(elsewhere.join("daemon.sock").exists());
    assert_eq!(Client::connect(&elsewhere.join("daemon.sock")).call("shutdown", json!({}))["event"], "bye");
}

// === The other commands ===

#[test]
fn call_prints_every_line_and_ends_by_the_terminal_one() {
    let (_provider, home, workspace) = prepared([Reply::answer("Hello.")]);
    let params = json!({"message": "hi", "workspace": workspace}).to_string();
    let lines = run(&home, &["call", "chat", &params]).exits(0).objects();
    assert!(lines.len() > 4 && lines.last().unwrap()["event"] == "done", "{lines:?}");
    assert_eq!(run(&home, &["call", "ping"]).exits(0).objects()[0]["event"], "pong");
    let refused = run(&home, &["call", "nothing"]).exits(1);
    assert_eq!(refused.objects()[0]["data"], "Unknown method: nothing");
    run(&home, &["call", "ping", "[1]"]).exits(2);
    run(&home, &["call", "ping", "--no-start"]).exits(0);
}

#[test]
fn sessions_are_listed_shown_and_removed() {
    let (_provider, home, workspace) = prepared([Reply::answer("Hello to you.")]);
    run_in(&home, &workspace, &["run", "hi there"]).exits(0);
    let id = text(&only_session(&home, &workspace)["id"]);
    let listed = run_in(&home, &workspace, &["session", "list"]).exits(0);
    assert!(listed.out.contains(&id) && listed.out.contains("hi there"), "{}", listed.out);
    let shown = run_in(&home, &workspace, &["session", "show", &id]).exits(0);
    assert!(shown.out.contains("hi there") && shown.out.contains("Hello to you."), "{}", shown.out);
    let object = run_in(&home, &workspace, &["session", "show", &id, "--json"]).exits(0).objects().remove(0);
    assert_eq!(object["messages"][1]["text"], "Hello to you.");
    for command in [
        vec!["session", "show", "nope"],
        vec!["session", "rm", "nope"],
        vec!["cancel", "nope"],
        vec!["steer", "nope", "hi"],
    ] {
        run_in(&home, &workspace, &command).exits(2);
    }
    run_in(&home, &workspace, &["session", "rm", &id]).exits(0);
    run_in(&home, &workspace, &["session", "show", &id]).exits(2);
}

#[test]
fn a_provider_is_added_tested_and_used() {
    let provider = Provider::script([Reply::answer("From there.")]);
    let home = Home::new();
    let workspace = home.workspace("w");
    let url = provider.base_url();
    let add = [
        "provider",
        "add",
        "local",
        "--base-url",
        &url,
        "--model",
        "m",
        "--model",
        "n",
        "--api-key-env",
        "SOME_KEY",
        "--use",
    ];
    Run::of(&command(&home, &workspace, &add).env("SOME_KEY", "secret-key-1").output().unwrap()).exits(0);
    let listed = run(&home, &["provider", "list"]).exits(0);
    assert!(listed.out.contains("local") && !listed.out.contains("secret-key-1"), "{}", listed.out);
    run(&home, &["provider", "test"]).exits(0);
    run(&home, &["model", "use", "local/n"]).exits(0);
    let models = run(&home, &["model", "list"]).exits(0);
    assert!(models.out.contains("local/m") && models.out.contains("local/n"), "{}", models.out);
    let ran = run_in(&home, &workspace, &["run", "hi"]).exits(0);
    assert_eq!(ran.out, "From there.\n");
    assert_eq!(provider.request(1).body["model"], "n");
    assert_eq!(provider.request(1).headers["authorization"], "Bearer secret-key-1");
    run(&home, &["model", "use", "none"]).exits(1);
}

#[test]
fn doctor_lock_list_and_version_answer() {
    let home = Home::new();
    let version = run(&home, &["version"]).exits(0);
    assert!(
        version.out.contains(env!("CARGO_PKG_VERSION")) && version.out.contains("not running"),
        "{}",
        version.out
    );
    run(&home, &["daemon", "start"]).exits(0);
    assert!(!run(&home, &["version"]).exits(0).out.contains("not running"));
    assert_eq!(run(&home, &["lock", "list", "--json"]).exits(0).out, "");
    let models = run(&home, &["model", "list", "--json"]).exits(0).objects();
    assert!(models.iter().all(|model| model["ref"].is_string()) && !models.is_empty(), "{models:?}");
    let rows = run(&home, &["doctor", "--json"]).objects();
    assert!(rows.len() > 3 && rows.iter().all(|row| row["name"].is_string()), "{rows:?}");
    let doctor = run(&home, &["doctor"]);
    assert!(
        doctor.out.contains("Workspace Root") && doctor.out.contains("Provider Config"),
        "{}",
        doctor.out
    );
}
