use std::future::Future;

use super::*;

const WAIT: Duration = Duration::from_secs(30);

struct Idle;

impl Actor for Idle {
    type Msg = ();
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        _: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<()>, (): (), (): &mut ()) -> Result<(), ActorProcessingErr> {
        Err("asked to fail".into())
    }
}

async fn holder() -> ActorRef<()> {
    Actor::spawn(None, Idle, ()).await.unwrap().0
}

async fn coordinator() -> (Locks, ActorRef<LocksMsg>) {
    let locks = Locks::new();
    let actor = locks.spawn_linked(holder().await.get_cell()).await.unwrap();
    (locks, actor)
}

fn take(
    locks: &Locks,
    file: &str,
    owner: &str,
    holder: &ActorRef<()>,
) -> impl Future<Output = Result<FileLock, LockRefused>> + Send + 'static {
    let (locks, file, owner, holder) = (locks.clone(), file.into(), owner.to_owned(), holder.get_cell());
    async move { locks.acquire(file, "/ws".into(), owner, holder, WAIT).await }
}

fn waiting(locks: &Locks, file: &str) -> usize {
    locks.waiting(file.as_ref())
}

/// Lets a claim take its place in the queue.
async fn queued(
    locks: &Locks,
    set: &mut tokio::task::JoinSet<String>,
    owner: &'static str,
    by: &ActorRef<()>,
) {
    let before = waiting(locks, "/f");
    let claim = take(locks, "/f", owner, by);
    set.spawn(async move {
        claim.await.map_or_else(
            |e| e.to_string(),
            |lock| {
                drop(lock);
                owner.to_owned()
            },
        )
    });
    while waiting(locks, "/f") == before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn waiters_are_served_in_order_of_arrival() {
    let (locks, _actor) = coordinator().await;
    let me = holder().await;
    let first = take(&locks, "/f", "a", &me).await.unwrap();
    let mut set = tokio::task::JoinSet::new();
    for owner in ["b", "c", "d"] {
        queued(&locks, &mut set, owner, &me).await;
    }
    drop(first);
    let mut order = Vec::new();
    while let Some(owner) = set.join_next().await {
        order.push(owner.unwrap());
    }
    assert_eq!(order, ["b", "c", "d"]);
    assert!(locks.list().is_empty());
    assert!(locks.0.table().holders().is_empty());
}

#[tokio::test]
async fn files_do_not_wait_for_each_other_and_are_listed_in_order() {
    let (locks, _actor) = coordinator().await;
    let me = holder().await;
    let z = take(&locks, "/z", "s1/00000000", &me).await.unwrap();
    let a = take(&locks, "/a", "s2/00000000", &me).await.unwrap();
    let other = locks.acquire("/b".into(), "/aa".into(), "s3/1".into(), me.get_cell(), WAIT).await.unwrap();
    let rows = locks.list();
    let seen: Vec<_> = rows
        .iter()
        .map(|r| (r.workspace.to_str().unwrap(), r.file.to_str().unwrap(), r.owner.as_str()))
        .collect();
    assert_eq!(seen, [("/aa", "/b", "s3/1"), ("/ws", "/a", "s2/00000000"), ("/ws", "/z", "s1/00000000")]);
    assert!(rows.iter().all(|row| row.acquired_at.0 > 0));
    drop((z, a, other));
    assert!(locks.list().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_not_free_in_time_names_its_owner() {
    let (locks, _actor) = coordinator().await;
    let me = holder().await;
    let held = take(&locks, "/f", "s/12345678", &me).await.unwrap();
    let start = tokio::time::Instant::now();
    let refused = take(&locks, "/f", "b", &me).await.unwrap_err();
    assert_eq!(refused, LockRefused::Timeout { owner: Some("s/12345678".to_owned()) });
    assert_eq!(start.elapsed(), WAIT);
    assert_eq!(waiting(&locks, "/f"), 0);
    drop(held);
    assert!(take(&locks, "/f", "b", &me).await.is_ok());
}

#[tokio::test]
async fn a_waiter_that_gave_up_is_passed_over() {
    let (locks, _actor) = coordinator().await;
    let me = holder().await;
    let held = take(&locks, "/f", "a", &me).await.unwrap();
    let mut gone = Box::pin(take(&locks, "/f", "b", &me));
    assert!(futures_util::poll!(&mut gone).is_pending());
    let mut next = Box::pin(take(&locks, "/f", "c", &me));
    assert!(futures_util::poll!(&mut next).is_pending());
    drop(gone);
    assert_eq!(waiting(&locks, "/f"), 1);
    drop(held);
    let held = next.await.unwrap();
    assert_eq!(locks.list()[0].owner, "c");
    // Granted, but given up before it was noticed.
    let mut unlucky = Box::pin(take(&locks, "/f", "d", &me));
    assert!(futures_util::poll!(&mut unlucky).is_pending());
    drop(held);
    assert_eq!(locks.list()[0].owner, "d");
    drop(unlucky);
    assert!(locks.list().is_empty());
}

#[tokio::test]
async fn however_a_holder_ends_the_next_one_gets_the_lock() {
    let (locks, _actor) = coordinator().await;
    let me = holder().await;
    let ends: [fn(&ActorRef<()>); 3] = [|a| a.kill(), |a| a.stop(None), |a| a.cast(()).unwrap()];
    for end in ends {
        let doomed = holder().await;
        let kept = take(&locks, "/f", "doomed", &doomed).await.unwrap();
        let mut next = Box::pin(take(&locks, "/f", "next", &me));
        assert!(futures_util::poll!(&mut next).is_pending());
        end(&doomed);
        let lock = next.await.unwrap();
        assert!(!kept.begin_effect(), "a lost lock allows no effect");
        drop(kept);
        assert_eq!(locks.list()[0].owner, "next", "a late release by another changes nothing");
        drop(lock);
    }
}

#[tokio::test]
async fn a_holder_that_is_dead_already_keeps_nothing() {
    let (locks, _actor) = coordinator().await;
    let (me, dead) = (holder().await, holder().await);
    dead.stop_and_wait(None, None).await.unwrap();
    let kept = take(&locks, "/f", "dead", &dead).await;
    assert!(take(&locks, "/f", "next", &me).await.is_ok());
    drop(kept);
}

#[tokio::test]
async fn a_waiter_whose_actor_ends_is_told_and_removed() {
    let (locks, _actor) = coordinator().await;
    let (me, doomed) = (holder().await, holder().await);
    let held = take(&locks, "/f", "a", &me).await.unwrap();
    let mut waiter = Box::pin(take(&locks, "/f", "b", &doomed));
    assert!(futures_util::poll!(&mut waiter).is_pending());
    doomed.kill();
    assert_eq!(waiter.await.unwrap_err(), LockRefused::HolderGone);
    assert_eq!(waiting(&locks, "/f"), 0);
    drop(held);
}

#[tokio::test]
async fn an_effect_that_has_begun_keeps_the_lock_beyond_its_holder() {
    let (locks, actor) = coordinator().await;
    let (me, doomed) = (holder().await, holder().await);
    let kept = take(&locks, "/f", "doomed", &doomed).await.unwrap();
    assert!(kept.begin_effect());
    let mut next = Box::pin(take(&locks, "/f", "next", &me));
    assert!(futures_util::poll!(&mut next).is_pending());
    doomed.stop_and_wait(None, None).await.unwrap();
    actor.cast(LocksMsg::HolderGone(doomed.get_id())).unwrap();
    actor.drain_and_wait(None).await.unwrap();
    assert!(futures_util::poll!(&mut next).is_pending());
    drop(kept);
    assert!(next.await.is_ok());
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let (locks, _actor) = coordinator().await;
    let me = holder().await;
    let held = take(&locks, "/f", "a", &me).await.unwrap();
    let mut queue: Vec<_> = (0..MAX_WAITERS).map(|_| Box::pin(take(&locks, "/f", "w", &me))).collect();
    for waiter in &mut queue {
        assert!(futures_util::poll!(waiter).is_pending());
    }
    assert_eq!(take(&locks, "/f", "b", &me).await.unwrap_err(), LockRefused::Full);
    queue.pop();
    let mut fits = Box::pin(take(&locks, "/f", "b", &me));
    assert!(futures_util::poll!(&mut fits).is_pending());
    drop(held);
}

#[tokio::test]
async fn a_restart_keeps_held_locks_and_watches_their_holders_again() {
    let (locks, actor) = coordinator().await;
    let (me, doomed) = (holder().await, holder().await);
    let kept = take(&locks, "/f", "doomed", &doomed).await.unwrap();
    actor.kill_and_wait(None).await.unwrap();
    let mut next = Box::pin(take(&locks, "/f", "next", &me));
    assert!(futures_util::poll!(&mut next).is_pending(), "still locked while the actor is down");
    let again = locks.spawn_linked(holder().await.get_cell()).await.unwrap();
    assert_eq!(locks.list()[0].owner, "doomed");
    doomed.kill();
    let lock = next.await.unwrap();
    drop((kept, lock));
    let released_while_down = take(&locks, "/g", "a", &me).await.unwrap();
    again.kill_and_wait(None).await.unwrap();
    drop(released_while_down);
    assert!(locks.list().is_empty());
}
