use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{BoxFuture, Clock, Moment};

/// A clock that moves only when it is told to. Clones are the same clock.
///
/// # Examples
/// ```
/// use lock_core::{Clock, test_util::ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let start = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().since(start), Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: Arc<watch::Sender<Moment>>,
}

/// Where the wall clock of a new [`ManualClock`] stands: some second of 2026.
const UNIX_START: Duration = Duration::from_secs(1_790_000_000);

impl ManualClock {
    /// A clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: Arc::new(watch::Sender::new(Moment::default())),
        }
    }

    /// Moves the clock forward and wakes whoever sleeps until then.
    pub fn advance(&self, by: Duration) {
        self.now.send_modify(|now| *now = *now + by);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.now.borrow()
    }

    fn unix_time(&self) -> Duration {
        UNIX_START + self.now().since_origin()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        let mut now = self.now.subscribe();
        Box::pin(async move {
            // The sender is `self`, which outlives this future, so it cannot be closed.
            drop(now.wait_for(|now| *now >= moment).await);
        })
    }
}
