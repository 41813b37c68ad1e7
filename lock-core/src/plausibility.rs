use std::sync::Arc;

use crate::{FencingToken, InitialToken, Runtime, TokioRuntime};

/// The bound above which a token must be a mistake.
///
/// After one claim of 999 999 999 999 999, by a bug or by a client that invents tokens, no lock
/// service could ever issue a greater token, and the resource could never be written again. So a
/// token above the bound is refused.
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
    /// The bound for a lock service whose counters start at the clock. That is the default of each
    /// lock service of Palisade.
    ///
    /// Such a counter stays below the wall clock in units of 10 µs, unless more than 100 000 tokens
    /// are issued per second. A token may be ahead of the clock by a day
    /// ([`InitialToken::MAX_LEAD`]), because clocks differ. Tokens of a counter that starts at a
    /// small number are far below the bound.
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

    /// The bound for a lock service whose counters start at a small number: no token above
    /// `greatest`.
    ///
    /// Choose a number that the service will not reach in its lifetime, and that is well below
    /// [`FencingToken::MAX`].
    #[must_use]
    pub const fn up_to(greatest: FencingToken) -> Self {
        let bound = Bound::Token(greatest);
        Self { bound }
    }

    /// Accepts every token, for a lock service that counts in another way, in a trusted network.
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
