use std::sync::Arc;

use super::{
    EtcdOptions, KIND, client::Client, keys::Keys, service::Service, service_url::ServiceUrl,
    tombstones,
};
use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, BoxFuture, Capabilities, Clock, Error,
    Extension, Fairness, Fencing, FencingToken, Forced, Grant, Inspection, Listed, LockBackend,
    Released, RenewRequest, Renewed, ResourceName, Sequencer, Waking,
};

/// A lock service on etcd. Dropping it closes its connections as soon as the leases that it has
/// ended of late are given back, or that has failed.
#[derive(Debug)]
pub struct EtcdBackend {
    service: Arc<Service>,
}

impl EtcdBackend {
    /// Connects, and sees to it that there is a floor.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported) without the feature of the
    /// scheme, [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if no node answers
    /// within 10 s, [`ErrorKind::Refused`](lock_core::ErrorKind::Refused), or
    /// [`ErrorKind::CounterBroken`](lock_core::ErrorKind::CounterBroken) if the floor is no number.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the connection is closed.
    pub async fn connect(
        url: &str,
        options: EtcdOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        options.check()?;
        let client = Client::new(ServiceUrl::parse(url)?, options.response_timeout, clock)?;
        let service = tombstones::start(client, Keys::new(&options.prefix), options.initial_token);
        service.lift_floor().await?;
        Ok(Self { service })
    }
}

impl LockBackend for EtcdBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::Durable, Fairness::Fifo, Waking::Pushed).extended(&[
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::Holds,
            Extension::ForceRelease,
            Extension::List,
        ])
    }

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        Box::pin(self.service.acquire(request))
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(self.service.renew_all(leases))
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(self.service.release(lease))
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

    fn release_hold<'a>(
        &'a self,
        lease: &'a Sequencer,
        attempt: AttemptId,
    ) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(self.service.release_hold(lease, attempt))
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
