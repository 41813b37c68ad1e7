use std::sync::Arc;

use lock_core::{Clock, FencingToken, InitialToken, Sequencer, SystemClock};

use crate::FenceError;

/// The bound above which a token must be a mistake.
///
/// After one claim of 999 999 999 999 999, by a bug or by a client that invents tokens, no lock
/// service could ever issue a greater one, and the resource could never be written again. A token
/// above the bound is refused instead.
#[derive(Clone, Debug)]
pub struct Plausibility {
    bound: Bound,
}

#[derive(Clone, Debug)]
enum Bound {
    Clock(Arc<dyn Clock>),
    Token(FencingToken),
}

impl Plausibility {
    /// For a lock service whose counters start at the clock, which is the default of all of ours.
    ///
    /// Such a counter stays below the wall clock in units of 10 µs, unless more than 100 000 tokens
    /// are issued per second. A token may be ahead of it by a day ([`InitialToken::MAX_LEAD`]),
    /// since clocks differ. Tokens of a counter that starts at a small number are far below.
    #[must_use]
    pub fn by_the_clock() -> Self {
        Self::by(Arc::<SystemClock>::default())
    }

    /// As [`by_the_clock`](Self::by_the_clock), but takes the time from another clock.
    #[must_use]
    pub const fn by(clock: Arc<dyn Clock>) -> Self {
        let bound = Bound::Clock(clock);
        Self { bound }
    }

    /// For a lock service whose counters start at a small number: nothing above `greatest`.
    ///
    /// Choose a number that the service will not reach in its lifetime, and leave room above it.
    #[must_use]
    pub const fn up_to(greatest: FencingToken) -> Self {
        let bound = Bound::Token(greatest);
        Self { bound }
    }

    /// Accepts every token: for a lock service that counts in another way, and a trusted network.
    #[must_use]
    pub const fn unchecked() -> Self {
        Self::up_to(FencingToken::MAX)
    }

    /// Whether a token does not exceed the present bound.
    #[must_use]
    pub fn admits(&self, token: FencingToken) -> bool {
        token.get()
            <= match &self.bound {
                Bound::Clock(clock) => InitialToken::Clock.greatest_floor(0, clock.unix_time()),
                Bound::Token(greatest) => greatest.get(),
            }
    }

    /// Refuses a grant whose token exceeds the present bound.
    pub(crate) fn check(&self, sequencer: &Sequencer) -> Result<(), FenceError> {
        if self.admits(sequencer.token()) {
            return Ok(());
        }
        Err(FenceError::implausible(
            sequencer.resource().clone(),
            sequencer.token(),
        ))
    }
}

impl Default for Plausibility {
    fn default() -> Self {
        Self::by_the_clock()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_testing::ManualClock;

    use super::*;

    #[test]
    fn a_token_may_be_a_day_ahead_of_the_clock_and_no_more() {
        let clock = ManualClock::new();
        let plausibility = Plausibility::by(Arc::new(clock.clone()));
        let admits = |number| plausibility.admits(FencingToken::new(number).unwrap());
        let ten_micros = u64::try_from(clock.unix_time().as_micros() / 10).unwrap();
        let tomorrow = ten_micros + 86_400 * 100_000;
        assert!(admits(1) && admits(tomorrow));
        assert!(!admits(tomorrow + 1) && !admits(FencingToken::MAX.get()));
        clock.advance(Duration::from_micros(10));
        assert!(admits(tomorrow + 1));
    }

    #[test]
    fn other_counters_have_other_bounds() {
        let thousand = Plausibility::up_to(FencingToken::new(1000).unwrap());
        assert!(thousand.admits(FencingToken::new(1000).unwrap()));
        assert!(!thousand.admits(FencingToken::new(1001).unwrap()));
        assert!(Plausibility::unchecked().admits(FencingToken::MAX));
        assert!(!Plausibility::default().admits(FencingToken::MAX));
    }
}
