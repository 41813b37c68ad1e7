//! Work that is done once for all who wait for it.

use std::{fmt, sync::Mutex};

use futures_util::{
    FutureExt,
    future::{Shared, WeakShared},
};

use crate::{BoxFuture, support::lock};

/// Work that may be under way, and that whoever of those who wait for it is polled drives on.
///
/// A lock that is held across the work would not do: a future that is kept and not polled would
/// hold it, and everybody else would wait for its owner. If all who wait go away, the work is given
/// up.
pub struct Joint<T: Clone>(Mutex<Option<Doing<T>>>);

type Doing<T> = WeakShared<BoxFuture<'static, T>>;

impl<T: Clone> Joint<T> {
    /// The work that is under way, or else new work.
    pub fn join(
        &self,
        begin: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Shared<BoxFuture<'static, T>> {
        // Nothing is polled under it.
        let mut doing = lock(&self.0);
        let present = doing.as_ref().and_then(WeakShared::upgrade);
        if let Some(present) = present.filter(|present| present.peek().is_none()) {
            return present;
        }
        let begun = begin().shared();
        *doing = begun.downgrade();
        begun
    }
}

impl<T: Clone> Default for Joint<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> fmt::Debug for Joint<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joint").finish_non_exhaustive()
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
    async fn whoever_is_polled_drives_the_work_and_it_is_done_once() {
        let (joint, begun, go) = (Joint::default(), AtomicU32::new(0), Arc::new(Notify::new()));
        let work = || {
            let go = Arc::clone(&go);
            joint.join(|| {
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
        assert_eq!(work().await, 0, "driven on by somebody else");
        assert_eq!(kept.await, 0);
        // What is done, or wanted by nobody any more, is begun anew.
        assert_eq!(work().now_or_never(), None);
        go.notify_one();
        assert_eq!(work().await, 2);
    }
}
