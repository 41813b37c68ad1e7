use std::time::Duration;

use crate::{FencingToken, Moment};

/// A right that ends by itself: its deadline, and when it should next be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    deadline: Moment,
    renew_by: Moment,
    /// The length of the lease when it was granted or last renewed, as far as it is known.
    length: Duration,
}

impl Lease {
    /// A lease that ends `left` after `asked`, the moment *before* the request was sent.
    ///
    /// This is safe, because the lock service started its own count later. Renewal is due after a
    /// third of the time left.
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

    /// The length of the lease. Some lock services grant a longer time than requested.
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
    /// The lease, which says how long the grant may be relied on.
    pub lease: Lease,
    /// Whether the lease was granted to a waiter, and not at the first look.
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

    /// Says that the lease was granted to a waiter.
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
