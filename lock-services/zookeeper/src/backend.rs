use std::{fmt, sync::Arc};

use super::{KIND, acquire::Attempting, reaper, service::Service, service_url::ServiceUrl};
use lock_core::{
    Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed, Released,
    ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, Forced, LockBackend, RenewRequest, Renewed,
        Requests, Runtime,
        support::{OwnedTask, connecting::connect},
    },
};

/// A lock service on a ZooKeeper ensemble.
///
/// Dropping it ends its session, and with the session all leases that it granted.
pub struct ZooKeeperBackend {
    service: Arc<Service>,
    /// Ends when this is dropped.
    _reaper: OwnedTask,
}

impl ZooKeeperBackend {
    /// Connects to `zookeeper://[user:password@]HOST[:PORT],../[CHROOT][?session_ms=..]`. One of
    /// the servers has to answer.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput) for a URL or setting that
    /// cannot be right, [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if no server
    /// answers, [`ErrorKind::Refused`](lock_core::ErrorKind::Refused) for a login that is wrong.
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
            let (url, settings) = ServiceUrl::read(&options)?;
            let service = Arc::new(Service::new(url, &settings, runtime));
            service.session().await?;
            let reaper = service.sessions.own(reaper::run(Arc::clone(&service)));
            Ok(Self {
                service,
                _reaper: reaper,
            })
        })
        .await
    }
}

impl LockBackend for ZooKeeperBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::Durable, Fairness::Fifo, Waking::Pushed)
            .counting(lock_core::TokenScale::Revision)
            .extended(&[
                Extension::Metadata,
                Extension::QueueLimit,
                Extension::ForceRelease,
                Extension::List,
            ])
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.service.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + Send + 'a {
        Attempting::new(&self.service, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.service.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        self.service.release(lease, tombstone).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.service.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.service.inspect(resource).await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.service.force_release(resource, token).await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.service.list().await
    }
}

impl fmt::Debug for ZooKeeperBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeperBackend").finish_non_exhaustive()
    }
}
