use std::time::Duration;

use crate::FencingToken;

/// The start of a counter that is missing at a lock service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "every lock service has to tell them apart"
)]
pub enum InitialToken {
    /// The lock service's wall clock in units of 10 µs: 15 digits until the year 2286.
    ///
    /// A service that lost its counter then continues above all tokens that it issued before, as
    /// long as it issued fewer than 100 000 tokens a second and its clock did not go back.
    #[default]
    Clock,
    /// This token: small numbers for tests and demonstrations. After a loss of the counter, only
    /// the store's mark and the floor restore the order of tokens.
    At(FencingToken),
}

impl InitialToken {
    /// How far above an `At` counter a floor may lie.
    pub const MAX_JUMP: u64 = 1_000_000_000;

    /// How far above the clock a floor may lie: clocks differ, but not by more than a day.
    pub const MAX_LEAD: Duration = Duration::from_secs(24 * 60 * 60);

    /// The wall clock as a token number, in units of 10 µs.
    #[must_use]
    pub fn clock_token(unix_time: Duration) -> u64 {
        let of_seconds = unix_time.as_secs().saturating_mul(100_000);
        of_seconds.saturating_add(u64::from(unix_time.subsec_micros() / 10))
    }

    /// The greatest plausible floor, given the last token that was issued.
    ///
    /// A single wrong mark must not lift a counter that many resources share up to
    /// [`FencingToken::MAX`].
    #[must_use]
    pub fn greatest_floor(self, last_token: u64, unix_time: Duration) -> u64 {
        let limit = match self {
            Self::Clock => Self::clock_token(unix_time.saturating_add(Self::MAX_LEAD)),
            Self::At(_) => last_token.saturating_add(Self::MAX_JUMP),
        };
        std::cmp::min(limit, FencingToken::MAX.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: tokens by the clock that are out of range at once, or in a few years.
    #[test]
    fn the_clock_fits_into_a_token_until_2286() {
        let last_second_of_2285 = Duration::from_secs(9_972_460_799);
        assert!(InitialToken::clock_token(last_second_of_2285) <= FencingToken::MAX.get());
        let today = Duration::from_secs(1_790_000_000);
        assert_eq!(InitialToken::clock_token(today).to_string().len(), 15);
        let greatest = InitialToken::Clock.greatest_floor(0, Duration::MAX);
        assert_eq!(greatest, FencingToken::MAX.get());
    }
}
