use std::sync::Arc;

use super::{KIND, RedlockOptions, keys::Keys, nodes::Nodes, service::Service};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Clock, Error, Extension,
    Fairness, Fencing, FencingToken, Forced, Grant, Inspection, Listed, LockBackend, Released,
    RenewRequest, Renewed, ResourceName, Sequencer, Waking,
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
    /// cannot be right, an even number of nodes, or two that are the same server;
    /// [`ErrorKind::Unavailable`](lock_core::ErrorKind::Unavailable) if too few nodes answer, and
    /// [`ErrorKind::Refused`](lock_core::ErrorKind::Refused) if too few serve and an operator has
    /// to do something about it: see [`RedlockNodes`](super::RedlockNodes).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    ///
    /// # Cancel safety
    /// Cancel safe: the connections are closed.
    pub async fn connect(
        url: &str,
        options: RedlockOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        let nodes = Nodes::new(url, &options, clock)?;
        nodes.check_serving().await?;
        Ok(Self {
            service: Service {
                nodes,
                keys: Keys::new(&options.prefix),
                initial: options.initial_token,
            },
        })
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

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        Box::pin(async move {
            let attempt = self.service.acquire(request).await;
            attempt.map_err(|error| error.on(&request.attempt.resource))
        })
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(self.service.renew(leases))
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
