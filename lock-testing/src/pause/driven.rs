use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use futures_util::future::LocalBoxFuture;
use thiserror::Error;

use super::await_point::Place;
use crate::ManualClock;
use lock_core::backend::Runtime;

/// A future that is polled by hand, so that it can be stopped at any of its awaits.
///
/// Between two polls all other tasks get a turn. If no task can go on after that, the clock
/// advances to the next moment until which a task sleeps.
pub(super) struct Driven<'a, T> {
    future: LocalBoxFuture<'a, T>,
    clock: &'a ManualClock,
    /// The longest real time that an answer from outside may take.
    real_io: Duration,
    woken: Arc<Woken>,
    awaits: usize,
}

/// The result of one poll.
pub(super) enum Step<T> {
    Ended(T),
    /// The future is at an await. It has a place if the await belongs to this crate.
    Awaits(Option<Place>),
}

/// The reason why a future does not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Stuck {
    #[error(
        "waits for something that does not happen, such as a mutex that a paused section holds"
    )]
    Idle,
    #[error("has not ended after {AWAITS_MAX} awaits")]
    Endless,
}

/// A section with more awaits than this counts as one that never ends.
const AWAITS_MAX: usize = 10_000;

/// The number of turns for all other tasks after which no task is assumed to go on, if none has had
/// an effect on the future. A watchdog needs about six turns from a wake-up to the end of its
/// renewal.
const IDLE_TURNS: usize = 100;

/// The number of times that the clock may advance without effect on the future before the future
/// counts as stuck. There has to be a limit, because a live watchdog renews for ever, so some task
/// can always go on.
const CLOCK_STEPS_MAX: usize = 1_000;

impl<'a, T> Driven<'a, T> {
    pub(super) fn new(
        future: LocalBoxFuture<'a, T>,
        clock: &'a ManualClock,
        real_io: Duration,
    ) -> Self {
        Self {
            future,
            clock,
            real_io,
            woken: Arc::new(Woken(AtomicBool::new(true))),
            awaits: 0,
        }
    }

    /// The number of awaits that the future has reached so far.
    pub(super) const fn awaits(&self) -> usize {
        self.awaits
    }

    pub(super) async fn run_to_end(&mut self) -> Result<T, Stuck> {
        loop {
            if let Step::Ended(output) = self.step().await? {
                return Ok(output);
            }
            tokio::task::yield_now().await;
        }
    }

    /// Goes on until the future has reached this number of awaits, or has completed before.
    pub(super) async fn run_to_await(&mut self, number: usize) -> Result<Step<T>, Stuck> {
        loop {
            match self.step().await? {
                Step::Awaits(_) if self.awaits < number => tokio::task::yield_now().await,
                step => return Ok(step),
            }
        }
    }

    /// Polls once, as soon as there is a reason to. At the first call after a pause the future goes
    /// on before its watchdog has had a turn, so it does not know yet what happened during the
    /// pause.
    async fn step(&mut self) -> Result<Step<T>, Stuck> {
        self.until_woken().await?;
        if self.awaits == AWAITS_MAX {
            return Err(Stuck::Endless);
        }
        Place::take();
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Ok(Step::Ended(output)),
            Poll::Pending => {
                self.awaits += 1;
                Ok(Step::Awaits(Place::take()))
            }
        }
    }

    async fn until_woken(&self) -> Result<(), Stuck> {
        for _ in 0..CLOCK_STEPS_MAX {
            for _ in 0..IDLE_TURNS {
                if self.woken.take() {
                    return Ok(());
                }
                tokio::task::yield_now().await;
            }
            if self.was_answered().await {
                return Ok(());
            }
            let next = self.clock.next_wake().ok_or(Stuck::Idle)?;
            self.clock.advance(next.since(self.clock.now()));
        }
        Err(Stuck::Idle)
    }

    /// Waits for an answer from outside. The clock stands still during this time.
    async fn was_answered(&self) -> bool {
        let asked = Instant::now();
        while asked.elapsed() < self.real_io {
            if self.woken.take() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        false
    }
}

struct Woken(AtomicBool);

impl Woken {
    fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
