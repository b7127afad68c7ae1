//! Work that blocks, off the runtime. A panic in it goes on in the call, which turns it into a result.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// How long cancelled work may take to notice; one that hangs in the kernel is left behind.
const NOTICE_GRACE: Duration = Duration::from_secs(1);
/// Least number of searches at the same time, so that a long one does not stop all others.
const MIN_SEARCHES: usize = 2;

/// Searches of all sessions share the cores, but for one that stays free for everything else.
static SEARCHES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Arc::new(Semaphore::new(MIN_SEARCHES.max(cores - 1)))
});

/// Runs short work.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| go_on(error))
}

/// Runs work that looks at the token it gets and ends when that is cancelled: by `cancel`, or because the
/// call was dropped. `None` if it was cancelled.
pub(crate) async fn stoppable<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Option<T> {
    let stop = cancel.child_token();
    let ends_with_the_call = stop.clone().drop_guard();
    let mut work = tokio::task::spawn_blocking(move || work(&stop));
    let done = tokio::select! {
        done = &mut work => Some(done),
        () = cancel.cancelled() => tokio::time::timeout(NOTICE_GRACE, work).await.ok(),
    };
    drop(ends_with_the_call);
    let done = done?.unwrap_or_else(|error| go_on(error));
    (!cancel.is_cancelled()).then_some(done)
}

/// As [`stoppable`], for long searches: not too many of them run at the same time.
pub(crate) async fn search<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) -> Option<T> {
    let permit = tokio::select! {
        permit = SEARCHES.clone().acquire_owned() => permit.ok(),
        () = cancel.cancelled() => return None,
    };
    let search = move |stop: &CancellationToken| {
        let found = work(stop);
        drop(permit);
        found
    };
    stoppable(cancel, search).await
}

fn go_on<T>(error: JoinError) -> T {
    let reason = error.try_into_panic().unwrap_or_else(|_| Box::new("the daemon is shutting down"));
    std::panic::resume_unwind(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cancelled_search_has_no_result() {
        let cancel = CancellationToken::new();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let from_outside = cancel.clone();
        let search = search(&cancel, move |stop| {
            started.send(()).unwrap();
            while !stop.is_cancelled() {
                std::thread::yield_now();
            }
        });
        let (found, ()) = tokio::join!(search, async {
            has_started.await.unwrap();
            from_outside.cancel();
        });
        assert_eq!(found, None);
    }

    #[tokio::test]
    async fn a_dropped_call_stops_its_search() {
        let (started, has_started) = tokio::sync::oneshot::channel();
        let (stopped, has_stopped) = tokio::sync::oneshot::channel();
        let cancel = CancellationToken::new();
        let mut call = Box::pin(search(&cancel, move |stop| {
            started.send(()).unwrap();
            while !stop.is_cancelled() {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
        }));
        tokio::select! {
            _ = &mut call => panic!("ended by itself"),
            started = has_started => started.unwrap(),
        }
        drop(call);
        has_stopped.await.unwrap();
    }
}
