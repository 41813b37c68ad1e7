use std::{ops::Index, slice, time::Duration, vec};

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};

use super::{LeaseGuard, Lost};
use crate::{Error, Released};

/// The guards of several resources, in the order in which they were named.
///
/// Each guard has a lease of its own with a token of its own: a write to one of the resources needs
/// the sequencer of the guard of that resource. The loss of one lease does not end the others.
/// [`lost`](LeaseGuards::lost) completes with the first loss.
///
/// # Dropping
/// As [`LeaseGuard`], for each guard.
#[must_use = "dropping the guards releases the leases"]
#[clippy::has_significant_drop]
#[derive(Debug)]
pub struct LeaseGuards {
    guards: Vec<LeaseGuard>,
}

impl LeaseGuards {
    pub(super) const fn new(guards: Vec<LeaseGuard>) -> Self {
        Self { guards }
    }

    /// The guard of this resource, if it is among them.
    #[must_use]
    pub fn get(&self, resource: &str) -> Option<&LeaseGuard> {
        self.iter()
            .find(|guard| guard.resource().as_str() == resource)
    }

    /// The guards, in the order in which their resources were named.
    pub fn iter(&self) -> slice::Iter<'_, LeaseGuard> {
        self.guards.iter()
    }

    /// The time until the earliest of their deadlines, by the local clock.
    ///
    /// # Errors
    /// [`Lost`] as soon as one of the leases is lost.
    pub fn remaining(&self) -> Result<Duration, Lost> {
        let mut least = Duration::MAX;
        for guard in self {
            least = std::cmp::min(least, guard.remaining()?);
        }
        Ok(least)
    }

    /// Completes when the first of the leases is lost.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn lost(&self) -> Lost {
        let mut losses: FuturesUnordered<_> = self.iter().map(LeaseGuard::lost).collect();
        match losses.next().await {
            Some(lost) => lost,
            // There is nothing to lose.
            None => std::future::pending().await,
        }
    }

    /// Releases all of them at once. The answers are in the order of the guards.
    ///
    /// # Errors
    /// The first error of [`LeaseGuard::release`]. The other guards have been released
    /// nevertheless.
    ///
    /// # Cancel safety
    /// The guards are gone and the watchdog finishes the releases.
    pub async fn release_all(self) -> Result<Vec<Released>, Error> {
        let released = join_all(self.into_iter().map(LeaseGuard::release)).await;
        released.into_iter().collect()
    }
}

/// The guard of the resource that was named at this position.
///
/// # Panics
/// If fewer were named.
impl Index<usize> for LeaseGuards {
    type Output = LeaseGuard;

    #[track_caller]
    fn index(&self, place: usize) -> &LeaseGuard {
        &self.guards[place]
    }
}

impl IntoIterator for LeaseGuards {
    type Item = LeaseGuard;
    type IntoIter = vec::IntoIter<LeaseGuard>;

    fn into_iter(self) -> Self::IntoIter {
        self.guards.into_iter()
    }
}

impl<'a> IntoIterator for &'a LeaseGuards {
    type Item = &'a LeaseGuard;
    type IntoIter = slice::Iter<'a, LeaseGuard>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
