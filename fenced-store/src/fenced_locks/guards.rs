use std::{ops::Deref, slice, time::Duration, vec};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use lock_core::{LeaseGuard, Lost, Released};

use super::{FencedGuard, FencedLocks};
use crate::{Begin, Storage};

/// The guards of several resources, in the order in which they were named. The store knows the
/// token of each.
///
/// This type derefs to the slice of the guards. Each guard has a lease of its own with a token of
/// its own. The loss of one lease does not end the others, but a transaction that all guards fence
/// is then refused.
///
/// # Dropping
/// As [`LeaseGuard`], for each guard.
#[must_use = "dropping the guards releases the leases"]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct FencedGuards<DB: Storage> {
    guards: Vec<FencedGuard<DB>>,
}

impl<DB: Storage> FencedGuards<DB> {
    /// The caller must have claimed the token of each lease.
    pub(super) fn new(leases: Vec<LeaseGuard>, protected: &FencedLocks<DB>) -> Self {
        let guard = |lease| FencedGuard::new(lease, protected);
        let guards = leases.into_iter().map(guard).collect();
        Self { guards }
    }

    /// Prepares a transaction that is fenced by all guards. It never claims again.
    ///
    /// # Errors
    /// Awaiting it fails as [`FencedGuard::begin`] does, if any of the guards is refused.
    ///
    /// # Panics
    /// Never: there is at least one guard.
    pub fn begin(&self) -> Begin<'_, DB> {
        let begin = self.guards[0].begin();
        self.guards.iter().skip(1).fold(begin, Begin::and)
    }

    /// The guard of this resource, if there is one.
    #[must_use]
    pub fn get(&self, resource: &str) -> Option<&FencedGuard<DB>> {
        self.iter()
            .find(|guard| guard.resource().as_str() == resource)
    }

    /// The time until the earliest deadline of the guards, by the local clock.
    ///
    /// # Errors
    /// [`Lost`] as soon as one of the leases is lost.
    pub fn remaining(&self) -> Result<Duration, Lost> {
        let mut guards = self.iter();
        guards.try_fold(Duration::MAX, |least, guard| {
            Ok(least.min(guard.remaining()?))
        })
    }

    /// Completes when the first of the leases is lost.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        let mut losses: FuturesUnordered<_> = self.iter().map(|guard| guard.lost()).collect();
        match losses.next().await {
            Some(lost) => lost,
            // Without a guard no lease can be lost.
            None => std::future::pending().await,
        }
    }

    /// Releases all guards at once. The answers are in the order of the guards. The marks in the
    /// store stay.
    ///
    /// # Errors
    /// The first error of [`FencedGuard::release`]. The others have been released nevertheless.
    ///
    /// # Cancel safety
    /// The guards are gone, and the watchdog finishes the releases.
    pub async fn release_all(self) -> Result<Vec<Released>, lock_core::Error> {
        let released = join_all(self.into_iter().map(FencedGuard::release)).await;
        released.into_iter().collect()
    }
}

impl<DB: Storage> Deref for FencedGuards<DB> {
    type Target = [FencedGuard<DB>];

    fn deref(&self) -> &[FencedGuard<DB>] {
        &self.guards
    }
}

impl<DB: Storage> IntoIterator for FencedGuards<DB> {
    type Item = FencedGuard<DB>;
    type IntoIter = vec::IntoIter<FencedGuard<DB>>;

    fn into_iter(self) -> Self::IntoIter {
        self.guards.into_iter()
    }
}

impl<'a, DB: Storage> IntoIterator for &'a FencedGuards<DB> {
    type Item = &'a FencedGuard<DB>;
    type IntoIter = slice::Iter<'a, FencedGuard<DB>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
