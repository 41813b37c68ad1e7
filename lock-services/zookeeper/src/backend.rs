use std::{fmt, sync::Arc};

use tokio::task::JoinSet;

use super::{
    KIND, ZooKeeperOptions, acquiring::Acquiring, reaper, service::Service, service_url::ServiceUrl,
};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Clock, Error, Extension,
    Fairness, Fencing, FencingToken, Forced, Grant, Inspection, Listed, LockBackend, Operation,
    Released, RenewRequest, Renewed, ResourceName, Sequencer, Waking,
};

/// A lock service on a ZooKeeper ensemble.
///
/// Dropping it ends its session, and with it all leases that it granted.
pub struct ZooKeeperBackend {
    service: Arc<Service>,
    /// Aborted when this is dropped.
    _reaper: JoinSet<()>,
}

impl ZooKeeperBackend {
    /// Connects to `zookeeper://[user:password@]HOST[:PORT],../[CHROOT][?session_ms=..]`, of which
    /// one server has to answer.
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
        url: &str,
        options: ZooKeeperOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let url = ServiceUrl::parse(url)?;
        let mut options = options;
        if let Some(timeout) = url.session_timeout {
            options = options.session_timeout(timeout);
        }
        options.check()?;
        let service = Arc::new(Service::new(url, &options, clock));
        let once = service.clock.now();
        service.sessions.get(Operation::Connect, once).await?;
        let mut reaper = JoinSet::new();
        reaper.spawn(reaper::run(Arc::clone(&service)));
        Ok(Self {
            service,
            _reaper: reaper,
        })
    }
}

impl LockBackend for ZooKeeperBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::Durable, Fairness::Fifo, Waking::Pushed).extended(&[
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::ForceRelease,
            Extension::List,
        ])
    }

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        Box::pin(Acquiring::new(&self.service, request).run())
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(self.service.renew(leases))
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(async move {
            let released = self.service.release(lease).await;
            released.map_err(|error| error.on(lease.resource()))
        })
    }

    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(self.service.cancel(attempt))
    }

    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>> {
        Box::pin(self.service.inspect(resource))
    }

    fn force_release<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> BoxFuture<'a, Result<Forced, Error>> {
        Box::pin(self.service.force_release(resource, token))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, Error>> {
        Box::pin(self.service.list())
    }
}

impl fmt::Debug for ZooKeeperBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeperBackend").finish_non_exhaustive()
    }
}
