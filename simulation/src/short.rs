//! Times and tokens in a form that people read and compare.

use std::time::Duration;

use lock_core::backend::Moment;

/// Tokens begin at the clock, with digits that are the same in the whole schedule.
const SAME: u64 = 1_000_000_000;

/// A duration in milliseconds.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// A moment in the form that lines show.
pub(crate) fn at(moment: Moment) -> String {
    ms(moment.since_origin())
}

/// The last digits of a token.
pub(crate) const fn token(token: u64) -> u64 {
    token % SAME
}
