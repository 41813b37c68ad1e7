use std::{fmt, sync::Mutex};

use futures_util::{
    FutureExt,
    future::{Shared, WeakShared},
};
use lock_core::{BoxFuture, support::lock};

/// Work that is done once for all callers that wait for it: a shared future. Any waiter that is
/// polled drives it. If all of them go away, it is given up.
///
/// A lock that is held across the work would not do: a waiter that is kept and not polled would
/// hold it, and all others would wait for it.
pub(super) struct SingleFlight<T: Clone>(Mutex<Option<InFlight<T>>>);

type InFlight<T> = WeakShared<BoxFuture<'static, T>>;

impl<T: Clone> SingleFlight<T> {
    /// The work that is under way, or else new work.
    pub(super) fn join(
        &self,
        begin: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Shared<BoxFuture<'static, T>> {
        // Nothing is polled under it.
        let mut in_flight = lock(&self.0);
        let present = in_flight.as_ref().and_then(WeakShared::upgrade);
        if let Some(present) = present.filter(|present| present.peek().is_none()) {
            return present;
        }
        let begun = begin().shared();
        *in_flight = begun.downgrade();
        begun
    }
}

impl<T: Clone> Default for SingleFlight<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> fmt::Debug for SingleFlight<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn any_waiter_drives_the_work_and_it_is_done_once() {
        let (flight, begun, go) = (
            SingleFlight::default(),
            AtomicU32::new(0),
            Arc::new(Notify::new()),
        );
        let work = || {
            let go = Arc::clone(&go);
            flight.join(|| {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                Box::pin(async move {
                    go.notified().await;
                    number
                })
            })
        };
        let mut kept = work();
        assert_eq!((&mut kept).now_or_never(), None, "it is under way");
        go.notify_one();
        assert_eq!(work().await, 0, "driven by another waiter");
        assert_eq!(kept.await, 0);
        // What is done, or wanted by nobody any more, is begun anew.
        assert_eq!(work().now_or_never(), None);
        go.notify_one();
        assert_eq!(work().await, 2);
    }
}
