//! Tests of the question: what does a pause do to my critical section?
//!
//! A process that holds a lease can be stopped at any moment, by a busy neighbour on the machine, a
//! SIGSTOP, a page fault or a suspended machine. Later it goes on as if nothing had happened.
//! [`at_every_await`] tries such pauses. For every await of your section it makes a fresh world and
//! polls the section to that await. It freezes the *process* of the section, with its watchdog, for
//! longer than any lease, and runs a rival to its end. Then it thaws the process, runs the section
//! to its end, and checks your invariant.
//!
//! # A section that only locks
//! Each section that withdraws holds the lock. That is not enough, and the test shows where the
//! section fails:
//!
//! ```should_panic
//! use std::cell::Cell;
//!
//! use lock_testing::{FencedCell, Process, pause};
//!
//! struct World {
//!     account: FencedCell<i64>,
//!     cash: Cell<i64>,
//! }
//!
//! impl World {
//!     fn new() -> Self {
//!         Self { account: FencedCell::new(100), cash: Cell::new(0) }
//!     }
//!
//!     fn total(&self) -> i64 {
//!         self.account.value() + self.cash.get()
//!     }
//! }
//!
//! async fn withdraw(world: &World, me: &Process) -> Result<(), lock_core::Error> {
//!     let guard = me.locks().acquire("account").await?;
//!     let balance = world.account.read_unfenced().await;
//!     world.account.write_unfenced(balance - 10).await;
//!     world.cash.set(world.cash.get() + 10);
//!     guard.release().await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! pause::at_every_await(async || World::new(), withdraw)
//!     .rival(withdraw)
//!     .check(async |world| world.total() == 100)
//!     .await;
//! # }
//! ```
//! ```text
//! the invariant is broken by a pause at await 4 of 8 (the reply to read is under way,
//! tests/withdraw.rs:22:33), or at await 5 of 8 (the request to write is under way,
//! tests/withdraw.rs:23:19)
//! ```
//! At await 4 the section has read 100 and is stopped. The rival gets the lock, takes 10 and writes
//! a balance of 90. Then the section writes its own 90: 20 have been paid out, 10 are missing. At
//! await 5 even a check of the lease would not have helped, because the write was already on its
//! way.
//!
//! # The same section, fenced
//! The account refuses all holders except the latest, and the section passes:
//!
//! ```
//! # use std::cell::Cell;
//! # use lock_testing::{FencedCell, Process, pause};
//! # struct World { account: FencedCell<i64>, cash: Cell<i64> }
//! # impl World {
//! #     fn new() -> Self { Self { account: FencedCell::new(100), cash: Cell::new(0) } }
//! #     fn total(&self) -> i64 { self.account.value() + self.cash.get() }
//! # }
//! async fn withdraw(world: &World, me: &Process) -> Result<(), Box<dyn std::error::Error>> {
//!     let guard = me.locks().acquire("account").await?;
//!     let fence = guard.sequencer();
//!     world.account.claim(fence).await?;
//!     let balance = world.account.read(fence).await?;
//!     world.account.write(fence, balance - 10).await?;
//!     world.cash.set(world.cash.get() + 10);
//!     guard.release().await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let passed = pause::at_every_await(async || World::new(), withdraw)
//!     .rival(withdraw)
//!     .check(async |world| world.total() == 100)
//!     .await;
//! assert_eq!(passed.awaits, 10);
//! assert!(passed.refused > 0);
//! # }
//! ```
//!
//! # Awaits that count
//! An await counts each time that the section yields there. Calls that complete at once do not
//! count, so a call that goes over the network in production, but is a plain call in the test,
//! needs awaits of its own. The requests of a [`Process`] to its lock service and the operations of
//! a [`FencedCell`](super::FencedCell) have one await before and one after their effect. For other
//! calls there is [`point`]. For these awaits the message says what was under way and at which
//! line.
//!
//! # Limits
//! The test does not try a pause *between* two awaits, which is in the middle of code that no other
//! process can see. It tries neither two pauses in one run, nor races between threads. Tasks that a
//! section spawns are paused with it only if they are wrapped in [`Process::run`].

#![expect(clippy::future_not_send, reason = "all of it runs on one thread")]

mod await_point;
mod driven;
mod simulation;
mod verdict;

use std::{fmt, rc::Rc, sync::Arc, time::Duration};

use tokio::runtime::{Handle, RuntimeFlavor};

pub(super) use self::await_point::there_and_back;
use self::simulation::{Run, Section, Simulation};
pub use self::{
    await_point::point,
    verdict::{Broken, Passed},
};
use super::{ManualClock, Process};
use lock_core::{FencingToken, InitialToken, backend::LockService, memory::MemoryBackend};

/// A pause that is longer than the longest lease, which is 24 h.
const PAUSE: Duration = Duration::from_secs(25 * 60 * 60);

/// Prepares a test that pauses a section at each of its awaits, see the [module](self).
///
/// `world` makes the state that the section and its rival act on. The section gets the world and
/// its own process, and ends with a `Result`. After a pause an error is a good end, because a
/// fenced section that has become stale has to end with an error. Without a pause the section must
/// succeed.
///
/// An `async fn(&World, &Process) -> Result<..>` can be passed by name. A closure is written `async
/// |world, me| ..`.
pub fn at_every_await<'t, W, T, E>(
    world: impl AsyncFn() -> W + 't,
    section: impl AsyncFn(&W, &Process) -> Result<T, E> + 't,
) -> AtEveryAwait<'t, W>
where
    W: 't,
    T: 't,
    E: fmt::Debug + 't,
{
    let section = Rc::new(Section::new(section));
    AtEveryAwait {
        simulation: Simulation {
            world: Box::new(world),
            rival: Rc::clone(&section) as _,
            section,
            lock_service: Box::new(in_memory),
            pause: PAUSE,
            real_io: Duration::ZERO,
        },
    }
}

