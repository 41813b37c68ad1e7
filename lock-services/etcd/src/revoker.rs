use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::backend::{repeat, support::Tasks};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tracing::debug;

use super::{
    client::Client,
    wire::{Done, LeaseId, method},
};

/// Revokes leases whose keys are gone, some time later. No caller waits for that.
///
/// Nothing depends on a revocation: a lease without keys keeps no other client out, and ends by
/// itself. But each revocation is a change that etcd writes to its disk, and requests have to wait
/// for that, most of all the requests of the next in the queue. So leases are revoked together, a
/// little later.
///
/// When this is dropped, it revokes the leases that are left, and ends.
#[derive(Debug)]
pub(super) struct Revoker {
    leases: UnboundedSender<i64>,
}

/// The time for which leases are collected.
const DELAY: Duration = Duration::from_secs(1);
/// The number of leases that are revoked at the same time. When this many wait, the delay ends.
const AT_ONCE: usize = 64;

impl Revoker {
    pub(super) fn start(client: Arc<Client>, tasks: &Tasks) -> Self {
        let (leases, queue) = mpsc::unbounded_channel();
        tasks.spawn(work(client, queue));
        Self { leases }
    }

    /// Revokes a lease soon.
    pub(super) fn revoke(&self, lease: i64) {
        if self.leases.send(lease).is_err() {
            debug!("etcd: the lease ends by itself");
        }
    }
}

async fn work(client: Arc<Client>, mut queue: UnboundedReceiver<i64>) {
    let mut together = Vec::with_capacity(AT_ONCE);
    while let Some(first) = queue.recv().await {
        together.push(first);
        let until = client.runtime.now() + DELAY;
        tokio::select! {
            biased;
            () = fill(&mut together, &mut queue) => {}
            () = client.runtime.sleep_until(until) => {}
        }
        join_all(together.drain(..).map(|lease| revoke(&client, lease))).await;
    }
}

/// Completes when there are enough leases, or when no more will come.
async fn fill(together: &mut Vec<i64>, queue: &mut UnboundedReceiver<i64>) {
    while together.len() < AT_ONCE {
        let room = AT_ONCE - together.len();
        if queue.recv_many(together, room).await == 0 {
            return;
        }
    }
}

async fn revoke(client: &Client, id: i64) {
    let lease = LeaseId { id };
    let revoked = repeat(&*client.runtime, || async {
        match client.call(method::REVOKE, &lease).await {
            Ok(Done {}) => Ok(()),
            Err(failure) if failure.no_lease() => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    });
    if let Err(error) = revoked.await {
        debug!(%error, "etcd: the lease ends by itself");
    }
}
