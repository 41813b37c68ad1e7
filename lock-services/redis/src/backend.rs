use std::sync::Arc;

use super::{
    KIND,
    acquire::Attempting,
    keys::Keys,
    pushes::Pushes,
    replicas::Replication,
    servers::{key_layout::Layout, nodes::Nodes, service_url::ServiceUrl},
    service::{ASKING_MAX, Service, Tombstone},
};
use lock_core::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Released, ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, ConnectOptions, Forced, Grant, LockBackend,
        RenewRequest, Renewed, Requests, Runtime,
        support::{Tasks, connecting::connect},
    },
};

/// A lock service on Redis. Dropping it closes its connections.
#[derive(Debug)]
pub struct RedisBackend {
    pub(super) service: Arc<Service>,
    /// Connections for renewals alone, because a renewal must not wait behind other requests.
    pub(super) renewals: Nodes,
    pub(super) pushes: Pushes,
    /// Waits for replicas, if grants count only when replicas have them.
    pub(super) replication: Option<Replication>,
}

impl RedisBackend {
    /// Connects, and agrees with the other clients on the layout of keys.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable),
    /// [`ErrorKind::Refused`](lock_core::ErrorKind::Refused), or
    /// [`ErrorKind::ConfigMismatch`](lock_core::ErrorKind::ConfigMismatch) if others use this
    /// prefix with another layout.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection is closed.
    pub async fn connect(
        to: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = to.into();
        connect(KIND, async {
            let (url, options, settings) = ServiceUrl::read(&options)?;
            let keys = Keys::new(&settings.prefix, options.shards);
            let layout = Layout::new(&keys, options.shards);
            let nodes = Nodes::open(&url, layout.clone(), ASKING_MAX, Arc::clone(&runtime)).await?;
            let renewals = Nodes::new(&url, layout.clone(), ASKING_MAX, Arc::clone(&runtime))?;
            let replication = match options.replicas {
                Some(replicas) => {
                    Some(Replication::open(&url, layout, replicas, Arc::clone(&runtime)).await?)
                }
                None => None,
            };
            let service = Arc::new(Service {
                nodes,
                keys,
                initial: settings.initial_token,
                tasks: Tasks::here(Arc::clone(&runtime)),
                runtime,
            });
            let pushes = Pushes::start(
                Arc::clone(&service),
                renewals.clone(),
                settings.response_timeout,
            );
            Ok(Self {
                service,
                renewals,
                pushes,
                replication,
            })
        })
        .await
    }
}

impl LockBackend for RedisBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, Waking::Pushed)
            .extended(Extension::ALL)
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.service.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Attempting::new(self, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.renew_all(leases).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.release_lease(lease, tombstone).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.service.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.service.inspect(resource).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let tombstone = Tombstone::OfAttempt(attempt);
        let shard = self.service.keys.shard(lease.resource());
        let released = self.service.release(lease, shard, tombstone, None).await;
        let (released, _) = released?;
        Ok(released)
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.service.force_release(resource, token).await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.list_all().await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let attempt = self.together(requests).await?;
        if let (Some(replication), Attempt::Granted(grants)) = (&self.replication, &attempt) {
            replication.secure(&self.service, requests, grants).await?;
        }
        Ok(attempt)
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        if self.service.nodes.shards_share_scripts() {
            0
        } else {
            self.service.keys.shard(resource)
        }
    }
}
