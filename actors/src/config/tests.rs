use std::fs;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::future::join_all;
use seekclaw_protocol::{ErrorCode, Mode, WireError};
use tokio::sync::oneshot;

use super::ConfigHandle;
use super::kit::{Disk, spawn};
use crate::supervision::Tasks;

async fn append(handle: &ConfigHandle, text: &str) -> Result<(), WireError> {
    let text = text.to_owned();
    let change = move |config: &mut seekclaw_storage::config::model::Config| {
        config.routing.fallback.push(text.clone());
        Ok(())
    };
    handle.update(change).await
}

fn fallback(handle: &ConfigHandle) -> Vec<String> {
    handle.current().config.routing.fallback.clone()
}

/// Keeps the desk busy until it is told to go on.
async fn hold(handle: &ConfigHandle, tasks: &mut Tasks) -> mpsc::Sender<()> {
    let (go, wait) = mpsc::channel::<()>();
    let (started, running) = oneshot::channel();
    let mut started = Some(started);
    let holder = handle.clone();
    tasks.spawn(async move {
        let held = holder.update(move |_| {
            started.take().map(|started| started.send(()));
            wait.recv().map_err(|_| WireError::new(ErrorCode::Internal, "let go"))
        });
        held.await.unwrap_or_default();
    });
    running.await.unwrap();
    go
}

#[tokio::test]
async fn changes_apply_in_order_of_arrival_and_are_published_with_the_answer() {
    let disk = Disk::new();
    let handle = disk.serve().await;
    let names: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
    let results = join_all(names.iter().map(|name| append(&handle, name))).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(fallback(&handle), names);
    assert_eq!(disk.load().current().config.routing.fallback, names, "and they are on disk");
}

#[tokio::test]
async fn a_refused_change_leaves_no_trace() {
    let disk = Disk::new();
    let handle = disk.write("{}").serve().await;
    let refused: Result<(), WireError> = handle
        .update(|config| {
            config.routing.fallback.push("half".to_owned());
            Err(WireError::new(ErrorCode::InvalidParams, "no"))
        })
        .await;
    assert_eq!(refused.unwrap_err().message, "no");
    assert_eq!((fallback(&handle), disk.read().as_str()), (Vec::new(), "{}"));
}

