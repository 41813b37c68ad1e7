use std::{num::NonZeroU32, time::Duration};

use super::Refusal;
use crate::{FencingToken, InitialToken};

/// The one counter that all tokens come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    initial: InitialToken,
    /// The last token that was issued.
    last: Option<u64>,
}

/// Tokens in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    pub(super) first: FencingToken,
    pub(super) count: u32,
}

impl Counter {
    pub(super) const fn new(initial: InitialToken) -> Self {
        Self {
            initial,
            last: None,
        }
    }

    /// Refuses a floor that would lift the counter by more than can be meant.
    pub(super) fn check_floor(
        &mut self,
        floor: Option<FencingToken>,
        unix_time: Duration,
    ) -> Result<(), Refusal> {
        self.last = Some(self.last_or_first(unix_time));
        let greatest = self.greatest_floor(unix_time);
        match floor.map(FencingToken::get) {
            Some(floor) if floor > greatest => Err(Refusal::FloorImplausible { greatest }),
            _ => Ok(()),
        }
    }

    /// The last token that was issued, or the one before the first.
    fn last_or_first(&self, unix_time: Duration) -> u64 {
        self.last.unwrap_or_else(|| {
            let first = match self.initial {
                InitialToken::Clock => InitialToken::clock_token(unix_time),
                InitialToken::At(token) => token.get(),
            };
            first.saturating_sub(1)
        })
    }

    /// The next token is always plausible.
    fn greatest_floor(&self, unix_time: Duration) -> u64 {
        let last = self.last_or_first(unix_time);
        std::cmp::max(self.initial.greatest_floor(last, unix_time), last + 1)
    }

    /// Takes the next tokens, as many as there are left at least.
    pub(super) fn draw(
        &mut self,
        floor: Option<FencingToken>,
        count: NonZeroU32,
    ) -> Result<Tokens, Refusal> {
        let least = floor.map_or(0, FencingToken::get);
        let next = std::cmp::max(self.last.unwrap_or(0).saturating_add(1), least);
        let first = FencingToken::new(next).map_err(|_| Refusal::TokensExhausted)?;
        let more = std::cmp::min(u64::from(count.get()) - 1, FencingToken::MAX.get() - next);
        self.last = Some(next + more);
        // It is at most the count that was asked for.
        let count = u32::try_from(more + 1).unwrap_or(count.get());
        Ok(Tokens { first, count })
    }
}
