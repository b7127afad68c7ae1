//! A session is opened and finds turns that its last incarnation left open.

use seekclaw_storage::record::log::{Effect, Intent, Outcome};

use super::*;
use crate::history::Role;
use crate::session::random;
use crate::stage::tool;

/// Kills the tree of sessions and starts another, as the daemon would.
async fn restart(stage: &Stage) {
    let sessions = stage.services.sessions.get().unwrap();
    sessions.kill();
    sessions.wait(None).await.unwrap();
    stage.start_sessions().await;
}

#[tokio::test(start_paused = true)]
async fn resident_turns_go_on_and_prompts_behind_them_follow() {
    let (stage, seat) = seated(slow()).await;
    let seen = stage.watch(&stage.prompt(&seat, "one").await.unwrap());
    let behind = stage.prompt(&seat, "two").await.unwrap();
    stage.steer(&seat, &behind.turn, "mind the gap").await.unwrap();
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    restart(&stage).await;
    stage.settled(&seat).await;
    let history = stage.history(&seat).await;
    let texts: Vec<_> = history.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["one", "slow done", "two", "mind the gap", "slow done"]);
    assert_eq!(stage.ends(&seat).await.len(), 2);
    let recovered = |body: &Body| crate::session::record::event_of(body).is_some_and(is_recovered);
    assert_eq!(stage.log(&seat).await.iter().filter(|entry| recovered(&entry.body)).count(), 1);
}

fn is_recovered(event: Event) -> bool {
    matches!(event, Event::Recovered { .. })
}

#[tokio::test(start_paused = true)]
async fn turns_of_clients_are_closed_and_their_prompts_kept() {
    let (stage, seat) = seated(slow()).await;
    let owner = crate::stage::idle_actor().await;
    let seen = stage.watch(&stage.prompt_of(&seat, "one", Some(owner.clone())).await.unwrap());
    let behind = stage.prompt_of(&seat, "two", Some(owner)).await.unwrap();
    stage.steer(&seat, &behind.turn, "mind the gap").await.unwrap();
    until(&seen, |event| matches!(event, Event::Delta { .. })).await;
    restart(&stage).await;
    stage.settled(&seat).await;
    let history = stage.history(&seat).await;
    let texts: Vec<_> = history.iter().map(|message| message.text.as_str()).collect();
    assert_eq!((texts[0], texts[2], texts[4]), ("one", "two", "mind the gap"));
    assert!(texts[1].starts_with(">>> [Interrupted]") && texts[3].starts_with(">>> [Interrupted]"));
    assert_eq!(history.iter().map(|message| message.role).filter(|role| *role == Role::User).count(), 3);
    let ends = stage.ends(&seat).await;
    assert!(ends.iter().all(|(_, end)| matches!(end, Event::Error { .. })) && ends.len() == 2, "{ends:?}");
    assert_eq!(stage.row(&seat).await.messages, history.len() as u64);
    assert_eq!(stage.script.asks(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_happened_is_uncertain_and_not_repeated() {
    let key = format!("{:x}", random());
    let called = key.clone();
    let script = Script::new(move |ask| match ask.step {
        0 => vec![Act::Call(tool::STUBBORN, serde_json::json!({"key": called}))],
        _ => vec![Act::Say("done")],
    });
    let (stage, seat) = seated(script).await;
    stage.prompt(&seat, "go").await.unwrap();
    while tool::effects(&key) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    restart(&stage).await;
    stage.settled(&seat).await;
    assert_eq!(tool::effects(&key), 1);
    let history = stage.history(&seat).await;
    assert!(history[2].text.contains("uncertain") && !history[2].success);
    assert_eq!(history[3].text, "done");
    let log = stage.log(&seat).await;
    let outcomes = log.iter().filter_map(|entry| match &entry.body {
        Body::Result(result) => Some(result.outcome),
        _ => None,
    });
    assert_eq!(outcomes.collect::<Vec<_>>(), [Outcome::Uncertain]);
    let intents = log.iter().filter(|entry| matches!(&entry.body, Body::Intent(Intent { effect: Effect::Other { what }, .. }) if *what == key));
    assert_eq!(intents.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn numbers_are_never_used_twice_and_generations_rise() {
    let (stage, seat) = seated(Script::saying("done")).await;
    let mut last = 0;
    for generation in 1..=3 {
        let accepted = stage.prompt(&seat, "go").await.unwrap();
        let seen = stage.watch(&accepted);
        until_end(&seen).await;
        stage.settled(&seat).await;
        assert_eq!(accepted.log.generation(), generation);
        assert!(accepted.after >= last);
        last = accepted.log.head();
        assert!(stage.row(&seat).await.seq_reserved > last);
        restart(&stage).await;
    }
    let log = stage.log(&seat).await;
    assert!(log.windows(2).all(|pair| pair[0].seq < pair[1].seq));
}

#[tokio::test(start_paused = true)]
async fn what_was_on_its_way_to_the_store_is_seen_by_the_next_incarnation() {
    let (stage, seat) = seated(Script::saying("done")).await;
    let session = stage.open(&seat).await;
    let (told, hold) = std::sync::mpsc::channel::<()>();
    let mut hold = Some(hold);
    stage.store.delay(move || hold.take());
    let asking = {
        let session = session.clone();
        let prompt = Stage::new_prompt("on its way");
        crate::supervision::attached(async move {
            let answered =
                session.call(|port| SessionMsg::Prompt(Box::new(prompt), port), None).await.unwrap();
            assert!(matches!(answered, ractor::rpc::CallResult::SenderError));
        })
    };
    // The prompt is with the store when the session dies.
    while stage.store.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    session.kill();
    session.wait(None).await.unwrap();
    asking.await.unwrap();
    let key = seat.key.clone();
    let sessions = stage.services.sessions.clone();
    let reopened = crate::supervision::attached(async move {
        sessions
            .ask(|port| crate::sessions::SessionsMsg::Open(key, port), Duration::from_secs(1))
            .await
            .unwrap();
    });
    for _ in 0..100 {
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    drop(told);
    reopened.await.unwrap();
    let until_open = async {
        while stage.history(&seat).await.len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(60), until_open).await;
    assert!(done.is_ok(), "{:#?} {:#?}", stage.log(&seat).await, stage.open_turns(&seat).await);
    stage.settled(&seat).await;
    assert_eq!(said_by_user(&stage.history(&seat).await), ["on its way"]);
    assert_eq!(stage.ends(&seat).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_does_not_exist_says_so() {
    let (stage, mut seat) = seated(Script::saying("done")).await;
    seat.key.id = "unknown".to_owned();
    let refused = stage.prompt_if_open(&seat, "go").await;
    assert!(refused.is_none_or(|error| error.code == ErrorCode::NotFound));
}
