//! Our lock.

use std::time::Duration;

use lock_core::{LeaseGuard, LockManager, ResourceName, Ttl};
use palisade::Cohort;

use super::{Job, Strategy, contender::Contender};
use crate::figure::BoxError;

/// Far longer than a turn.
const TTL: Ttl = Ttl::secs(30);

pub(super) struct Ours {
    locks: LockManager,
    resource: ResourceName,
}

impl Ours {
    pub(super) async fn connect(job: &Job) -> Result<Self, BoxError> {
        let mut connecting = palisade::connect(&job.url);
        if job.strategy == Strategy::Cohort {
            connecting = connecting.cohort(Cohort::PASSES);
        }
        Ok(Self {
            locks: connecting.await?,
            resource: ResourceName::new(job.resource.as_str())?,
        })
    }
}

impl Contender for Ours {
    type Lease = LeaseGuard;

    async fn acquire(&self, _waiter: u32) -> Result<LeaseGuard, BoxError> {
        Ok(self.locks.acquire(&self.resource).ttl(TTL).await?)
    }

    fn token(lease: &LeaseGuard) -> u64 {
        lease.token().get()
    }

    /// A lease that was pushed is confirmed, and counts from the moment before that.
    fn told_ago(lease: &LeaseGuard) -> Duration {
        let left = lease.remaining().unwrap_or_default();
        TTL.get().saturating_sub(left)
    }

    async fn release(&self, _waiter: u32, lease: LeaseGuard) -> Result<(), BoxError> {
        lease.release().await?;
        Ok(())
    }
}
