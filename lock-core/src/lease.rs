use std::time::Duration;

use crate::{FencingToken, Moment};

/// A right that ends by itself: its deadline, and when it should next be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    deadline: Moment,
    renew_by: Moment,
    /// How long it was when it was granted or renewed, as far as is known.
    length: Duration,
}

impl Lease {
    /// A lease that ends `left` after `asked`, the moment *before* the request was sent.
    ///
    /// Counting from the request errs on the safe side: the lock service started its own count
    /// later. Renewal is due after a third of the time left.
    #[must_use]
    pub fn counted_from(asked: Moment, left: Duration) -> Self {
        Self {
            deadline: asked + left,
            renew_by: asked + left / 3,
            length: left,
        }
    }

    /// The same lease, but its first renewal is due already after one `part`-th of the time left:
    /// the service that granted it waits for that renewal as a sign of life.
    #[must_use]
    pub fn to_be_confirmed(self, now: Moment, part: u32) -> Self {
        Self {
            renew_by: now + self.deadline.since(now) / part,
            ..self
        }
    }

    /// The moment from which the lease must not be relied on.
    #[must_use]
    pub const fn deadline(self) -> Moment {
        self.deadline
    }

    /// Some lock services grant more than what was asked for.
    #[must_use]
    pub const fn length(self) -> Duration {
        self.length
    }

    /// The moment at which the next renewal should be sent.
    #[must_use]
    pub const fn renew_by(self) -> Moment {
        self.renew_by
    }
}

/// The result of a successful acquire: a token of its own and a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// The fencing token of this acquisition.
    pub token: FencingToken,
    /// How long the grant may be relied on.
    pub lease: Lease,
    /// How many consecutive tokens, from this one on, belong to the holder; at least 1.
    pub reserved: u32,
    /// Whether it was handed to a waiter, rather than found free at the first look.
    pub waited: bool,
}

impl Grant {
    /// Puts a grant together.
    #[must_use]
    pub const fn new(token: FencingToken, lease: Lease) -> Self {
        Self {
            token,
            lease,
            reserved: 1,
            waited: false,
        }
    }

    /// Says that it was handed over to a waiter.
    #[must_use]
    pub const fn after_waiting(mut self) -> Self {
        self.waited = true;
        self
    }

    /// Says how many consecutive tokens, from this one on, belong to the holder.
    #[must_use]
    pub const fn reserving(mut self, tokens: u32) -> Self {
        self.reserved = tokens;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn a_sign_of_life_is_due_after_a_part_of_what_is_left() {
        let lease = Lease::counted_from(at(100), Duration::from_secs(9));
        let confirmed = lease.to_be_confirmed(at(101), 4);
        assert_eq!((lease.renew_by(), confirmed.renew_by()), (at(103), at(103)));
        let sooner = lease.to_be_confirmed(at(101), 8);
        assert_eq!((sooner.renew_by(), sooner.deadline()), (at(102), at(109)));
    }
}
