use std::{fmt, sync::Arc};

use super::pause::there_and_back;
use lock_core::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, BoxFuture, Capabilities, Error, FencingToken,
    Forced, Grant, Inspection, Listed, LockBackend, Released, RenewRequest, Renewed, ResourceName,
    Sequencer,
};

/// The link between a process and the lock service: an await on the way there and one back.
///
/// Without it a lock service in memory answers at once, and no pause could land between its effect
/// and the client's knowledge of it.
pub(super) struct Link {
    service: Arc<dyn LockBackend>,
}

impl Link {
    pub(super) const fn new(service: Arc<dyn LockBackend>) -> Self {
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

    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
        Box::pin(there_and_back("acquire", None, || {
            self.service.acquire(request)
        }))
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(there_and_back("renew", None, || self.service.renew(leases)))
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(there_and_back("release", None, || {
            self.service.release(lease)
        }))
    }

    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(there_and_back("cancel", None, || {
            self.service.cancel(attempt)
        }))
    }

    fn inspect<'a>(
        &'a self,
        resource: &'a ResourceName,
    ) -> BoxFuture<'a, Result<Inspection, Error>> {
        Box::pin(there_and_back("inspect", None, || {
            self.service.inspect(resource)
        }))
    }

    fn release_hold<'a>(
        &'a self,
        lease: &'a Sequencer,
        attempt: AttemptId,
    ) -> BoxFuture<'a, Result<Released, Error>> {
        Box::pin(there_and_back("release_hold", None, move || {
            self.service.release_hold(lease, attempt)
        }))
    }

    fn force_release<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> BoxFuture<'a, Result<Forced, Error>> {
        Box::pin(there_and_back("force_release", None, move || {
            self.service.force_release(resource, token)
        }))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<Listed>, Error>> {
        Box::pin(there_and_back("list", None, || self.service.list()))
    }

    fn acquire_together<'a>(
        &'a self,
        requests: &'a [AcquireRequest],
    ) -> BoxFuture<'a, Result<Attempt<Vec<Grant>>, Error>> {
        Box::pin(there_and_back("acquire_together", None, || {
            self.service.acquire_together(requests)
        }))
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        self.service.part_of(resource)
    }
}

/// To its client, the link is the service.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.fmt(f)
    }
}
