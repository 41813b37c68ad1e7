//! The task that deletes the nodes of leases that ran out, and of acquires that were dropped.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tracing::debug;

use super::{service::Service, table::Leftover};

/// The pause between two tries to delete a node.
const RETRY: Duration = Duration::from_millis(100);

/// Deletes such nodes until this future is dropped.
pub(super) async fn run(service: Arc<Service>) {
    let mut removals = FuturesUnordered::new();
    loop {
        // The notification is enabled before the table is read, so that nothing new is missed.
        let mut news = pin!(service.reaper.notified());
        news.as_mut().enable();
        let (fresh, next) = service.table().take_leftovers(service.runtime.now());
        removals.extend(fresh.into_iter().map(|leftover| remove(&service, leftover)));
        tokio::select! {
            biased;
            () = news => {}
            () = service.runtime.sleep_until(next) => {}
            Some(()) = removals.next() => {}
        }
    }
}

/// Tries until the node is gone. It is gone with its session at the latest.
async fn remove(service: &Service, leftover: Leftover) {
    while let Err(failure) = service.remove(&leftover).await {
        debug!(?failure, "a node could not be deleted, trying again");
        service.runtime.sleep(RETRY).await;
    }
}
