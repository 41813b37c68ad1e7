//! The moment of the next renewal of a lease: pure arithmetic.

use std::time::Duration;

use crate::{Moment, Ttl};

/// A failed renewal is repeated after about a tenth of the ttl, within these bounds.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// Leases that are due within an eighth of the remaining time are renewed together.
const GRAINS: u128 = 8;

/// The moment to renew a lease that is due at `due`. It is a little earlier, so that several leases
/// are renewed together.
///
/// Ten thousand leases that were acquired one by one would otherwise need ten thousand requests.
/// The grid depends only on the magnitude of the remaining time, so that leases of the same ttl
/// fall onto the same points, at most an eighth too early.
pub(super) fn together(now: Moment, due: Moment) -> Moment {
    let grain = match due.since(now).as_millis().checked_ilog2() {
        Some(size) => (1_u128 << size) / GRAINS,
        None => 0,
    };
    let since_origin = due.since_origin();
    let early = since_origin.as_millis().checked_rem(grain).unwrap_or(0);
    match u64::try_from(early) {
        Ok(early) => Moment::from_origin(since_origin - Duration::from_millis(early)),
        Err(_) => due,
    }
}

/// The moment to repeat a renewal if it has no answer by then. Each repetition is half way between
/// now and the deadline. The last is at the deadline itself.
pub(super) fn unanswered(now: Moment, deadline: Moment) -> Moment {
    let half = std::cmp::max(deadline.since(now) / 2, RETRY_MIN);
    std::cmp::min(now + half, deadline)
}

/// The moment to repeat a failed renewal. `dice`, from 0 to 1, spreads clients that were cut off
/// together; leases that are given the same value stay together.
pub(super) fn failed(now: Moment, ttl: Ttl, dice: f64) -> Moment {
    let pause = (ttl.get() / 10).clamp(RETRY_MIN, RETRY_MAX);
    now + pause.mul_f64(0.5 + dice)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(millis: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(millis))
    }

    proptest! {
        /// Catches: a renewal that waits for the renewals of other leases, and comes too late.
        #[test]
        fn never_later_and_at_most_an_eighth_too_early(
            now in 0..=u64::MAX / 4, left in 0..=100_000_000_u64
        ) {
            let due = at(now + left);
            let together = together(at(now), due);
            prop_assert!(together <= due);
            prop_assert!(due.since(together) <= Duration::from_millis(left) / 8);
        }

        /// Catches: a watchdog that asks again and again at one moment.
        #[test]
        fn a_repetition_comes_within_the_lease_and_later_than_now(
            now in 0..1_000_000_u64, left in 1..100_000_u64
        ) {
            let again = unanswered(at(now), at(now + left));
            prop_assert!(again > at(now) && again <= at(now + left));
        }

        /// Catches: a watchdog that repeats a failed renewal again and again at one moment, or only
        /// after the lease has ended.
        #[test]
        fn jitter_is_bounded(ttl in 10..86_400_000_u32, dice in 0.0..1.0) {
            let pause = failed(at(0), Ttl::millis(ttl), dice).since(at(0));
            prop_assert!(pause >= RETRY_MIN / 2 && pause <= RETRY_MAX * 3 / 2);
        }
    }
}