#[tokio::test]
async fn a_turn_sees_what_was_written_by_hand() {
    let disk = Disk::new();
    let handle = disk.serve().await;
    let before = handle.fresh().await;
    assert!(Arc::ptr_eq(&before, &handle.fresh().await), "nothing is read that has not changed");
    disk.write(r#"{"agent": {"maxSteps": 7}} // by hand"#);
    assert_eq!(handle.current().config.agent.max_steps, 40, "readers never look at the disk");
    assert_eq!(handle.fresh().await.config.agent.max_steps, 7);
    fs::remove_file(disk.file()).unwrap();
    assert_eq!(handle.fresh().await.config.agent.max_steps, 40);
}

#[tokio::test(start_paused = true)]
async fn a_broken_file_stops_changes_and_its_repair_is_noticed() {
    let disk = Disk::new();
    let handle = disk.write(r#"{"agent": {"maxSteps": 7}}"#).serve().await;
    disk.write("{\n  \"agent\": }");
    let settings = handle.fresh().await;
    let expected = format!("Invalid config: {}: line 2, column 12", disk.file().display());
    assert_eq!(settings.broken.as_deref(), Some(expected.as_str()));
    assert_eq!(settings.config.agent.max_steps, 7, "the last good one stays in force");

    let error = append(&handle, "x").await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::Conflict, expected.as_str()));
    assert_eq!(handle.switch_mode(Mode::Plan).await.unwrap_err().message, expected);
    assert_eq!(handle.reload().await.unwrap_err().message, expected);
    assert_eq!((disk.read().as_str(), disk.copies()), ("{\n  \"agent\": }", 1));

    let mut published = handle.subscribe();
    published.mark_unchanged();
    disk.write(r#"{"agent": {"maxSteps": 9}}"#);
    let repaired = published.wait_for(|settings| settings.broken.is_none());
    let repaired = tokio::time::timeout(Duration::from_secs(10), repaired).await.unwrap().unwrap().clone();
    assert_eq!(repaired.config.agent.max_steps, 9);
    append(&handle, "x").await.unwrap();
}

#[test]
fn a_daemon_that_starts_with_a_broken_file_runs_on_the_last_good_one() {
    let disk = Disk::new();
    disk.write(r#"{"agent": {"maxSteps": 7}}"#).load();
    let settings = disk.write("{").load().current();
    assert!(settings.broken.is_some());
    assert_eq!(settings.config.agent.max_steps, 7);
    assert_eq!(disk.read(), "{");

    let fresh = Disk::new();
    let settings = fresh.write("{").load().current();
    assert_eq!((settings.config.agent.max_steps, fresh.copies()), (40, 1));
    assert_eq!(*fresh.memory.0.lock().unwrap(), None, "defaults are no good configuration");
}

#[tokio::test]
async fn a_failed_actor_is_replaced_and_callers_only_wait() {
    let disk = Disk::new();
    let handle = disk.load();
    let (actor, ended) = spawn(&handle).await;
    append(&handle, "before").await.unwrap();
    actor.kill();
    ended.await.unwrap();
    let (changed, _) = tokio::join!(append(&handle, "meanwhile"), spawn(&handle));
    changed.unwrap();
    assert_eq!(fallback(&handle), ["before", "meanwhile"]);
}

#[tokio::test]
async fn a_change_that_panics_harms_nobody_else() {
    let disk = Disk::new();
    let handle = disk.serve().await;
    let error = handle.update(|_| -> Result<(), WireError> { panic!("in a change") }).await.unwrap_err();
    assert_eq!(error.message, "The configuration was not changed");
    append(&handle, "after").await.unwrap();
    assert_eq!(fallback(&handle), ["after"]);
}

#[tokio::test]
async fn waiting_changes_are_bounded_and_readers_do_not_wait_for_them() {
    let (disk, mut tasks) = (Disk::new(), Tasks::default());
    let handle = disk.serve().await;
    let go = hold(&handle, &mut tasks).await;
    let mut waiting: Vec<_> = (0..63).map(|_| Box::pin(append(&handle, "w"))).collect();
    for change in &mut waiting {
        assert!(futures_util::poll!(change).is_pending());
    }
    assert_eq!(append(&handle, "over").await.unwrap_err().code, ErrorCode::Overloaded);
    assert_eq!(handle.current().config.agent.max_steps, 40);
    go.send(()).unwrap();
    assert!(join_all(waiting).await.iter().all(Result::is_ok));
    assert_eq!(fallback(&handle).len(), 63);
}

#[tokio::test]
async fn a_change_whose_caller_has_gone_does_not_happen_later() {
    let (disk, mut tasks) = (Disk::new(), Tasks::default());
    let handle = disk.serve().await;
    let go = hold(&handle, &mut tasks).await;
    let mut gone = Box::pin(append(&handle, "gone"));
    assert!(futures_util::poll!(&mut gone).is_pending());
    drop(gone);
    go.send(()).unwrap();
    append(&handle, "after").await.unwrap();
    assert_eq!(fallback(&handle), ["after"]);
}

#[tokio::test]
async fn a_mode_is_written_wherever_an_old_one_could_win() {
    let disk = Disk::new();
    let handle = disk.serve().await;
    handle.switch_mode(Mode::Plan).await.unwrap();
    assert!(!disk.work().join(".seekclaw").exists(), "no file is made for it");
    let settings = handle.current();
    assert_eq!((settings.mode(), settings.config.agent.mode.as_str()), (Mode::Plan, "plan"));
    assert_eq!(settings.config.profiles.get("default").unwrap().mode.as_deref(), Some("plan"));

    let own = disk.write_own("{ /* ours */ \"mode\": \"ro\" }");
    assert_eq!(handle.fresh().await.mode(), Mode::Readonly);
    handle.switch_mode(Mode::Auto).await.unwrap();
    assert_eq!(handle.current().mode(), Mode::Auto);
    assert_eq!(fs::read_to_string(own).unwrap(), "{ /* ours */ \"mode\": \"auto\" }\n");
}

#[tokio::test]
async fn a_mode_is_not_written_through_a_link_out_of_the_workspace() {
    let disk = Disk::new();
    let outside = disk.root.join("other.json");
    fs::write(&outside, "{}").unwrap();
    fs::create_dir(disk.work().join(".seekclaw")).unwrap();
    std::os::unix::fs::symlink(&outside, disk.work().join(".seekclaw/config.json")).unwrap();
    let handle = disk.serve().await;
    assert_eq!(handle.switch_mode(Mode::Plan).await.unwrap_err().code, ErrorCode::PathDenied);
    assert_eq!(fs::read_to_string(outside).unwrap(), "{}");
    assert_eq!(handle.current().config.agent.mode, "edit");
}

#[tokio::test]
async fn nothing_is_written_while_the_rules_of_a_workspace_cannot_be_read() {
    let disk = Disk::new();
    let own = disk.write_own("{");
    let handle = disk.serve().await;
    let expected = format!("Invalid config: {}: line 1, column 1", own.display());
    assert_eq!(handle.current().own.broken.as_deref(), Some(expected.as_str()));
    assert_eq!(handle.current().mode(), Mode::Readonly);
    fs::remove_file(own).unwrap();
    assert_eq!(handle.fresh().await.mode(), Mode::Edit);
}

#[tokio::test]
async fn opening_a_workspace_moves_the_default_of_all() {
    let disk = Disk::new();
    let handle = disk.serve().await;
    assert_eq!(handle.current().workspace.root, disk.work());
    let other = disk.root.join("other/.git");
    fs::create_dir_all(&other).unwrap();
    handle.open_workspace(other.display().to_string()).await.unwrap();
    assert_eq!(handle.current().workspace.root, disk.root.join("other"));
    let error = handle.open_workspace("nowhere".to_owned()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(handle.find_workspace(".".to_owned()).await.unwrap().root, disk.work());
    assert_eq!(handle.current().workspace.root, disk.root.join("other"));
}

#[tokio::test]
async fn a_turn_is_given_the_rules_of_its_own_workspace() {
    let disk = Disk::new();
    let handle = disk.serve().await;
    disk.write_own(r#"{"mode": "plan"}"#);
    let other = disk.root.join("other");
    fs::create_dir(&other).unwrap();
    let settings = handle.fresh_in(other.clone()).await.unwrap();
    assert_eq!((settings.workspace.root.clone(), settings.mode()), (other, Mode::Edit));
    assert_eq!(handle.fresh_in(disk.work()).await.unwrap().mode(), Mode::Plan);
    let gone = disk.root.join("gone");
    let expected = format!("Workspace directory not found: {}", gone.display());
    assert_eq!(handle.fresh_in(gone).await.unwrap_err().message, expected);
}
