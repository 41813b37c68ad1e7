use std::future::poll_fn;

use lock_core::backend::{BoxFuture, support::Tasks};
use tracing::Instrument;

/// Runs work to its end. If the caller's future is dropped half way, a task finishes the work.
///
/// In sqlx 0.9.0 a `begin` whose future is dropped (a timeout, `select!`, a client that hung up)
/// forgets the transaction that it has opened. The connection goes back to the pool inside that
/// transaction, and the writes of its next user are silently rolled back later. Here the `begin`
/// runs to its end, and the drop of its result rolls the transaction back. The same is true of a
/// claim that opens a transaction. A commit has more than one step: after some of its steps sqlx
/// would still count a transaction that is over.
///
/// The caller's own task does the work as long as it polls the future, because a task for each call
/// costs time (decision 23). Work that was never polled is not begun.
pub(crate) async fn uninterrupted<T: Send + 'static>(
    tasks: Tasks,
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    let mut unfinished = Unfinished {
        work: Some(Box::pin(work.in_current_span())),
        tasks,
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
    /// `None` after the work has ended or panicked.
    work: Option<BoxFuture<'static, T>>,
    tasks: Tasks,
}

/// Spawns a task, although a drop should not do that. The spawn names its runtime, so the drop
/// cannot panic. The task ends by itself, within the timeouts of pool and database. The end of the
/// runtime ends the task, too, as it would end a task that was spawned at the start.
impl<T: Send + 'static> Drop for Unfinished<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.tasks.spawn(async { drop(work.await) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::{FutureExt, future::BoxFuture};
    use lock_core::backend::TokioRuntime;
    use tokio::sync::oneshot;

    use super::*;

    /// Work that waits for a message, and sends one when it is done.
    fn work() -> (
        BoxFuture<'static, ()>,
        oneshot::Sender<()>,
        oneshot::Receiver<()>,
    ) {
        let (go_on, wait) = oneshot::channel();
        let (done, end) = oneshot::channel();
        let work = async move {
            let tasks = Tasks::here(Arc::new(TokioRuntime));
            let work = async {
                wait.await.unwrap();
                done.send(()).unwrap();
            };
            uninterrupted(tasks, work).await;
        };
        (work.boxed(), go_on, end)
    }

    /// Catches: work that is left half done when its caller goes away.
    #[tokio::test]
    async fn a_future_that_is_dropped_half_way_comes_to_its_end() {
        let (mut work, go_on, end) = work();
        assert!((&mut work).now_or_never().is_none());
        drop(work);
        go_on.send(()).unwrap();
        end.await.unwrap();
    }

    /// Catches: work that a drop begins.
    #[tokio::test]
    async fn a_future_that_was_not_begun_is_not_done() {
        let (work, go_on, end) = work();
        drop(work);
        assert!(go_on.is_closed());
        end.await.unwrap_err();
    }

    /// The drop happens outside of the runtime on which the work began.
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
