//! Time, random numbers, tasks and their order: an executor of our own.
//!
//! Which file to open: `order` chooses the next task, `clock` relates the clock of a process to the
//! true time, `state` has the steps of the executor under its lock, `shared` the steps outside of
//! it.

mod alarms;
mod chance;
mod clock;
mod order;
mod process;
mod shared;
mod sleep;
mod state;
mod task;
#[cfg(test)]
mod tests;
mod trace;

use std::{fmt, io, sync::Arc, time::Duration};

use lock_core::backend::Moment;
use tokio::runtime::{Builder, EnterGuard, Runtime as TokioRuntime};

pub use self::{
    chance::{Stream, draw},
    clock::Clock,
    order::Order,
    process::Process,
    trace::{GOES_ON, IS_KILLED, Line, PAUSES},
};
use self::{
    order::Ready,
    shared::Shared,
    state::{Next, State},
};

/// A world of processes in one thread. Its seed repeats it, in any build.
///
/// Time stands still while a task is ready. Otherwise it moves to the next moment for which a task
/// sleeps. When the world is dropped, its processes are killed.
pub struct World {
    shared: Arc<Shared>,
    /// Code that asks for the present Tokio runtime finds this one. It runs nothing, unless the
    /// world has I/O.
    tokio: TokioRuntime,
    has_io: bool,
}

/// How often a world with I/O lets others work before time moves: some tens of microseconds.
const PATIENCE: usize = 50;

/// How often it does so before time moves by minutes. Otherwise the answer of a thread would come
/// too late for its caller.
const FAR_PATIENCE: usize = 50_000;

/// How many milliseconds a world with I/O waits at most for an expected event.
const LOOKS: usize = 2_000;

/// Why a run has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
#[expect(clippy::exhaustive_enums, reason = "a caller decides about each")]
pub enum Ran {
    /// No task is ready, and no task sleeps until a moment that will come.
    Quiet,
    /// The moment has come.
    TimeUp,
    /// Tasks were polled so often without an end.
    TooManyPolls,
}

/// The present contents of a process, or of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Tasks that have not ended.
    pub tasks: u64,
    /// Sleeps that were polled and have not ended.
    pub sleepers: u64,
    /// Polls so far.
    pub polls: u64,
}

/// A panic in a task, or in a drop.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Panicked {
    /// The name of the process.
    pub process: Arc<str>,
    /// The message of the panic.
    pub message: String,
}

impl World {
    /// A world at its beginning.
    ///
    /// # Errors
    /// Those of a Tokio runtime.
    pub fn new(seed: u64, order: Order) -> io::Result<Self> {
        let tokio = Builder::new_current_thread().build()?;
        Ok(Self::on(tokio, seed, order))
    }

    /// A world in which tasks may wait for threads and for tasks of Tokio. Time moves when nothing
    /// has come from them for a moment, so its runs are not repeated.
    ///
    /// # Errors
    /// Those of a Tokio runtime.
    pub fn with_io(seed: u64, order: Order) -> io::Result<Self> {
        let tokio = Builder::new_current_thread().enable_time().build()?;
        let mut world = Self::on(tokio, seed, order);
        world.has_io = true;
        Ok(world)
    }

    fn on(tokio: TokioRuntime, seed: u64, order: Order) -> Self {
        Self {
            shared: Arc::new(Shared::new(seed, State::new(Ready::new(seed, order)))),
            tokio,
            has_io: false,
        }
    }