/// A test that is being prepared. [`check`](AtEveryAwait::check) runs it.
#[must_use = "the test does not run until `check` is called"]
pub struct AtEveryAwait<'t, W> {
    simulation: Simulation<'t, W>,
}

impl<'t, W: 't> AtEveryAwait<'t, W> {
    /// The actions of another process while the section is paused. Defaults to the section itself.
    pub fn rival<T: 't, E: fmt::Debug + 't>(
        mut self,
        rival: impl AsyncFn(&W, &Process) -> Result<T, E> + 't,
    ) -> Self {
        self.simulation.rival = Rc::new(Section::new(rival));
        self
    }

    /// The least length of the pause. The pause lasts until the rival has ended. Defaults to 25 h,
    /// which is longer than any lease.
    pub const fn pause(mut self, pause: Duration) -> Self {
        self.simulation.pause = pause;
        self
    }

    /// The longest real time that an answer from outside may take: from a database or from any
    /// other server with which your section really communicates. Defaults to zero, for a section
    /// that uses no server.
    ///
    /// An answer that arrives at once is no await, so the number of awaits differs from run to run.
    /// A test that fails has found a fault, but a test that passes has not tried every await.
    ///
    /// Leases follow a manual clock, which advances when no task can go on. With this setting, the
    /// clock first waits for the given real time. If an answer takes longer, leases have ended when
    /// it arrives, so the test fails in its run without a pause, and does not pass by mistake. Half
    /// a second is enough for a database on the same machine. A section that only waits for time
    /// waits for this real time, too.
    pub const fn real_io(mut self, longest: Duration) -> Self {
        self.simulation.real_io = longest;
        self
    }

    /// Makes a fresh lock service for each run. Defaults to the lock service in memory, with tokens
    /// that begin at 1.
    pub fn lock_service(mut self, service: impl Fn(&ManualClock) -> LockService + 't) -> Self {
        self.simulation.lock_service = Box::new(service);
        self
    }

    /// Runs the test: the invariant has to hold at the end of every run. It may also panic. Then
    /// the panic is reported together with the await.
    ///
    /// # Panics
    /// With [`Broken`] as its message if the invariant does not hold after some pause. Also
    /// wherever [`try_check`](AtEveryAwait::try_check) panics.
    ///
    /// # Cancel safety
    /// Cancel safe: the run stops where it is.
    pub async fn check(self, invariant: impl AsyncFn(&W) -> bool) -> Passed {
        match self.try_check(invariant).await {
            Ok(passed) => passed,
            Err(broken) => panic!("{broken}"),
        }
    }

    /// Runs the test, for a control that must *not* pass: the unfenced twin of your section.
    ///
    /// # Errors
    /// [`Broken`] if the invariant does not hold after some pause.
    ///
    /// # Panics
    /// Panics if nothing was tested: the section never awaits, or the section, the rival or the
    /// invariant fails even without a pause, or the rival fails whenever the section is paused.
    /// Panics if one of them waits for something that does not happen, or takes more than 10 000
    /// awaits. Panics outside a single-threaded Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the run stops where it is.
    pub async fn try_check(self, invariant: impl AsyncFn(&W) -> bool) -> Result<Passed, Broken> {
        assert!(
            Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
            "a pause test needs a runtime of one thread: a plain #[tokio::test]"
        );
        let awaits = self.simulation.without_pause(&invariant).await;
        let mut runs = Vec::with_capacity(awaits);
        while let Some(run) = self
            .simulation
            .paused_at(runs.len() + 1, awaits, &invariant)
            .await
        {
            runs.push(run);
        }
        assert!(
            !runs.is_empty(),
            "the section never awaits, so nothing was tested: put pause::point().await \
             where it talks to others"
        );
        if let Some(error) = failed_in_all(&runs) {
            panic!(
                "the rival fails whenever the section is paused, so nothing was tested: {error}"
            );
        }
        verdict(&runs)
    }
}

impl<W> fmt::Debug for AtEveryAwait<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtEveryAwait")
            .field("pause", &self.simulation.pause)
            .finish_non_exhaustive()
    }
}

/// The error of the rival, if it failed in all of these runs.
fn failed_in_all(runs: &[Run]) -> Option<&String> {
    let succeeded = runs.iter().any(|run| run.rival.is_ok());
    let mut errors = runs.iter().filter_map(|run| run.rival.as_ref().err());
    if succeeded { None } else { errors.next() }
}

fn verdict(runs: &[Run]) -> Result<Passed, Broken> {
    let broken: Vec<_> = runs.iter().filter(|run| !run.holds).collect();
    if broken.is_empty() {
        let refused = runs.iter().filter(|run| run.section.is_err()).count();
        Ok(Passed::new(runs.len(), refused))
    } else {
        Err(Broken::new(broken.into_iter().map(|run| run.at).collect()))
    }
}

fn in_memory(clock: &ManualClock) -> LockService {
    let initial = InitialToken::At(FencingToken::MIN);
    MemoryBackend::new(Arc::new(clock.clone()), initial).into()
}
