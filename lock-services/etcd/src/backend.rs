use std::sync::Arc;

use tracing::warn;

use super::{
    KIND, acquire::Asking, client::Client, keys::Keys, service::Service, service_url::ServiceUrl,
    tombstones,
};
use lock_core::{
    Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed, Released,
    ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, ConnectOptions, Forced, LockBackend, RenewRequest,
        Renewed, Requests, Runtime, repeat, support::connecting::connect,
    },
};

/// A lock service on etcd. When it is dropped, it first tries to revoke the leases that it has
/// ended recently, and then closes its connections.
#[derive(Debug)]
pub struct EtcdBackend {
    service: Arc<Service>,
}

impl EtcdBackend {
    /// Connects, and makes a floor if there is none. It also connects to a cluster without space:
    /// there leases can be looked at and ended, but none can be acquired.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput),
    /// [`ErrorKind::Unsupported`](lock_core::ErrorKind::Unsupported) without the feature of the
    /// scheme, [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if no node answers for
    /// 2 s and each of them was asked, [`ErrorKind::Refused`](lock_core::ErrorKind::Refused), or
    /// [`ErrorKind::CounterBroken`](lock_core::ErrorKind::CounterBroken) if the floor is no number.
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
            let client = Client::new(url, settings.response_timeout, runtime)?;
            let keys = Keys::new(&settings.prefix);
            let service = tombstones::start(client, keys, settings.initial_token);
            let lifted = repeat(service.runtime(), || service.lift_floor());
            if let Some(refusal) = lifted.await? {
                warn!(
                    error = &Error::from(refusal) as &dyn std::error::Error,
                    "leases can be looked at and ended here, but none can be acquired"
                );
            }
            Ok(Self { service })
        })
        .await
    }
}

impl LockBackend for EtcdBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::Durable, Fairness::Fifo, Waking::Pushed)
            .counting(lock_core::TokenScale::Revision)
            .extended(&[
                Extension::Metadata,
                Extension::QueueLimit,
                Extension::Holds,
                Extension::ForceRelease,
                Extension::List,
            ])
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.service.client.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Asking::new(&self.service, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.service.renew_all(leases).await
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

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        self.service.release_hold(lease, attempt).await
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
