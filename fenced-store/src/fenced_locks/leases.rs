use std::time::Duration;

use lock_core::{
    Acquire, AcquireAll, Error, FencingToken, LeaseGuard,
    backend::{AcquiresLeases, StoreSide},
};

use super::{FencedGuard, FencedGuards, FencedLocks};
use crate::Storage;

/// An acquisition of one lease, or of several, that is being prepared. Sealed.
#[expect(unnameable_types, reason = "what seals `AcquireFenced`")]
pub trait Leases: AcquiresLeases + Clone + Send + Sync {
    /// The leases that are acquired.
    type Held: AsRef<[LeaseGuard]> + IntoIterator<Item = LeaseGuard, IntoIter: Send> + Send;

    /// The guard that protects them.
    type Guard<DB: Storage>;

    /// Sets a shorter wait.
    fn within(self, wait: Duration) -> Self;

    /// Acquires all of them or none.
    fn acquired(self) -> impl Future<Output = Result<Self::Held, Error>> + Send;

    /// Asks the lock service to claim each token in the step that grants it, if it can.
    fn claiming(self) -> Self;

    /// The same acquisition, with a token that is at least this; `None` if it cannot demand one.
    fn above(&self, floor: FencingToken) -> Option<Self>;

    /// The guard of these leases. The caller has claimed the token of each.
    fn protected<DB: Storage>(held: Self::Held, protected: &FencedLocks<DB>) -> Self::Guard<DB>;
}

impl Leases for Acquire {
    type Held = [LeaseGuard; 1];
    type Guard<DB: Storage> = FencedGuard<DB>;

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

    fn protected<DB: Storage>(
        [lease]: [LeaseGuard; 1],
        protected: &FencedLocks<DB>,
    ) -> FencedGuard<DB> {
        FencedGuard::new(lease, protected)
    }
}

impl Leases for AcquireAll {
    type Held = Vec<LeaseGuard>;
    type Guard<DB: Storage> = FencedGuards<DB>;

    fn within(self, wait: Duration) -> Self {
        self.wait(wait)
    }

    /// Claims nothing in that step, because a caller that does not get all leases should claim
    /// none.
    fn claiming(self) -> Self {
        self
    }

    async fn acquired(self) -> Result<Vec<LeaseGuard>, Error> {
        Ok(self.await?.into_iter().collect())
    }

    /// A wait for such a token while other leases are held could deadlock.
    fn above(&self, _: FencingToken) -> Option<Self> {
        None
    }

    fn protected<DB: Storage>(
        leases: Vec<LeaseGuard>,
        protected: &FencedLocks<DB>,
    ) -> FencedGuards<DB> {
        FencedGuards::new(leases, protected)
    }
}
