use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::super::files_kit::{Kit, args};
use super::super::{NotRecorded, edit_file, write_file};
use super::*;

async fn edit(ctx: &ToolContext, old: &str, new: &str) -> ToolReport {
    edit_file::run(&args(json!({"path": "f", "old_string": old, "new_string": new})), ctx).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_two_sessions_are_never_lost() {
    let kit = Kit::new().await;
    kit.put("f", "");
    let start = (0..40).fold(String::new(), |text, n| text + &format!("<{n}>\n"));
    kit.put("f", &start);
    let mut set = tokio::task::JoinSet::new();
    for session in 0..4 {
        let ctx = kit.another(&format!("s{session}/00000000")).await;
        set.spawn(async move {
            for n in (session..40).step_by(4) {
                let report = edit(&ctx, &format!("<{n}>"), &format!("[{n}]")).await;
                assert_eq!(report.text, "Edited f");
            }
        });
    }
    while let Some(done) = set.join_next().await {
        done.unwrap();
    }
    let expected = start.replace('<', "[").replace('>', "]");
    assert_eq!(String::from_utf8(kit.get("f")).unwrap(), expected);
    assert_eq!(kit.names(), ["f"]);
    assert!(kit.ctx.locks.list().is_empty());
}

async fn held_by_another(kit: &Kit) -> (FileLock, ToolContext) {
    let other = kit.another("other/12345678").await;
    let reach = kit.ctx.reach.root.clone();
    let lock =
        other.locks.acquire(kit.file("f"), reach, other.owner.clone(), other.holder.clone(), Duration::ZERO);
    (lock.await.unwrap(), other)
}

#[tokio::test]
async fn a_lock_that_is_not_free_in_time_is_told_as_the_contract_says() {
    let mut kit = Kit::new().await;
    kit.put("f", "a");
    kit.ctx.limits.lock_wait = Duration::from_millis(1);
    let (lock, _other) = held_by_another(&kit).await;
    let report = edit(&kit.ctx, "a", "b").await;
    assert_eq!(
        report.text,
        "Write lock timeout: f is being edited by another task (other/12345678). Wait for it to finish, re-read the latest file content, then retry."
    );
    assert_eq!(report.outcome, Outcome::Failed);
    drop(lock);
    assert_eq!(edit(&kit.ctx, "a", "b").await.text, "Edited f");
    assert!(
        lock_timeout("f", None).starts_with("Write lock timeout: f is being edited by another task. Wait")
    );
}

#[tokio::test]
async fn the_end_of_a_holder_lets_the_next_writer_in() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    let (_lock, other) = held_by_another(&kit).await;
    let mut waiting = Box::pin(edit(&kit.ctx, "a", "b"));
    tokio::select! {
        biased;
        report = &mut waiting => panic!("not waited: {}", report.text),
        () = async { while kit.ctx.locks.waiting(&kit.file("f")) == 0 { tokio::task::yield_now().await } } => {}
    }
    other.holder.kill();
    assert_eq!(waiting.await.text, "Edited f");
}

#[tokio::test]
async fn cancel_ends_the_wait_for_a_lock() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    let (_lock, _other) = held_by_another(&kit).await;
    let cancel = async {
        while kit.ctx.locks.waiting(&kit.file("f")) == 0 {
            tokio::task::yield_now().await;
        }
        kit.ctx.cancel.cancel();
    };
    let (report, ()) = tokio::join!(edit(&kit.ctx, "a", "b"), cancel);
    assert_eq!(report.outcome, Outcome::Cancelled);
    assert_eq!(kit.ctx.locks.waiting(&kit.file("f")), 0);
    assert_eq!(kit.get("f"), b"a");
}

#[tokio::test]
async fn the_intent_names_the_file_and_both_contents_and_is_declared_under_the_lock() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    symlink("f", kit.file("link")).unwrap();
    let (locks, file, held) =
        (kit.ctx.locks.clone(), kit.file("f"), Arc::new(std::sync::Mutex::new(Vec::new())));
    let listed = held.clone();
    kit.on_declare(move || {
        *listed.lock().unwrap() = locks.list();
        assert_eq!(std::fs::read(&file).unwrap(), b"a");
        Ok(())
    });
    let call = args(json!({"path": "link", "old_string": "a", "new_string": "b"}));
    let report = edit_file::run(&call, &kit.ctx).await;
    assert_eq!(report.text, "Edited f");
    let path = kit.file("f").to_string_lossy().into_owned();
    assert_eq!(
        *kit.intents.lock().unwrap(),
        [Effect::File { path: path.clone(), before: hash(b"a"), after: hash(b"b") }]
    );
    assert_eq!(report.seen, [Seen { path, hash: hash(b"b") }]);
    assert_eq!(kit.ctx.seen.hash(&kit.file("f")), Some(hash(b"b")), "noted under the lock");
    let held = held.lock().unwrap();
    assert_eq!(
        (held[0].owner.as_str(), &held[0].file, &held[0].workspace),
        ("session/0a1b2c3d", &kit.file("f"), &kit.top.join("ws"))
    );
    assert!(kit.file("link").is_symlink());
}

