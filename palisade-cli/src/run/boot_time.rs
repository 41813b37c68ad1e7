use std::{ops::Add, time::Duration};

use lock_core::backend::{Moment, Runtime};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// A moment of `CLOCK_BOOTTIME`, which all processes of a machine read alike, and which goes on
/// while the machine is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct BootTime(Duration);

impl BootTime {
    pub(crate) fn now() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
        Self(Duration::new(
            seconds,
            u32::try_from(now.tv_nsec).unwrap_or(0),
        ))
    }

    /// A moment of a lease. The result is never later than that moment, because the boot clock is
    /// read first.
    pub(crate) fn of(moment: Moment, runtime: &dyn Runtime) -> Self {
        let now = Self::now();
        now + moment.since(runtime.now())
    }

    /// The moment at this time after the start of the machine.
    pub(crate) const fn after_start(time: Duration) -> Self {
        Self(time)
    }

    pub(crate) const fn since_start(self) -> Duration {
        self.0
    }

    /// The time from an earlier moment to this one; zero if that moment is later.
    pub(crate) const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    pub(crate) const fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time))
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}
