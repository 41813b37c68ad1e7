use std::{sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::{sync::mpsc, task::JoinHandle};
use tracing::debug;

use super::{
    client::Client,
    wire::{Done, LeaseId, method},
};

/// Gives leases back whose keys are gone, after whoever ended them has gone on.
///
/// Nothing depends on it: such a lease keeps nobody out, and ends by itself.
#[derive(Debug)]
pub(super) struct Revoker {
    leases: mpsc::UnboundedSender<i64>,
    task: JoinHandle<()>,
}

/// How many are given back at the same time.
const AT_ONCE: usize = 16;
/// For how long it is tried.
const PATIENCE: Duration = Duration::from_secs(2);

impl Revoker {
    pub(super) fn start(client: Arc<Client>) -> Self {
        let (leases, mut queue) = mpsc::unbounded_channel();
        let queue = futures_util::stream::poll_fn(move |cx| queue.poll_recv(cx));
        let work = queue.for_each_concurrent(AT_ONCE, move |id| {
            let client = Arc::clone(&client);
            async move {
                let (request, until) = (LeaseId { id }, client.clock.now() + PATIENCE);
                match client.call(method::REVOKE, &request, until).await {
                    Ok(Done {}) => {}
                    Err(failure) if failure.no_lease() => {}
                    Err(failure) => debug!(?failure, "etcd: the lease ends by itself"),
                }
            }
        });
        #[expect(
            clippy::disallowed_methods,
            reason = "aborted when this value is dropped"
        )]
        let task = tokio::spawn(work);
        Self { leases, task }
    }

    /// Has a lease given back soon.
    pub(super) fn revoke(&self, lease: i64) {
        if self.leases.send(lease).is_err() {
            debug!("etcd: the lease ends by itself");
        }
    }
}

impl Drop for Revoker {
    fn drop(&mut self) {
        self.task.abort();
    }
}
