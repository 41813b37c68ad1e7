//! Lists the held resources, by a scan of all keys of the lock service.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::RedisBackend;
use lock_core::{Error, Listed, ResourceName};

/// The number of keys per step of a scan, and of inspections at the same time.
const SCAN: usize = 1000;
const AT_A_TIME: usize = 32;

impl RedisBackend {
    /// Scans for leases of our prefix, and inspects each resource that it finds.
    pub(super) async fn list_all(&self) -> Result<Vec<Listed>, Error> {
        let pattern = self.service.keys.all_leases();
        let keys = self.service.nodes.scan(&pattern, SCAN).await?;
        // A scan may show a key twice.
        let resources: BTreeSet<ResourceName> = keys
            .iter()
            .filter_map(|key| self.service.keys.resource_of(key))
            .collect();
        let inspections = stream::iter(resources).map(|resource| async move {
            let inspection = self.service.inspect(&resource).await?;
            Ok::<_, Error>(Listed {
                resource,
                inspection,
            })
        });
        let listed: Vec<_> = inspections.buffered(AT_A_TIME).try_collect().await?;
        // The key of a lease stays for a while after its end.
        Ok(listed
            .into_iter()
            .filter(|listed| {
                listed.inspection.holder.is_some() || listed.inspection.waiters > Some(0)
            })
            .collect())
    }
}
