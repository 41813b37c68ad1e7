use std::sync::Arc;

use super::{KIND, acquire::Attempting, keys::Keys, nodes::Nodes, service::Service};
use lock_core::{
    Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed, Released,
    ResourceName, Sequencer, Waking,
    backend::{
        AcquireRequest, AttemptRef, ConnectOptions, Forced, LockBackend, RenewRequest, Renewed,
        Requests, Runtime, support::connecting::connect,
    },
};

/// A lock service on several independent Redis servers. Dropping it closes its connections.
#[derive(Debug)]
pub struct RedlockBackend {
    service: Service,
}

impl RedlockBackend {
    /// Connects to the nodes. A minority of them may be out of reach.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](lock_core::ErrorKind::InvalidInput) for a URL or setting that
    /// cannot be right, an even number of nodes, or two nodes that are the same server;
    /// [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if too few nodes answer, and
    /// [`ErrorKind::Refused`](lock_core::ErrorKind::Refused) if too few serve and an operator has
    /// to act: see [`RedlockNodes`](super::RedlockNodes).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the connections are closed.
    pub async fn connect(
        to: impl Into<ConnectOptions>,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, Error> {
        let options = to.into();
        connect(KIND, async {
            let (nodes, settings) = Nodes::new(&options, runtime)?;
            nodes.check_serving().await?;
            Ok(Self {
                service: Service {
                    nodes,
                    keys: Keys::new(&settings.prefix),
                    initial: settings.initial_token,
                },
            })
        })
        .await
    }
}

impl LockBackend for RedlockBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::Durable, Fairness::None, Waking::Polled).extended(&[
            Extension::Metadata,
            Extension::ForceRelease,
            Extension::List,
        ])
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.service.nodes.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Attempting::new(&self.service, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.service.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer, _tombstone: bool) -> Result<Released, Error> {
        self.service.release(lease).await
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
