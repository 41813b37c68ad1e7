use std::time::Duration;

use crate::{FencingToken, Moment};

/// A right that ends by itself: its deadline, and when it should next be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// The moment from which the lease must not be relied on.
    #[must_use]
    pub const fn deadline(self) -> Moment {
        self.deadline
    }

    /// Some lock services grant a longer time than requested.
    pub(crate) const fn length(self) -> Duration {
        self.length
    }

    /// The moment at which the next renewal should be sent.
    #[must_use]
    pub const fn renew_by(self) -> Moment {
        self.renew_by
    }
}

/// The result of a successful acquire: a token of its own and a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Grant {
    /// The fencing token of this acquisition.
    pub token: FencingToken,
    /// How long the grant may be relied on.
    pub lease: Lease,
    /// Whether it was handed to a waiter, rather than found free at the first look.
    pub waited: bool,
    /// Whether its token was claimed in the same step, as
    /// [`AcquireRequest::claim`](crate::AcquireRequest::claim) asked for.
    pub claimed: bool,
}

impl Grant {
    /// Puts a grant together.
    #[must_use]
    pub const fn new(token: FencingToken, lease: Lease) -> Self {
        Self {
            token,
            lease,
            waited: false,
            claimed: false,
        }
    }

    /// Says that it was handed over to a waiter.
    #[must_use]
    pub const fn after_waiting(mut self) -> Self {
        self.waited = true;
        self
    }

    /// Says whether its token was claimed in the same step.
    #[must_use]
    pub const fn claimed(mut self, claimed: bool) -> Self {
        self.claimed = claimed;
        self
    }
}
