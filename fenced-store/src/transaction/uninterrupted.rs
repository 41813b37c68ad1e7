use std::future::poll_fn;

use lock_core::backend::BoxFuture;
use tokio::runtime::Handle;
use tracing::Instrument;

/// Runs work to its end, even if the caller's future is dropped half way: then a task finishes it.
///
/// In sqlx 0.9.0 a `begin` whose future is dropped (a timeout, `select!`, a client that hung up)
/// forgets the transaction it has opened: the connection goes back to the pool inside it, and the
/// writes of its next user are silently rolled back later. Here the `begin` runs to its end; a
/// transaction that nobody waits for any more is then dropped properly. The same goes for a claim
/// that opens a transaction. A commit has more than one step; half of it would leave sqlx counting
/// on a transaction that is over.
///
/// The caller's own task does the work unless it drops it, because a task for each call has a price
/// (decision 23). Work that was never polled is not begun.
pub(crate) async fn uninterrupted<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut unfinished = Unfinished {
        work: Some(Box::pin(work.in_current_span())),
        runtime: Handle::current(),
    };
    poll_fn(|context| {
        let work = unfinished.work.take();
        let mut work = work.expect("a future is not polled again after it was ready");
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            unfinished.work = Some(work);
        }
        polled
    })
    .await
}

struct Unfinished<T: Send + 'static> {
    /// `None` if it has ended or panicked.
    work: Option<BoxFuture<'static, T>>,
    runtime: Handle,
}

/// A task is spawned here although a drop should not do that. The runtime is known, so the drop
/// cannot panic. The task ends by itself, bounded by the timeouts of pool and database, and is lost
/// with the runtime, as it would have been if it had been a task from the start.
impl<T: Send + 'static> Drop for Unfinished<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let _inside = self.runtime.enter();
            drop(self.runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, future::BoxFuture};
    use tokio::sync::oneshot;

    use super::*;

    /// Work that waits for a word, and says when it is done.
    fn work() -> (
        BoxFuture<'static, ()>,
        oneshot::Sender<()>,
        oneshot::Receiver<()>,
    ) {
        let (go_on, wait) = oneshot::channel();
        let (done, end) = oneshot::channel();
        let work = uninterrupted(async move {
            wait.await.unwrap();
            done.send(()).unwrap();
        });
        (work.boxed(), go_on, end)
    }

    /// Catches: work that is left half done when its caller goes away.
    #[tokio::test]
    async fn what_is_dropped_half_way_comes_to_its_end() {
        let (mut work, go_on, end) = work();
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        go_on.send(()).unwrap();
        end.await.unwrap();
    }

    /// Catches: work that a drop begins.
    #[tokio::test]
    async fn what_was_not_begun_is_not_done() {
        let (work, go_on, end) = work();
        drop(work);
        assert!(go_on.is_closed());
        end.await.unwrap_err();
    }

    /// Where a drop happens is not where the work was begun.
    /// Catches: a task that is spawned on the runtime of the drop.
    #[test]
    fn it_goes_on_where_it_began_though_it_is_dropped_elsewhere() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (mut work, go_on, end) = work();
        {
            let _inside = runtime.enter();
            assert!((&mut work).now_or_never().is_none());
        }
        drop(work);
        go_on.send(()).unwrap();
        runtime.block_on(end).unwrap();
    }
}
