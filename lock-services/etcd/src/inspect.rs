use std::{collections::HashMap, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    failure::Failure,
    record::{Entry, Kept},
    service::{Service, TRIES},
    wire::RangeRequest,
};
use lock_core::{Error, HolderView, Inspection, Listed, ResourceName};

/// The number of leases whose time left is asked for at the same time.
const AT_ONCE: usize = 16;
/// The time left of a lease for which etcd says 0 s, which means less than 1 s.
const LITTLE: Duration = Duration::from_millis(1);

impl Service {
    pub(super) async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let queue = self.keys.queue(resource);
        for _ in 0..TRIES {
            let read = self.read([RangeRequest::oldest(&queue)]).await?;
            let read = read.ranges().next().unwrap_or_default();
            let Some(holder) = read.kvs.first() else {
                break;
            };
            let view = self.view(&Kept::read(holder)).await?;
            if view.is_some() {
                let waiters = u64::try_from(read.count - 1).unwrap_or(0);
                return Ok(Inspection::new(view).waiters(waiters));
            }
        }
        Ok(Inspection::new(None).waiters(0))
    }

    /// The view that others have of a holder. `None` if its lease has ended since its entry was
    /// read.
    async fn view(&self, entry: &Kept<Entry>) -> Result<Option<HolderView>, Failure> {
        let left = self.left(entry.lease).await?;
        Ok(left.and_then(|life| entry.view(std::cmp::max(life.ttl, LITTLE))))
    }

    pub(super) async fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut queues: HashMap<ResourceName, (Kept<Entry>, u64)> = HashMap::new();
        // The oldest entries come first, so the holder comes before the waiters.
        for kv in self.entries().await? {
            if let Some(resource) = self.keys.resource(&kv.key) {
                let queue = queues
                    .entry(resource)
                    .or_insert_with(|| (Kept::read(&kv), 0));
                queue.1 += 1;
            }
        }
        let listed = stream::iter(queues).map(|(resource, (holder, number))| async move {
            let inspection = Inspection::new(self.view(&holder).await?).waiters(number - 1);
            Ok::<_, Failure>(Listed {
                resource,
                inspection,
            })
        });
        Ok(listed.buffer_unordered(AT_ONCE).try_collect().await?)
    }

    /// How long the present lease of a resource lives unless it is kept alive. If there is no
    /// lease, a very short time.
    pub(super) async fn time_left(&self, resource: &ResourceName) -> Result<Duration, Failure> {
        let read = self
            .read([RangeRequest::oldest(&self.keys.queue(resource))])
            .await?;
        let holder = read.ranges().flat_map(|range| range.kvs).next();
        let left = match holder {
            Some(holder) => self.left(holder.lease).await?,
            None => None,
        };
        // The time is rounded up, because a caller that asks too early has to ask once more.
        Ok(left.map_or(LITTLE, |life| life.ttl + Duration::from_secs(1)))
    }
}