    /// Runs a future on the Tokio runtime, outside of all processes. It needs a world with I/O.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.tokio.block_on(future)
    }

    /// A new process, whose clock shows the true time.
    #[must_use]
    pub fn process(&self, name: &str) -> Process {
        self.process_with(name, Clock::default())
    }

    /// A new process with this clock.
    #[must_use]
    pub fn process_with(&self, name: &str, clock: Clock) -> Process {
        let (shared, name) = (Arc::clone(&self.shared), Arc::from(name));
        let number = shared.state().add_process(&name, clock);
        Process {
            shared,
            number,
            name,
        }
    }

    /// Makes this world's Tokio runtime the present one, for set-up code outside of tasks, such as
    /// that of a lock manager.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.tokio.enter()
    }

    /// Runs tasks until this moment of the world, and polls them at most so often.
    ///
    /// A task that panics has ended; see [`panics`](Self::panics).
    pub fn run_until(&self, moment: Moment, most_polls: u64) -> Ran {
        let until = u64::try_from(moment.since_origin().as_nanos()).unwrap_or(u64::MAX);
        for _ in 0..most_polls {
            if self.has_io {
                self.wait_for_io();
            }
            let _inside = self.enter();
            match self.shared.step(until) {
                Some(Next::Quiet) => return Ran::Quiet,
                Some(_) => return Ran::TimeUp,
                None => {}
            }
        }
        Ran::TooManyPolls
    }

    /// Runs on until this is true, as far as the time left is quiet. A world with I/O waits for
    /// some time until it is true, because a task may wait for the work of a thread.
    pub fn run_until_so(&self, moment: Moment, most_polls: u64, is_so: impl Fn() -> bool) -> Ran {
        let mut ran = self.run_until(moment, most_polls);
        let mut looks = if self.has_io { LOOKS } else { 0 };
        while ran == Ran::Quiet && looks > 0 && !is_so() {
            looks -= 1;
            pause();
            ran = self.run_until(moment, most_polls);
        }
        ran
    }

    /// Lets others work while no task is ready, but not for long.
    fn wait_for_io(&self) {
        for look in 0.. {
            let mut state = self.shared.state();
            let patience = if state.is_far() {
                FAR_PATIENCE
            } else {
                PATIENCE
            };
            if look >= patience || state.has_ready() {
                return;
            }
            drop(state);
            self.tokio.block_on(tokio::task::yield_now());
            std::thread::yield_now();
        }
    }

    /// As [`run_until`](Self::run_until), until this much later.
    pub fn run_for(&self, time: Duration, most_polls: u64) -> Ran {
        self.run_until(self.now() + time, most_polls)
    }

    /// The true time since the beginning.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.shared.now()
    }

    /// The sums over all processes.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shared.state().all_counts()
    }

    /// The panics so far. A schedule with one has failed.
    #[must_use]
    pub fn panics(&self) -> Vec<Panicked> {
        self.shared.state().panics.clone()
    }

    /// For [`Order::Pct`]: about so many messages are delivered in this schedule, by default 64.
    /// Call this before the run.
    pub fn expect_deliveries(&self, deliveries: u64) {
        self.shared.state().ready.expect_deliveries(deliveries);
    }

    /// Keeps lines from now on.
    pub fn trace(&self) {
        self.shared.state().trace.is_kept = true;
    }

    /// The lines that were kept, in their order. They are no longer kept.
    #[must_use]
    pub fn take_lines(&self) -> Vec<Line> {
        self.shared.state().trace.take_lines()
    }

    /// Keeps a line, if lines are kept. Otherwise the text is not made. Only the fact that the
    /// present task has told something is part of the digest.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        self.shared.tell(|| (None, line()));
    }

    /// Makes a number part of the digest, such as a token that was granted.
    pub fn note(&self, number: u64) {
        self.shared.note(number);
    }

    /// A digest of all events so far: process, task, kind and time. Two runs with the same digest
    /// were, in all probability, the same.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.shared.state().trace.digest()
    }
}

/// Real time, for the threads of others.
#[expect(
    clippy::disallowed_methods,
    reason = "a thread of others gives no sign"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

impl Drop for World {
    /// Tasks own processes, which own the world's state: only an end of the tasks frees it.
    fn drop(&mut self) {
        let _inside = self.tokio.enter();
        let mut process = 0;
        while process < self.shared.state().processes() {
            self.shared.kill(process);
            process += 1;
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("World").field(&self.shared).finish()
    }
}
