use std::time::Duration;

use lock_core::{
    Acquire, AcquireAll, Error, FencingToken, LeaseGuard,
    backend::{AcquiresLeases, StoreSide},
};

use super::{FencedGuard, FencedGuards, FencedLocks};
use crate::Dialect;

/// An acquisition of one lease, or of several, that is being prepared. Sealed.
#[expect(unnameable_types, reason = "what seals `AcquireFenced`")]
pub trait Leases: AcquiresLeases + Clone + Send + Sync {
    /// What is acquired.
    type Held: AsRef<[LeaseGuard]> + IntoIterator<Item = LeaseGuard, IntoIter: Send> + Send;

    /// What protects them.
    type Guard<DB: Dialect>;

    /// Ends the wait sooner.
    fn within(self, wait: Duration) -> Self;

    /// Acquires all of them or none.
    fn acquired(self) -> impl Future<Output = Result<Self::Held, Error>> + Send;

    /// Has each token claimed in the step that grants it, where that is possible.
    fn claiming(self) -> Self;

    /// The same acquisition, with a token that is at least this; `None` if that is not possible.
    fn above(&self, floor: FencingToken) -> Option<Self>;

    /// The caller has claimed the token of each lease.
    fn protected<DB: Dialect>(held: Self::Held, protected: &FencedLocks<DB>) -> Self::Guard<DB>;
}

impl Leases for Acquire {
    type Held = [LeaseGuard; 1];
    type Guard<DB: Dialect> = FencedGuard<DB>;

    fn within(self, wait: Duration) -> Self {
        self.wait(wait)
    }

    fn claiming(self) -> Self {
        LeaseGuard::claiming(self)
    }

    async fn acquired(self) -> Result<[LeaseGuard; 1], Error> {
        Ok([self.await?])
    }

    fn above(&self, floor: FencingToken) -> Option<Self> {
        Some(self.clone().at_least(floor))
    }

    fn protected<DB: Dialect>(
        [lease]: [LeaseGuard; 1],
        protected: &FencedLocks<DB>,
    ) -> FencedGuard<DB> {
        FencedGuard::new(lease, protected)
    }
}

impl Leases for AcquireAll {
    type Held = Vec<LeaseGuard>;
    type Guard<DB: Dialect> = FencedGuards<DB>;

    fn within(self, wait: Duration) -> Self {
        self.wait(wait)
    }

    /// Nothing is claimed by a caller that does not get them all.
    fn claiming(self) -> Self {
        self
    }

    async fn acquired(self) -> Result<Vec<LeaseGuard>, Error> {
        Ok(self.await?.into_iter().collect())
    }

    /// Waiting for such a token while others are held could deadlock.
    fn above(&self, _: FencingToken) -> Option<Self> {
        None
    }

    fn protected<DB: Dialect>(
        leases: Vec<LeaseGuard>,
        protected: &FencedLocks<DB>,
    ) -> FencedGuards<DB> {
        FencedGuards::new(leases, protected)
    }
}
