use std::{
    future::{IntoFuture, poll_fn},
    pin::pin,
    task::Poll,
};

/// A moment at which a test drops a future: at one of its awaits, before or after the event for
/// which it waits there.
///
/// A future can be dropped at every await that it has: by `select!`, a timeout, or a client that
/// hangs up. At one await the remains differ before and after the event, so test both.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use lock_core::LockManager;
/// use lock_testing::DropAt;
///
/// # use std::sync::Arc;
/// # use lock_core::memory::MemoryBackend;
/// let locks = LockManager::builder().build(MemoryBackend::default()).unwrap();
/// let section = async || {
///     let guard = locks.acquire("account").await.unwrap();
///     tokio::task::yield_now().await;
///     guard.release().await.unwrap();
/// };
/// for at in [DropAt::waiting, DropAt::woken] {
///     let mut number = 1;
///     while at(number).poll(section()).await.is_none() {
///         number += 1;
///     }
///     assert!(number > 1, "it has an await at which it can be dropped");
///     locks.acquire("account").await.unwrap();
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropAt {
    number: usize,
    is_woken: bool,
}

impl DropAt {
    /// At the await with this number, counted from 1, as soon as the future waits there. The event
    /// for which it waits has not happened yet, or the future does not know of it. With 0 the
    /// future is not even polled.
    #[must_use]
    pub const fn waiting(number: usize) -> Self {
        Self {
            number,
            is_woken: false,
        }
    }

    /// At the await with this number, counted from 1, when the future is woken there. The event for
    /// which it waits has happened, but the future has not seen it yet. With 0 the future is not
    /// even polled.
    #[must_use]
    pub const fn woken(number: usize) -> Self {
        Self {
            number,
            is_woken: true,
        }
    }

    /// Polls a future up to this moment and drops it. Returns its output, if it has ended before.
    ///
    /// # Cancel safety
    /// As the future itself.
    pub async fn poll<F: IntoFuture>(self, future: F) -> Option<F::Output> {
        let mut future = pin!(future.into_future());
        let mut polls = 0;
        poll_fn(|context| {
            if polls == self.number {
                return Poll::Ready(None);
            }
            polls += 1;
            match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if polls == self.number && !self.is_woken => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    /// The await, of two, at which a future was dropped, the number of its events that had happened
    /// by then, and its output.
    fn dropped(at: DropAt) -> (usize, usize, Option<()>) {
        let await_number = Cell::new(0);
        let (first, wait_for_first) = oneshot::channel();
        let (second, wait_for_second) = oneshot::channel();
        let section = async {
            await_number.set(1);
            wait_for_first.await.unwrap();
            await_number.set(2);
            wait_for_second.await.unwrap();
        };
        let mut polled = pin!(at.poll(section));
        let mut events = [first, second].into_iter();
        loop {
            let happened = 2 - events.len();
            if let Some(output) = polled.as_mut().now_or_never() {
                return (await_number.get(), happened, output);
            }
            events.next().unwrap().send(()).unwrap();
        }
    }

    /// Catches: tests of dropped futures that always drop at the same await.
    #[test]
    fn it_is_dropped_at_the_await_that_was_named_before_or_after_what_it_waits_for() {
        assert_eq!(dropped(DropAt::waiting(0)), (0, 0, None));
        assert_eq!(dropped(DropAt::waiting(1)), (1, 0, None));
        assert_eq!(dropped(DropAt::waiting(2)), (2, 1, None));
        assert_eq!(dropped(DropAt::waiting(3)), (2, 2, Some(())));
        assert_eq!(dropped(DropAt::woken(0)), (0, 0, None));
        assert_eq!(dropped(DropAt::woken(1)), (1, 1, None));
        assert_eq!(dropped(DropAt::woken(2)), (2, 2, None));
        assert_eq!(dropped(DropAt::woken(3)), (2, 2, Some(())));
    }
}
