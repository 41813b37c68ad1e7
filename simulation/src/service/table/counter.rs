use std::{cmp::max, time::Duration};

use lock_core::{FencingToken, InitialToken};

use super::Refusal;

/// The one counter that all tokens come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    initial: InitialToken,
    /// The last token that was issued.
    last: Option<u64>,
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
        &self,
        floor: Option<FencingToken>,
        unix_time: Duration,
    ) -> Result<(), Refusal> {
        let Some(floor) = floor else { return Ok(()) };
        let last = self.last_or_first(unix_time);
        // The next token is always plausible.
        let greatest = max(self.initial.greatest_floor(last, unix_time), last + 1);
        match floor.get() > greatest {
            true => Err(Refusal::FloorImplausible { greatest }),
            false => Ok(()),
        }
    }

    /// Takes the next token.
    pub(super) fn draw(
        &mut self,
        floor: Option<FencingToken>,
        unix_time: Duration,
    ) -> Result<FencingToken, Refusal> {
        let least = floor.map_or(0, FencingToken::get);
        let next = max(self.last_or_first(unix_time).saturating_add(1), least);
        let token = FencingToken::new(next).map_err(|_| Refusal::TokensExhausted)?;
        self.last = Some(next);
        Ok(token)
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
}
