use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::future::LocalBoxFuture;
use thiserror::Error;

use super::place::Place;
use crate::{Clock, test_util::ManualClock};

/// A future that is polled by hand, so that it can be left where it is at any of its awaits.
///
/// Between two polls everybody else gets a turn. If then nothing moves any more, the clock goes on
/// to the next moment that somebody sleeps until.
pub(super) struct Driven<'a, T> {
    future: LocalBoxFuture<'a, T>,
    clock: &'a ManualClock,
    woken: Arc<Woken>,
    awaits: usize,
}

/// What one poll came to.
pub(super) enum Step<T> {
    Ended(T),
    /// At an await, and where that is if it is one of ours.
    Awaits(Option<Place>),
}

/// Why a future does not come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Stuck {
    #[error(
        "waits for something that does not happen, such as a mutex that a paused section holds"
    )]
    Idle,
    #[error("has not ended after {AWAITS_MAX} awaits")]
    Endless,
}

/// After so many awaits a section is taken for one that never ends.
const AWAITS_MAX: usize = 10_000;

/// Turns for everybody else, without effect on the future, until nothing is taken to move any more.
/// A watchdog needs about six from a wake-up to the end of its renewal.
const IDLE_TURNS: usize = 100;

/// So often the clock goes on, without effect on the future, until it is taken to be stuck. A live
/// watchdog renews for ever, so something always happens.
const CLOCK_STEPS_MAX: usize = 1_000;

impl<'a, T> Driven<'a, T> {
    pub(super) fn new(future: LocalBoxFuture<'a, T>, clock: &'a ManualClock) -> Self {
        Self {
            future,
            clock,
            woken: Arc::new(Woken(AtomicBool::new(true))),
            awaits: 0,
        }
    }

    /// How many awaits there have been.
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

    /// Goes on until it has been at that many awaits, or has ended before.
    pub(super) async fn run_to_await(&mut self, number: usize) -> Result<Step<T>, Stuck> {
        loop {
            match self.step().await? {
                Step::Awaits(_) if self.awaits < number => tokio::task::yield_now().await,
                step => return Ok(step),
            }
        }
    }

    /// Polls once, as soon as there is a reason to. At the first call after a pause the future goes
    /// on before its watchdog has had a turn: nobody has told it yet what happened meanwhile.
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
            let next = self.clock.next_wake().ok_or(Stuck::Idle)?;
            self.clock.advance(next.since(self.clock.now()));
        }
        Err(Stuck::Idle)
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
