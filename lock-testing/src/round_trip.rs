use std::{borrow::Cow, fmt};

use super::pause::there_and_back;
use lock_core::{
    Attempt, Capabilities, Error, FencingToken, Inspection, Listed, Released, ResourceName,
    Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Grant, LockBackend, LockService,
        RenewRequest, Renewed,
    },
};

/// The link between a process and the lock service: an await on the way there and one back.
///
/// Without it a lock service in memory answers at once, and no pause could land between its effect
/// and the client's knowledge of it.
pub(super) struct Link {
    service: LockService,
}

impl Link {
    pub(super) const fn new(service: LockService) -> Self {
        Self { service }
    }
}

#[deny(clippy::missing_trait_methods)]
impl LockBackend for Link {
    fn kind(&self) -> &'static str {
        self.service.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.service.capabilities()
    }

    async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        there_and_back("acquire", None, || self.service.acquire(request)).await
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        there_and_back("renew", None, || self.service.renew(leases)).await
    }

    async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        there_and_back("release", None, || self.service.release(lease)).await
    }

    async fn release_answered(&self, lease: &Sequencer, again: bool) -> Result<Released, Error> {
        there_and_back("release", None, move || {
            self.service.release_answered(lease, again)
        })
        .await
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        there_and_back("cancel", None, || self.service.cancel(attempt)).await
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        there_and_back("inspect", None, || self.service.inspect(resource)).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        there_and_back("release_hold", None, move || {
            self.service.release_hold(lease, attempt)
        })
        .await
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        there_and_back("force_release", None, move || {
            self.service.force_release(resource, token)
        })
        .await
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        there_and_back("list", None, || self.service.list()).await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        there_and_back("acquire_together", None, || {
            self.service.acquire_together(requests)
        })
        .await
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.service.part_of(resource)
    }

    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        self.service.lease_name(resource)
    }
}

/// To its client, the link is the service.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.fmt(f)
    }
}
