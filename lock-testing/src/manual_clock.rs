use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::sync::watch;

use lock_core::backend::{BoxFuture, Clock, Moment, support::lock};

/// A clock that moves only when the test advances it. Clones are the same clock.
///
/// # Examples
/// ```
/// use lock_core::backend::Clock;
/// use lock_testing::ManualClock;
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let start = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().since(start), Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    now: watch::Sender<Moment>,
    /// How many sleepers wait for each moment.
    sleepers: Mutex<BTreeMap<Moment, usize>>,
}

/// The wall clock of a new [`ManualClock`]: some second of 2026.
const UNIX_START: Duration = Duration::from_secs(1_790_000_000);

impl ManualClock {
    /// A clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared {
                now: watch::Sender::new(Moment::default()),
                sleepers: Mutex::default(),
            }),
        }
    }

    /// Moves the clock forward and wakes all sleepers whose moment has come.
    pub fn advance(&self, by: Duration) {
        self.shared.now.send_modify(|now| *now = *now + by);
    }

    /// The earliest moment in the future for which there is a sleeper.
    ///
    /// When nothing moves any more, the clock has to be advanced this far for something to happen.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let now = self.now();
        let sleepers = self.shared.sleepers();
        let next = sleepers.keys().find(|moment| **moment > now).copied();
        next.filter(|moment| *moment != Moment::NEVER)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.shared.now.borrow()
    }

    fn unix_time(&self) -> Duration {
        UNIX_START + self.now().since_origin()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        let mut now = self.shared.now.subscribe();
        let sleeper = Sleeper::new(&self.shared, moment);
        Box::pin(async move {
            // The sender is in `self`, which outlives this future, so the channel cannot be closed.
            drop(now.wait_for(|now| *now >= moment).await);
            drop(sleeper);
        })
    }
}

impl Shared {
    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<Moment, usize>> {
        lock(&self.sleepers)
    }
}

/// One sleep, counted for as long as it lives.
struct Sleeper<'a> {
    clock: &'a Shared,
    until: Moment,
}

impl<'a> Sleeper<'a> {
    fn new(clock: &'a Shared, until: Moment) -> Self {
        *clock.sleepers().entry(until).or_default() += 1;
        Self { clock, until }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        let mut sleepers = self.clock.sleepers();
        if let Some(count) = sleepers.get_mut(&self.until) {
            *count -= 1;
            if *count == 0 {
                sleepers.remove(&self.until);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a clock that is moved to a moment whose sleeper is gone.
    #[test]
    fn the_next_wake_is_that_of_the_first_who_still_sleeps() {
        let clock = ManualClock::new();
        let at = |seconds| Moment::from_origin(Duration::from_secs(seconds));
        let never = clock.sleep_until(Moment::NEVER);
        assert_eq!(clock.next_wake(), None);
        let (first, twin) = (clock.sleep_until(at(3)), clock.sleep_until(at(3)));
        let second = clock.sleep_until(at(5));
        drop(first);
        assert_eq!(clock.next_wake(), Some(at(3)));
        drop(twin);
        assert_eq!(clock.next_wake(), Some(at(5)));
        clock.advance(Duration::from_secs(5));
        assert_eq!(clock.next_wake(), None);
        drop((second, never));
        assert!(clock.shared.sleepers().is_empty());
    }
}
