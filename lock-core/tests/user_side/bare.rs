use std::num::NonZeroU32;

use lock_core::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Error, Grant, Inspection,
    LockBackend, Released, RenewRequest, Renewed, ResourceName, Sequencer, memory::MemoryBackend,
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

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        assert_eq!(request.reserve, NonZeroU32::MIN, "it does not claim that");
        self.0.acquire(request)
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        self.0.renew(leases)
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
        self.0.release(lease)
    }

    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>> {
        self.0.cancel(attempt)
    }

    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>> {
        self.0.inspect(resource)
    }
}
