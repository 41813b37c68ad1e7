//! Ending a lease, which may hand it to a waiter of the same process.

use std::sync::Arc;

use super::{RedisBackend, service::Tombstone};
use lock_core::{Error, Released, Sequencer};

impl RedisBackend {
    /// Ends a lease.
    ///
    /// If attempts of this process wait, the answer may have the grant of one of them, with a full
    /// lease, so that the grant needs no push and no confirmation. Such a release goes on without
    /// its caller. If it fails, the server may have granted nevertheless, so the waiters look.
    ///
    /// Such a grant is not asked for if replicas must have grants, because replicas need not have
    /// it when the answer arrives.
    pub(super) async fn release_lease(
        &self,
        lease: &Sequencer,
        tombstone: bool,
    ) -> Result<Released, Error> {
        let (service, shard) = (&self.service, self.service.keys.shard(lease.resource()));
        let may_hand = !tombstone && self.replication.is_none();
        let waiters = may_hand.then(|| self.pushes.waiters_in(shard)).flatten();
        let Some(waiters) = waiters else {
            let tombstone = match tombstone {
                true => Tombstone::OfAcquisition,
                false => Tombstone::None,
            };
            return Ok(service.release(lease, shard, tombstone, None).await?.0);
        };
        let (ending, lease) = (Arc::clone(service), lease.clone());
        let release = async move {
            let client = Some(waiters.client());
            let ended = ending.release(&lease, shard, Tombstone::None, client);
            let released = ended.await;
            match &released {
                Ok((_, Some(grant))) => waiters.receive(grant.clone(), true),
                Ok((_, None)) => {}
                Err(_) => waiters.missed(shard),
            }
            released.map(|(released, _)| released)
        };
        service.tasks.finish(release).await
    }
}
