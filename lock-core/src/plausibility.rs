use std::sync::Arc;

use crate::{FencingToken, InitialToken, Runtime, TokioRuntime};

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
    Clock(Arc<dyn Runtime>),
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
        Self::by(Arc::<TokioRuntime>::default())
    }

    /// As [`by_the_clock`](Self::by_the_clock), but takes the time from another clock.
    #[must_use]
    pub const fn by(clock: Arc<dyn Runtime>) -> Self {
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
}

impl Default for Plausibility {
    fn default() -> Self {
        Self::by_the_clock()
    }
}
