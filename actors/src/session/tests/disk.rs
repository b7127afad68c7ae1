//! Commits fail: what was not stored was not accepted, what was shown gets stored, and the session goes on.

use seekclaw_storage::store::Write;

use super::*;
use crate::stage::store::full;

#[tokio::test(start_paused = true)]
async fn a_prompt_that_cannot_be_stored_is_refused_and_leaves_no_trace() {
    let (stage, seat) = seated(Script::saying("done")).await;
    stage.open(&seat).await;
    stage.store.fill();
    let refused = stage.prompt(&seat, "lost").await.err().unwrap();
    assert_eq!(refused.code, ErrorCode::StorageFull);
    assert!(stage.turns(&seat).await.is_empty());
    stage.store.free();
    let seen = stage.watch(&stage.prompt(&seat, "kept").await.unwrap());
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["kept"]);
    let row = stage.row(&seat).await;
    assert_eq!((row.title.as_str(), row.messages), ("kept", 2));
    assert!(!format!("{:?}", stage.log(&seat).await).contains("lost"));
}

#[tokio::test(start_paused = true)]
async fn a_queued_prompt_that_cannot_be_stored_leaves_no_trace_either() {
    let (stage, seat) = seated(slow()).await;
    let seen = stage.watch(&stage.prompt(&seat, "first").await.unwrap());
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    stage.store.fill();
    assert_eq!(stage.prompt(&seat, "lost").await.err().unwrap().code, ErrorCode::StorageFull);
    stage.store.free();
    assert_eq!(until_end(&seen).await, Event::Done { text: "slow done".to_owned() });
    stage.settled(&seat).await;
    let log = format!("{:?}", stage.log(&seat).await);
    assert!(!log.contains("lost") && !log.contains("Queued"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_in_progress_ends_with_one_error_and_the_session_goes_on_when_there_is_space() {
    let (stage, seat) = seated(slow()).await;
    let accepted = stage.prompt(&seat, "one").await.unwrap();
    let seen = stage.watch(&accepted);
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    stage.store.fill();
    let end = until_end(&seen).await;
    assert!(matches!(&end, Event::Error { code: ErrorCode::StorageFull, .. }), "{end:?}");
    assert_eq!(seen.lock().unwrap().iter().filter(|(_, event)| event.is_terminal()).count(), 1);
    assert_eq!(stage.open_turns(&seat).await.len(), 1, "nothing of the end is stored yet");
    stage.store.free();
    // Nobody does anything, and yet the end gets stored.
    stage.settled(&seat).await;
    let ends = stage.ends(&seat).await;
    assert_eq!(ends, [(accepted.turn.to_string(), end)]);
    let next = stage.watch(&stage.prompt(&seat, "two").await.unwrap());
    assert_eq!(until_end(&next).await, Event::Done { text: "slow done".to_owned() });
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["one", "two"]);
    assert_eq!(stage.row(&seat).await.messages, stage.history(&seat).await.len() as u64);
}

#[tokio::test(start_paused = true)]
async fn a_first_start_that_fails_once_does_not_lose_the_prompt() {
    let (stage, seat) = seated(Script::saying("done")).await;
    stage.open(&seat).await;
    let mut failures = 1;
    stage.store.judge(move |writes| {
        let starts = format!("{writes:?}").contains("Started(");
        (starts && std::mem::take(&mut failures) > 0).then(full)
    });
    let seen = stage.watch(&stage.prompt(&seat, "go").await.unwrap());
    assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() });
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["go"]);
    assert_eq!(stage.row(&seat).await.messages, 2);
    let starts =
        |event: &Event| matches!(event, Event::Workflow { step: 0, label, .. } if label == "开始任务");
    assert_eq!(seen.lock().unwrap().iter().filter(|(_, event)| starts(event)).count(), 1);
}

