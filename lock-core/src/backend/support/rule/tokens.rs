use std::{cmp::max, time::Duration};

use crate::{Error, ErrorKind, FencingToken, InitialToken};

/// The tokens that a lock service draws.
#[derive(Clone, Copy, Debug)]
pub struct Tokens {
    initial: InitialToken,
    are_of_one_counter: bool,
    /// The next token, unless a resource or a floor needs a greater one.
    next: u64,
    greatest_floor: u64,
}

impl Tokens {
    /// The tokens of one counter for all resources.
    #[must_use]
    pub const fn of_one_counter(initial: InitialToken) -> Self {
        Self {
            initial,
            are_of_one_counter: true,
            next: 0,
            greatest_floor: 0,
        }
    }

    /// The tokens of resources with a counter each. The counters begin at the clock.
    #[must_use]
    pub fn by_the_clock(unix_time: Duration) -> Self {
        let mut tokens = Self::of_one_counter(InitialToken::Clock);
        tokens.are_of_one_counter = false;
        tokens.look_at(unix_time);
        tokens
    }

    /// Takes the time of the wall clock. A counter without an initial token begins at this time,
    /// and a floor far ahead of it is refused. The next token is always plausible.
    pub fn look_at(&mut self, unix_time: Duration) {
        if self.next == 0 {
            self.next = match self.initial {
                InitialToken::Clock => InitialToken::clock_token(unix_time),
                InitialToken::At(token) => token.get(),
            };
        }
        let last = self.next.saturating_sub(1);
        let greatest = self.initial.greatest_floor(last, unix_time);
        self.greatest_floor = max(greatest, self.next);
    }

    /// Refuses a floor that is implausibly far above the counter.
    ///
    /// # Errors
    /// [`ErrorKind::FloorImplausible`].
    pub fn check_floor(&self, floor: Option<FencingToken>) -> Result<(), Error> {
        let greatest = self.greatest_floor;
        match floor {
            Some(floor) if floor.get() > greatest => {
                Err(Error::not_applied(ErrorKind::FloorImplausible)
                    .because(format!("at most {greatest} is plausible now")))
            }
            _ => Ok(()),
        }
    }

    /// Draws a token above the last one of the resource, and not below the floor.
    ///
    /// # Errors
    /// [`ErrorKind::TokensExhausted`].
    pub fn draw(&mut self, last: u64, floor: Option<FencingToken>) -> Result<FencingToken, Error> {
        let least = max(last + 1, floor.map_or(0, FencingToken::get));
        let token = FencingToken::new(max(self.next, least))
            .map_err(|_| Error::not_applied(ErrorKind::TokensExhausted))?;
        if self.are_of_one_counter {
            self.next = token.get() + 1;
        }
        Ok(token)
    }
}
