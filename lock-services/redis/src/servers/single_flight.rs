use std::{fmt, sync::Mutex};

use futures_util::{
    FutureExt,
    future::{Shared, WeakShared},
};
use lock_core::backend::{BoxFuture, support::lock};

/// Work that is done once for all callers that wait for it: a shared future. Any waiter that is
/// polled drives the work. If all waiters go away, the work is given up.
///
/// A lock that is held across the work would not be enough: a waiter that is kept and not polled
/// would hold the lock, and all others would wait for it.
pub(super) struct SingleFlight<T: Clone>(Mutex<Option<InFlight<T>>>);

type InFlight<T> = WeakShared<BoxFuture<'static, T>>;

impl<T: Clone> SingleFlight<T> {
    /// The work that is under way, or else new work.
    pub(super) fn join(
        &self,
        begin: impl FnOnce() -> BoxFuture<'static, T>,
    ) -> Shared<BoxFuture<'static, T>> {
        // No future is polled under this lock.
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
