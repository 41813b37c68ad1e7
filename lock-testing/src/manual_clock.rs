use std::{
    collections::BTreeMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};

use lock_core::backend::{BoxFuture, Moment, Runtime, support::lock};

/// A [`Runtime`] whose time moves only when the test advances it. Clones are the same clock.
///
/// Sleepers wake in the order of their moments. Sleepers with the same moment wake in the order in
/// which they fell asleep. Tasks run on Tokio, so use a runtime with one thread if a test has to
/// run the same way each time.
///
/// # Examples
/// ```
/// use lock_core::backend::Runtime;
/// use lock_testing::ManualClock;
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let start = clock.now();
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now().since(start), Duration::from_secs(60));
/// ```
#[derive(Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

struct Shared {
    time: Mutex<Time>,
    random: Mutex<StdRng>,
}

#[derive(Debug, Default)]
struct Time {
    now: Moment,
    /// The number of sleepers that have fallen asleep so far.
    arrivals: u64,
    sleepers: BTreeMap<Place, Option<Waker>>,
}

/// The moment for which a sleeper waits, and its number.
type Place = (Moment, u64);

/// The wall clock of a new [`ManualClock`]: some second of 2026.
const UNIX_START: Duration = Duration::from_secs(1_790_000_000);

impl ManualClock {
    /// A clock at its origin. Its random numbers differ each time.
    #[must_use]
    pub fn new() -> Self {
        Self::seeded(rand::random())
    }

    /// A clock at its origin whose random numbers are the same for the same seed, with one build of
    /// the test.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            shared: Arc::new(Shared {
                time: Mutex::default(),
                random: Mutex::new(StdRng::seed_from_u64(seed)),
            }),
        }
    }

    /// Moves the clock forward and wakes all sleepers whose moment has come.
    pub fn advance(&self, by: Duration) {
        let due: Vec<_> = {
            let mut time = lock(&self.shared.time);
            time.now = time.now + by;
            let until = (time.now, u64::MAX);
            let due = time.sleepers.range_mut(..=until);
            due.filter_map(|(_, waker)| waker.take()).collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    /// The earliest moment in the future for which there is a sleeper.
    ///
    /// When no task can go on, advance the clock to this moment.
    #[must_use]
    pub fn next_wake(&self) -> Option<Moment> {
        let time = lock(&self.shared.time);
        let mut future = time.sleepers.range((time.now, u64::MAX)..);
        let next = future.next().map(|((moment, _), _)| *moment);
        next.filter(|moment| *moment != Moment::NEVER)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock")
            .field(&self.shared.time)
            .finish()
    }
}

impl Runtime for ManualClock {
    fn now(&self) -> Moment {
        lock(&self.shared.time).now
    }

    fn unix_time(&self) -> Duration {
        UNIX_START + self.now().since_origin()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        let mut time = lock(&self.shared.time);
        time.arrivals += 1;
        let place = (moment, time.arrivals);
        time.sleepers.insert(place, None);
        let shared = &self.shared;
        Box::pin(Sleeper { shared, place })
    }

    fn random(&self) -> u128 {
        lock(&self.shared.random).random()
    }
}

/// One sleep. It keeps its place among the sleepers for as long as it lives.
struct Sleeper<'a> {
    shared: &'a Shared,
    place: Place,
}

impl Future for Sleeper<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut time = lock(&self.shared.time);
        let (until, _) = self.place;
        if time.now >= until {
            return Poll::Ready(());
        }
        let waker = time
            .sleepers
            .insert(self.place, Some(context.waker().clone()));
        drop(time);
        // The waker is dropped outside of the lock, because its drop may run other code.
        drop(waker);
        Poll::Pending
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        let waker = lock(&self.shared.time).sleepers.remove(&self.place);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Wake;

    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    /// Catches: the clock is moved to a moment whose sleeper is gone.
    #[test]
    fn the_next_wake_is_that_of_the_first_task_that_still_sleeps() {
        let clock = ManualClock::new();
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
        assert!(lock(&clock.shared.time).sleepers.is_empty());
    }

    /// Writes down its name when it is woken.
    struct Named(&'static str, Arc<Mutex<Vec<&'static str>>>);

    impl Wake for Named {
        fn wake(self: Arc<Self>) {
            lock(&self.1).push(self.0);
        }
    }

    /// There are many sleepers, because a few might wake in order by chance.
    /// Catches: sleepers that wake in another order each time.
    #[test]
    fn sleepers_wake_by_moment_and_then_by_arrival() {
        let (clock, woken) = (ManualClock::new(), Arc::<Mutex<Vec<_>>>::default());
        let named = ["d", "a", "b", "e", "g", "c", "f"].into_iter();
        let mut sleeps: Vec<_> = named
            .zip([4, 2, 2, 4, 9, 3, 4])
            .map(|(name, second)| (name, clock.sleep_until(at(second))))
            .collect();
        // The order of the polls is not the order of the arrivals.
        for (name, sleep) in sleeps.iter_mut().rev() {
            let waker = Waker::from(Arc::new(Named(name, Arc::clone(&woken))));
            let polled = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
        }
        clock.advance(Duration::from_secs(4));
        assert_eq!(*lock(&woken), ["a", "b", "c", "d", "e", "f"]);
        clock.advance(Duration::from_secs(4));
        assert_eq!(lock(&woken).len(), 6);
        clock.advance(Duration::from_secs(1));
        assert_eq!(*lock(&woken), ["a", "b", "c", "d", "e", "f", "g"]);
    }

    /// Catches: a seed without an effect, or a random number that does not depend on the seed.
    #[test]
    fn the_seed_says_which_random_numbers_come() {
        let draw = |clock: ManualClock| [clock.random(), clock.random()];
        assert_eq!(draw(ManualClock::seeded(7)), draw(ManualClock::seeded(7)));
        assert_ne!(draw(ManualClock::seeded(7)), draw(ManualClock::seeded(8)));
        assert_ne!(draw(ManualClock::new()), draw(ManualClock::new()));
    }
}
