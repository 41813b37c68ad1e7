use std::{fmt, sync::Arc, time::Duration};

use lock_core::backend::{BoxFuture, Moment, Runtime};
use tokio::runtime::Handle;

use super::{
    Counts,
    chance::{OWN_STREAMS, draw},
    shared::Shared,
    sleep::Sleep,
};

/// The wall clock at the beginning of a world, as time since 1970: some second of 2026.
const UNIX_START: Duration = Duration::from_secs(1_790_000_000);

/// The first of the streams of random numbers, one for each process.
const RANDOMS: u64 = OWN_STREAMS + (1 << 32);

/// A group of tasks in a [`World`](super::World) that is paused and killed as a whole. It has a
/// clock and random numbers of its own. Clones are the same process.
///
/// It is the [`Runtime`] of the code that runs in it. Durations that its methods take are true
/// time, which is the time of the world.
#[derive(Clone)]
pub struct Process {
    pub(super) shared: Arc<Shared>,
    pub(super) number: usize,
    pub(super) name: Arc<str>,
}

impl Process {
    /// Its name, for people.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins a task, or drops it if the process is dead. It is not polled before the world runs.
    pub fn start(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.shared.spawn(self.number, Box::pin(task));
    }

    /// Stops the process for this long: none of its tasks is polled. Time goes on, and wake-ups are
    /// kept. A pause that is under way is not cut short. A task that calls this ends its poll
    /// first.
    pub fn pause_for(&self, pause: Duration) {
        self.shared.state().pause(self.number, pause);
    }

    /// Stops the process for this long just before one of its polls. The first poll of its life has
    /// number 1; a number that has passed does nothing.
    pub fn pause_at_poll(&self, nth: u64, pause: Duration) {
        self.shared.state().pause_at_poll(self.number, nth, pause);
    }

    /// Ends the process permanently: its tasks are dropped. A drop may wake and spawn, but a task
    /// that it spawns in this process is dropped, too. A task that kills its own process ends its
    /// poll first.
    ///
    /// Code that runs in these drops can send. A network has to ask [`is_dead`](Self::is_dead),
    /// because a process that was killed sends nothing.
    pub fn kill(&self) {
        self.shared.kill(self.number);
    }

    /// Whether the process was killed.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.shared.state().is_dead(self.number)
    }

    /// Moves its wall clock by this many milliseconds, back if that is negative.
    pub fn step_unix(&self, by_ms: i64) {
        let by = i128::from(by_ms) * 1_000_000;
        self.shared.state().step_unix(self.number, by);
    }

    /// Its present contents, in which to look for leaks and for situations.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.state().counts(self.number)
    }

    /// The time of the world. Moments of clocks of processes cannot be compared with it.
    #[must_use]
    pub fn true_time(&self) -> Moment {
        self.shared.now()
    }

    /// As [`World::tell`](super::World::tell).
    pub fn tell(&self, line: impl FnOnce() -> String) {
        self.shared.tell(|| (None, line()));
    }

    /// As [`tell`](Self::tell), of another actor: its name, and what it did.
    pub fn tell_of(&self, line: impl FnOnce() -> (Arc<str>, String)) {
        self.shared.tell(|| {
            let (who, what) = line();
            (Some(who), what)
        });
    }

    /// As [`World::note`](super::World::note).
    pub fn note(&self, number: u64) {
        self.shared.note(number);
    }

    /// Counts a message that the present task delivers. [`Order::Pct`](super::Order::Pct) changes
    /// priorities at some deliveries.
    pub fn delivered(&self) {
        self.shared.state().delivered();
    }
}

impl Runtime for Process {
    fn now(&self) -> Moment {
        self.shared.state().time_of(self.number)
    }

    fn unix_time(&self) -> Duration {
        let gone = self.shared.state().unix_gone(self.number);
        let nanos = i128::try_from(UNIX_START.as_nanos()).unwrap_or(0) + gone;
        Duration::from_nanos_u128(u128::try_from(nanos).unwrap_or(0))
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        Box::pin(Sleep::new(self, moment))
    }

    fn random(&self) -> u128 {
        let number = 2 * self.shared.state().next_random(self.number);
        let stream = RANDOMS + self.number as u64;
        let [high, low] = [number, number + 1].map(|n| draw(self.shared.seed, stream, n));
        u128::from(high) << 64 | u128::from(low)
    }

    fn spawn(&self, _on: &Handle, task: BoxFuture<'static, ()>) {
        self.shared.spawn(self.number, task);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Process").field(&self.name).finish()
    }
}
