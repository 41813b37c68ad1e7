use std::time::Duration;

use lock_core::backend::Moment;

/// Parts of a million, in which a rate is counted.
const MILLION: u64 = 1_000_000;

/// How the clock of a process relates to the time of the world, which is the true time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Duration,
    /// How far the clock gets in a million units of true time. Never 0.
    pace: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self::ahead(Duration::ZERO)
    }
}

impl Clock {
    /// A clock that shows this much more than the time of the world, and goes as fast.
    #[must_use]
    pub const fn ahead(origin: Duration) -> Self {
        let pace = MILLION;
        Self { origin, pace }
    }

    /// The same clock, but faster by this many parts of a million, or slower if the number is
    /// negative. The clock always goes on: its least pace is one part of a million.
    #[must_use]
    pub fn drifting(self, ppm: i32) -> Self {
        let pace = MILLION.saturating_add_signed(ppm.into());
        let pace = std::cmp::max(pace, 1);
        Self { pace, ..self }
    }

    /// The moment of the clock at this true time, in nanoseconds.
    pub(super) fn at(&self, true_nanos: u64) -> Moment {
        Moment::from_origin(self.origin) + Duration::from_nanos(self.gone(true_nanos))
    }

    /// How far the clock has got since the beginning of the world, in nanoseconds.
    pub(super) fn gone(&self, true_nanos: u64) -> u64 {
        if self.pace == MILLION {
            return true_nanos;
        }
        let gone = u128::from(true_nanos) * u128::from(self.pace) / u128::from(MILLION);
        u64::try_from(gone).unwrap_or(u64::MAX)
    }

    /// The first true time, in nanoseconds, at which the clock shows at least this moment. `None`
    /// if this time is after the end of time, which is 584 years away.
    pub(super) fn when(&self, moment: Moment) -> Option<u64> {
        let left = moment.since(Moment::from_origin(self.origin)).as_nanos();
        if self.pace == MILLION {
            return u64::try_from(left).ok();
        }
        let nanos = left.checked_mul(MILLION.into())?;
        u64::try_from(nanos.div_ceil(self.pace.into())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a sleeper that is woken a nanosecond too early, or later than it has to be.
    #[test]
    fn a_moment_comes_at_the_first_true_time_that_shows_it() {
        for ppm in [-999_999, -500_000, -37, 0, 1, 37, 1_500_000, i32::MIN] {
            let clock = Clock::ahead(Duration::from_secs(9)).drifting(ppm);
            for nanos in [1, 2, 999_999, 1_000_001, 123_456_789_012] {
                let moment =
                    Moment::from_origin(Duration::from_secs(9) + Duration::from_nanos(nanos));
                let when = clock.when(moment).unwrap();
                assert!(clock.at(when) >= moment, "{ppm}: {nanos}");
                assert!(clock.at(when - 1) < moment, "{ppm}: {nanos}");
            }
        }
    }

    /// Catches: an overflow where a caller waits without bound.
    #[test]
    fn the_last_moment_never_comes() {
        assert_eq!(Clock::default().when(Moment::NEVER), None);
        assert_eq!(Clock::default().drifting(5).when(Moment::NEVER), None);
    }
}
