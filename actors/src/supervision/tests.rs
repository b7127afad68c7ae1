use std::sync::atomic::{AtomicBool, Ordering};

use ractor::{Actor, ActorProcessingErr, ActorStatus, SupervisionEvent};

use super::*;

const MS: Duration = Duration::from_millis(1);

fn restart(ms: u32, attempt: u32) -> Verdict {
    Verdict::Restart { delay: ms * MS, attempt }
}

#[test]
fn three_restarts_wait_longer_each_time_and_the_fourth_failure_gives_up() {
    let mut backoff = Backoff::default();
    let verdicts: Vec<_> = (0..5).map(|_| backoff.failed(Duration::ZERO)).collect();
    let gone = Verdict::GiveUp;
    assert_eq!(verdicts, [restart(250, 1), restart(1000, 2), restart(5000, 3), gone, gone]);
}

#[test]
fn a_minute_of_health_or_progress_starts_afresh() {
    let mut backoff = Backoff::default();
    backoff.failed(Duration::ZERO);
    backoff.failed(Duration::ZERO);
    assert_eq!(backoff.failed(HEALTHY_AFTER - MS), restart(5000, 3));
    assert_eq!(backoff.failed(HEALTHY_AFTER), restart(250, 1));
    assert_eq!(backoff.failed(Duration::ZERO), restart(1000, 2));
    backoff.progressed();
    assert_eq!(backoff.failed(Duration::ZERO), restart(250, 1));
}

/// Sets its flag when it is dropped.
struct Witness(Arc<AtomicBool>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

async fn endless(witness: Witness) {
    std::future::pending::<()>().await;
    drop(witness);
}

#[tokio::test]
async fn tasks_end_with_their_owner() {
    let dropped = Arc::new(AtomicBool::new(false));
    let mut tasks = Tasks::default();
    tasks.spawn(endless(Witness(Arc::clone(&dropped))));
    tokio::task::yield_now().await;
    assert_eq!((tasks.len(), dropped.load(Ordering::SeqCst)), (1, false));
    tasks.shutdown().await;
    assert!(tasks.is_empty() && dropped.load(Ordering::SeqCst));

    let dropped = Arc::new(AtomicBool::new(false));
    tasks.spawn(endless(Witness(Arc::clone(&dropped))));
    drop(tasks);
    tokio::task::yield_now().await;
    assert!(dropped.load(Ordering::SeqCst));
}

#[tokio::test]
async fn tasks_that_have_ended_are_forgotten() {
    let mut tasks = Tasks::default();
    for _ in 0..100 {
        tasks.spawn(async {});
        tokio::task::yield_now().await;
    }
    assert!(tasks.len() <= 1, "{}", tasks.len());
}

/// Answers what it is asked; hangs at its end if it is told to.
struct Echo;

enum EchoMsg {
    Say(RpcReplyPort<u32>),
    Keep(RpcReplyPort<u32>),
    HangAtTheEnd,
}

impl Actor for Echo {
    type Msg = EchoMsg;
    type State = (bool, Vec<RpcReplyPort<u32>>);
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<EchoMsg>, (): ()) -> Result<Self::State, ActorProcessingErr> {
        Ok((false, Vec::new()))
    }

    async fn handle(
        &self,
        _: ActorRef<EchoMsg>,
        message: EchoMsg,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            EchoMsg::Say(reply) => answer(reply, 7),
            EchoMsg::Keep(reply) => state.1.push(reply),
            EchoMsg::HangAtTheEnd => state.0 = true,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<EchoMsg>,
        _: SupervisionEvent,
        _: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<EchoMsg>,
        state: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if state.0 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

async fn echo() -> ActorRef<EchoMsg> {
    Actor::spawn(None, Echo, ()).await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_slot_asks_whoever_serves_and_never_waits_for_ever() {
    let slot = Slot::default();
    assert_eq!(slot.ask(EchoMsg::Say, 100 * MS).await, None, "nobody serves");
    assert!(matches!(slot.send(EchoMsg::HangAtTheEnd), Err(EchoMsg::HangAtTheEnd)), "given back");
    let first = echo().await;
    slot.point(Some(first.clone()));
    assert_eq!(slot.clone().ask(EchoMsg::Say, 100 * MS).await, Some(7));
    assert_eq!(slot.ask(EchoMsg::Keep, 100 * MS).await, None, "no answer in time");
    first.stop(None);
    first.wait(None).await.unwrap();
    assert_eq!(slot.ask(EchoMsg::Say, 100 * MS).await, None, "it has ended");
    assert!(slot.send(EchoMsg::HangAtTheEnd).is_err());
    slot.point(Some(echo().await));
    assert_eq!(slot.ask(EchoMsg::Say, 100 * MS).await, Some(7), "the next one serves");
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_does_not_stop_in_time_is_killed_and_the_others_are_not_kept_waiting() {
    let (hanging, willing) = (echo().await, echo().await);
    tell(&hanging, EchoMsg::HangAtTheEnd);
    assert_eq!(hanging.call(EchoMsg::Say, None).await.unwrap().unwrap(), 7);
    let began = tokio::time::Instant::now();
    stop_in_order(vec![hanging.get_cell(), willing.get_cell()], "test", 100 * MS).await;
    assert!(began.elapsed() < 200 * MS);
    hanging.wait(Some(100 * MS)).await.unwrap();
    assert_eq!((hanging.get_status(), willing.get_status()), (ActorStatus::Stopped, ActorStatus::Stopped));
}