#[tokio::test]
async fn without_a_durable_intent_nothing_happens() {
    let kit = Kit::new().await;
    kit.on_declare(|| Err(NotRecorded));
    let report = write_file::run(&args(json!({"path": "d/f", "content": "x"})), &kit.ctx).await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.text.contains("not recorded"), "{}", report.text);
    assert!(kit.names().is_empty());
}

#[tokio::test]
async fn a_change_between_intent_and_effect_is_not_overwritten() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    let file = kit.file("f");
    kit.on_declare(move || {
        std::fs::write(&file, "theirs").unwrap();
        Ok(())
    });
    let report = edit(&kit.ctx, "a", "b").await;
    assert_eq!(report.outcome, Outcome::Failed);
    assert!(report.text.contains("changed by somebody else"), "{}", report.text);
    assert_eq!(kit.get("f"), b"theirs");
    assert_eq!(kit.names(), ["f"]);
}

#[tokio::test]
async fn a_link_swapped_in_between_intent_and_effect_redirects_nothing() {
    let kit = Kit::new().await;
    std::fs::create_dir(kit.file("d")).unwrap();
    kit.put("d/f", "a");
    std::fs::write(kit.top.join("outside/f"), "a").unwrap();
    let (dir, outside) = (kit.file("d"), kit.top.join("outside"));
    kit.on_declare(move || {
        std::fs::rename(&dir, dir.with_extension("old")).unwrap();
        symlink(&outside, &dir).unwrap();
        Ok(())
    });
    let call = args(json!({"path": "d/f", "old_string": "a", "new_string": "b"}));
    let report = edit_file::run(&call, &kit.ctx).await;
    assert!(report.text.contains("moved or replaced"), "{}", report.text);
    assert_eq!(std::fs::read(kit.top.join("outside/f")).unwrap(), b"a");
    assert_eq!(kit.get("d.old/f"), b"a");
    assert_eq!(std::fs::read_dir(kit.top.join("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_swapped_for_a_link_is_not_followed() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    let secret = kit.top.join("outside/secret");
    std::fs::write(&secret, "a").unwrap();
    let (file, target) = (kit.file("f"), secret.clone());
    kit.on_declare(move || {
        std::fs::remove_file(&file).unwrap();
        symlink(&target, &file).unwrap();
        Ok(())
    });
    assert_eq!(edit(&kit.ctx, "a", "b").await.outcome, Outcome::Failed);
    assert_eq!(std::fs::read(secret).unwrap(), b"a");
}

#[tokio::test]
async fn a_turn_that_ended_before_the_effect_has_none() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    let (holder, locks) = (kit.ctx.holder.clone(), kit.ctx.locks.clone());
    let mut ctx = kit.ctx.clone();
    ctx.declare = Arc::new(move |_| {
        let (holder, locks) = (holder.clone(), locks.clone());
        Box::pin(async move {
            holder.kill();
            while !locks.list().is_empty() {
                tokio::task::yield_now().await;
            }
            Ok(())
        })
    });
    assert_eq!(edit(&ctx, "a", "b").await.outcome, Outcome::Cancelled);
    assert_eq!(kit.get("f"), b"a");
}

#[tokio::test]
async fn the_mode_is_kept_and_a_new_file_gets_the_usual_one() {
    let kit = Kit::new().await;
    let mode = |name: &str| std::fs::metadata(kit.file(name)).unwrap().permissions().mode() & 0o7777;
    kit.put("f", "a");
    for kept in [0o755, 0o640, 0o600] {
        std::fs::set_permissions(kit.file("f"), std::fs::Permissions::from_mode(kept)).unwrap();
        kit.put("f", "a");
        assert_eq!(edit(&kit.ctx, "a", "b").await.text, "Edited f");
        assert_eq!(mode("f"), kept);
    }
    kit.put("usual", "");
    write_file::run(&args(json!({"path": "new", "content": "x"})), &kit.ctx).await;
    assert_eq!(mode("new"), mode("usual"));
}

#[tokio::test]
async fn a_read_only_file_is_not_replaced() {
    if rustix::process::geteuid().is_root() {
        return; // Root may write everything.
    }
    let kit = Kit::new().await;
    kit.put("f", "a");
    std::fs::set_permissions(kit.file("f"), std::fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(edit(&kit.ctx, "a", "b").await.text, "Nothing was changed in f: it is read-only");
    assert_eq!(kit.names(), ["f"]);
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused() {
    let kit = Kit::new().await;
    std::fs::File::create(kit.file("f")).unwrap().set_len(MAX_EDITED_BYTES + 1).unwrap();
    assert_eq!(edit(&kit.ctx, "a", "b").await.text, "Cannot edit f: it is larger than 32 MiB");
}

#[tokio::test]
async fn cancel_ends_the_wait_for_a_record_without_an_effect() {
    let kit = Kit::new().await;
    kit.put("f", "a");
    let cancel = kit.ctx.cancel.clone();
    let mut ctx = kit.ctx.clone();
    ctx.declare = Arc::new(move |_| {
        cancel.cancel();
        Box::pin(std::future::pending())
    });
    assert_eq!(edit(&ctx, "a", "b").await.outcome, Outcome::Cancelled);
    assert_eq!(kit.get("f"), b"a");
    assert!(kit.ctx.locks.list().is_empty());
}
