use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, BoxFuture, Capabilities, Error, ErrorKind,
    Extension, FencingToken, Forced, Grant, Inspection, Listed, LockBackend, Operation, Released,
    RenewRequest, Renewed, ResourceName, Sequencer, Upkeep,
};

/// Says of every acquisition that a watchdog keeps it up, so that a cohort lets it into the line.
///
/// So none can be held several times over: that is for those that others may be told of.
#[derive(Debug)]
pub(crate) struct Joining<B>(pub(crate) B);

#[deny(clippy::missing_trait_methods)]
impl<B: LockBackend> LockBackend for Joining<B> {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().extended(&[
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::Reserve,
            Extension::ForceRelease,
            Extension::List,
            Extension::Together,
        ])
    }

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        let mut request = request.clone();
        request.upkeep = Upkeep::Watchdog;
        Box::pin(async move { self.0.acquire(&request).await })
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

    fn release_hold<'a>(
        &'a self,
        lease: &'a Sequencer,
        attempt: AttemptId,
    ) -> BoxFuture<'a, Result<Released, Error>> {
        let _ = attempt;
        let error = Error::not_applied(ErrorKind::Unsupported, Operation::Release, self.kind());
        let error = error.on(lease.resource());
        Box::pin(std::future::ready(Err(error)))
    }

    fn force_release<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> BoxFuture<'a, Result<Forced, Error>> {
        self.0.force_release(resource, token)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, Error>> {
        self.0.list()
    }

    fn acquire_together<'a>(
        &'a self,
        requests: &'a [AcquireRequest],
    ) -> BoxFuture<'a, Result<Attempt<Vec<Grant>>, Error>> {
        self.0.acquire_together(requests)
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.0.part_of(resource)
    }
}
