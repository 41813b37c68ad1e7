use std::{
    pin::Pin,
    task::{Context, Poll},
};

use lock_core::BoxFuture;
use tokio::runtime::Handle;
use tracing::Instrument;

/// Runs work to its end, even if the caller's future is dropped half way: then a task finishes it.
///
/// In sqlx 0.9.0 a `begin` whose future is dropped (a timeout, `select!`, a client that hung up)
/// forgets the transaction it has opened: the connection goes back to the pool inside it, and the
/// writes of its next user are silently rolled back later. Here the `begin` runs to its end; a
/// transaction that nobody waits for any more is then dropped properly. The same goes for a claim
/// that opens a transaction. (In SQLite a `begin` that is dropped is undone, by sqlx as by us.) A
/// commit has more than one step; half of it would leave sqlx counting on a transaction that is
/// over.
///
/// The caller's own task does the work unless it drops it, because a task for each call has a price
/// (decision 23). Needs a Tokio runtime from the start.
pub(crate) fn uninterrupted<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send + Unpin {
    Uninterrupted {
        unfinished: Some(Box::pin(work.in_current_span())),
        is_begun: false,
        runtime: Handle::current(),
    }
}

struct Uninterrupted<T: Send + 'static> {
    /// `None` if it has ended or panicked.
    unfinished: Option<BoxFuture<'static, T>>,
    is_begun: bool,
    runtime: Handle,
}

impl<T: Send + 'static> Future for Uninterrupted<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.is_begun = true;
        let work = self.unfinished.take();
        let mut work = work.expect("a future is not polled again after it was ready");
        let polled = work.as_mut().poll(context);
        if polled.is_pending() {
            self.unfinished = Some(work);
        }
        polled
    }
}

/// Work that was never polled is not begun, so there is nothing to finish.
///
/// A task is spawned here although a drop should not do that. The runtime is known, so the drop
/// cannot panic. The task ends by itself, bounded by the timeouts of pool and database, and is lost
/// with the runtime, as it would have been if it had been a task from the start.
impl<T: Send + 'static> Drop for Uninterrupted<T> {
    fn drop(&mut self) {
        if let Some(work) = self.unfinished.take().filter(|_| self.is_begun) {
            drop(self.runtime.spawn(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// Work that waits for a word, and says when it is done.
    fn work() -> (
        impl Future<Output = ()> + Unpin,
        oneshot::Sender<()>,
        oneshot::Receiver<()>,
    ) {
        let (go_on, wait) = oneshot::channel();
        let (done, end) = oneshot::channel();
        let work = uninterrupted(async move {
            wait.await.unwrap();
            done.send(()).unwrap();
        });
        (work, go_on, end)
    }

    #[tokio::test]
    async fn what_is_dropped_half_way_comes_to_its_end() {
        let (mut work, go_on, end) = work();
        assert!(Pin::new(&mut work).now_or_never().is_none());
        drop(work);
        go_on.send(()).unwrap();
        end.await.unwrap();
    }

    #[tokio::test]
    async fn what_was_not_begun_is_not_done() {
        let (work, go_on, end) = work();
        drop(work);
        assert!(go_on.is_closed());
        end.await.unwrap_err();
    }

    /// Where a drop happens is not where the work was begun.
    #[test]
    fn it_goes_on_where_it_began_though_it_is_dropped_elsewhere() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (mut work, go_on, end) = {
            let _inside = runtime.enter();
            work()
        };
        assert!(Pin::new(&mut work).now_or_never().is_none());
        drop(work);
        go_on.send(()).unwrap();
        runtime.block_on(end).unwrap();
    }
}
