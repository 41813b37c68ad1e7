use std::num::NonZeroU32;

use lock_core::{
    AcquireRequest, Attempt, AttemptRef, Capabilities, Error, Grant, Inspection, LockBackend,
    Released, RenewRequest, Renewed, ResourceName, Sequencer, memory::MemoryBackend,
};

/// A lock service that has no more than every one has to have.
#[derive(Debug)]
pub(crate) struct Bare(pub(crate) MemoryBackend);

impl LockBackend for Bare {
    fn kind(&self) -> &'static str {
        "bare"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().extended(&[])
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        assert_eq!(request.reserve, NonZeroU32::MIN, "it does not claim that");
        self.0.acquire(request).await
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.0.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        self.0.release(lease).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.0.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.0.inspect(resource).await
    }
}
