use std::{
    fmt,
    ops::Add,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::runtime::Handle;

use crate::BoxFuture;

/// The source of time, random numbers and tasks. It is a parameter, so that a test can stop time,
/// repeat random numbers, order tasks, and let clocks disagree.
///
/// Every deadline of this crate is a [`Moment`] of the clock of a runtime. An implementation that
/// only has a clock keeps the default of the last two methods.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// The present moment. It never goes back.
    fn now(&self) -> Moment;

    /// The wall clock as time since 1970. It may jump. Used only to start a missing token counter.
    fn unix_time(&self) -> Duration;

    /// Completes once `now() >= moment`. A sleep until [`Moment::NEVER`] should take no timer,
    /// because all callers that wait without bound sleep until this moment.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is left behind.
    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()>;

    /// A random number. In production it must be impossible to guess, because it identifies a
    /// holder. By default it comes from a cryptographically secure generator, seeded by the system.
    fn random(&self) -> u128 {
        rand::random()
    }

    /// Runs a task to its end, although no caller polls it. By default it runs on this Tokio
    /// runtime. The call may come from a drop outside of the runtime. If the runtime has ended, the
    /// task is dropped. The call must not poll the task, because its caller may hold a lock.
    fn spawn(&self, on: &Handle, task: BoxFuture<'static, ()>) {
        drop(on.spawn(task));
    }
}

impl dyn Runtime {
    /// Completes after this time, which runs from now on.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing is left behind.
    pub fn sleep(&self, time: Duration) -> BoxFuture<'_, ()> {
        self.sleep_until(self.now() + time)
    }

    /// The output of a future that completes within this time, which runs from now on. Otherwise
    /// `None`.
    ///
    /// # Cancel safety
    /// That of the future.
    pub fn timeout<F: Future>(&self, time: Duration, future: F) -> Timeout<'_, F> {
        let end = self.sleep(time);
        Timeout { future, end }
    }

    /// A random number from 0 to 1, without 1.
    #[must_use]
    pub fn dice(&self) -> f64 {
        let high = u32::try_from(self.random() >> 96).unwrap_or(0);
        f64::from(high) / (f64::from(u32::MAX) + 1.0)
    }
}

pin_project! {
    /// The future of [`Runtime::timeout`](trait.Runtime.html#method.timeout).
    #[must_use = "futures do nothing unless polled"]
    pub struct Timeout<'a, F> {
        #[pin]
        future: F,
        end: BoxFuture<'a, ()>,
    }
}

impl<F: Future> Future for Timeout<'_, F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(context) {
            return Poll::Ready(Some(output));
        }
        this.end.as_mut().poll(context).map(|()| None)
    }
}

impl<F> fmt::Debug for Timeout<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout").finish_non_exhaustive()
    }
}

/// A point in time of one [`Runtime`]; moments of different clocks cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// A moment so far away that it never comes.
    pub const NEVER: Self = Self(Duration::MAX);

    /// The moment that lies `since_origin` after the clock's origin.
    #[must_use]
    pub const fn from_origin(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// The time since the clock's origin.
    #[must_use]
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// The time from `earlier` to this moment. Zero if this moment is not later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// Saturates at [`Moment::NEVER`].
impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

/// Tokio, and the operating system's clock: `CLOCK_BOOTTIME` on Linux, which goes on while the
/// machine sleeps.
///
/// Elsewhere it is the monotonic clock. Tokio's timers do not count the time in which the machine
/// is suspended, so a sleep looks at the clock at least every second. A test that pauses Tokio's
/// clock does not move this clock: pass a runtime with a clock of its own, such as the
/// `ManualClock` of `lock-testing`.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "there is nothing to it")]
pub struct TokioRuntime;

const TICK: Duration = Duration::from_secs(1);

impl Runtime for TokioRuntime {
    fn now(&self) -> Moment {
        Moment(since_origin())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    fn unix_time(&self) -> Duration {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        if moment == Moment::NEVER {
            return Box::pin(std::future::pending());
        }
        Box::pin(async move {
            loop {
                let left = moment.since(self.now());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(std::cmp::min(left, TICK)).await;
            }
        })
    }
}

#[cfg(not(windows))]
fn since_origin() -> Duration {
    #[cfg(target_os = "linux")]
    let id = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let id = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(id);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// The time since the first reading, which is the origin of all clocks of the process.
#[cfg(windows)]
fn since_origin() -> Duration {
    use std::{sync::LazyLock, time::Instant};

    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a timer for each of the many callers that wait without bound.
    #[tokio::test(start_paused = true)]
    async fn a_task_that_sleeps_for_ever_is_never_woken() {
        let runtime = TokioRuntime;
        let mut sleep = runtime.sleep_until(Moment::NEVER);
        let mut polls = 0;
        let counted = std::future::poll_fn(|cx| {
            polls += 1;
            sleep.as_mut().poll(cx)
        });
        drop(tokio::time::timeout(TICK * 100, counted).await);
        // One poll at the start, and one when the time is over.
        assert!(polls <= 2, "{polls} polls");
    }
}