/// Every single commit of a turn fails once: the turn comes to the same end all the same.
#[tokio::test(start_paused = true)]
async fn any_commit_may_fail_once() {
    let script = || {
        Script::new(|ask| match ask.step {
            0 => vec![Act::Say("First."), Act::Call("edit_file", edit())],
            _ => vec![Act::Say("done")],
        })
    };
    let mut failed = 0;
    for which in 1.. {
        let (stage, seat) = seated(script()).await;
        stage.put_file("a.txt", "start\nEND\n");
        stage.open(&seat).await;
        let mut left = which;
        let over = Arc::new(std::sync::Mutex::new(false));
        let happened = Arc::clone(&over);
        stage.store.judge(move |_| {
            left -= 1;
            *happened.lock().unwrap() |= left == 0;
            (left == 0).then(full)
        });
        match stage.prompt(&seat, "go").await {
            Ok(accepted) => {
                let seen = stage.watch(&accepted);
                assert_eq!(until_end(&seen).await, Event::Done { text: "done".to_owned() }, "{which}");
            }
            Err(refused) => assert_eq!((which, refused.code), (1, ErrorCode::StorageFull)),
        }
        stage.settled(&seat).await;
        if !*over.lock().unwrap() {
            break;
        }
        failed += 1;
        if which == 1 {
            continue;
        }
        let history = stage.history(&seat).await;
        let texts: Vec<_> = history.iter().map(|message| message.text.as_str()).collect();
        let uncertain = texts[2].contains("uncertain");
        assert_eq!([texts[0], texts[1], texts[3]], ["go", "First.", "done"], "{which}");
        assert!(uncertain || texts[2] == "Edited a.txt", "{which}: {texts:?}");
        assert_eq!(stage.file("a.txt"), "start\nline\nEND\n", "{which}: once");
        assert_eq!(stage.row(&seat).await.messages, 4, "{which}");
        assert_eq!(stage.ends(&seat).await.len(), 1, "{which}");
    }
    assert!(failed >= 6, "{failed}");
}

fn edit() -> serde_json::Value {
    serde_json::json!({"path": "a.txt", "old_string": "END", "new_string": "line\nEND"})
}

#[tokio::test(start_paused = true)]
async fn a_change_that_cannot_be_stored_is_undone_and_undoes_no_other() {
    let (stage, seat) = seated(Script::saying("done")).await;
    let archived = Change { archived: Some(true), ..Change::default() };
    let session = stage.open(&seat).await;
    // The first commit holds the title alone; what comes meanwhile shares the next one.
    let mut first = true;
    stage.store.judge(move |_| std::mem::take(&mut first).then(full));
    let (title, archive) = tokio::join!(
        session.call(|port| SessionMsg::Change(titled("lost"), port), None),
        session.call(|port| SessionMsg::Change(archived, port), None),
    );
    let (title, archive) = (title.unwrap().unwrap(), archive.unwrap().unwrap());
    assert_eq!(title.unwrap_err().code, ErrorCode::StorageFull);
    let row = archive.unwrap();
    assert_eq!((row.title.as_str(), row.archived), ("", true));
    let row = stage.row(&seat).await;
    assert_eq!((row.title.as_str(), row.archived), ("", true));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_prompt_whose_end_cannot_be_stored_ends_all_the_same() {
    let (stage, seat) = seated(slow()).await;
    let first = stage.watch(&stage.prompt(&seat, "one").await.unwrap());
    let accepted = stage.prompt(&seat, "two").await.unwrap();
    let seen = stage.watch(&accepted);
    until(&first, |event| matches!(event, Event::Delta { .. })).await;
    stage
        .store
        .judge(|writes| writes.iter().any(|write| matches!(write, Write::RemoveTurn { .. })).then(full));
    assert!(stage.cancel(&seat, &accepted.turn).await);
    assert_eq!(until_end(&seen).await, Event::Cancelled { text: String::new() });
    stage.store.free();
    until_end(&first).await;
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["one"]);
    assert_eq!(stage.ends(&seat).await.len(), 2);
}
