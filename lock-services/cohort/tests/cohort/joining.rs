use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Capabilities, Error, ErrorKind, Extension,
    FencingToken, Forced, Grant, Inspection, Listed, LockBackend, Released, RenewRequest, Renewed,
    ResourceName, Sequencer, Upkeep,
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

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let mut request = request.clone();
        request.upkeep = Upkeep::Watchdog;
        self.0.acquire(&request).await
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        self.0.renew(leases).await
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        self.0.release(lease).await
    }

    async fn release_answered(&self, lease: &Sequencer, again: bool) -> Result<Released, Error> {
        self.0.release_answered(lease, again).await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.0.cancel(attempt).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        self.0.inspect(resource).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let _ = attempt;
        let _ = lease;
        std::future::ready(Err(Error::not_applied(ErrorKind::Unsupported))).await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        self.0.force_release(resource, token).await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.0.list().await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.0.acquire_together(requests).await
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.0.part_of(resource)
    }
}
