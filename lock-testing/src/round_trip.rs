use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use super::pause::there_and_back;
use lock_core::{
    Attempt, Capabilities, Error, FencingToken, Inspection, Listed, Released, ResourceName,
    Sequencer,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, BoxedRequests, Forced, Grant, LockBackend,
        LockService, RenewRequest, Renewed, Reply, Request, Requests, Runtime, Wake,
    },
};

/// The link between a process and the lock service, with one await on the way there and one on the
/// way back.
///
/// Without the link a lock service in memory would answer at once, and no pause could land between
/// the effect of a request and its answer.
pub(super) struct Link {
    service: LockService,
    /// The runtime of the process.
    runtime: Arc<dyn Runtime>,
}

/// The requests of one attempt, over the link.
struct Linked<'a>(BoxedRequests<'a>);

impl Link {
    pub(super) const fn new(service: LockService, runtime: Arc<dyn Runtime>) -> Self {
        Self { service, runtime }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Requests for Linked<'_> {
    fn hears(&self) -> bool {
        self.0.hears()
    }

    async fn send(&self, request: Request) -> Result<Reply, Error> {
        there_and_back(name_of(request), None, || self.0.send(request)).await
    }

    fn has_copied(&self) -> bool {
        self.0.has_copied()
    }

    fn longest_request(&self) -> Duration {
        self.0.longest_request()
    }

    async fn woken(&self) -> Wake {
        self.0.woken().await
    }
}

const fn name_of(request: Request) -> &'static str {
    match request {
        Request::Look { .. } => "acquire",
        Request::Confirm(_) => "confirm",
        Request::Release { .. } => "release",
        Request::Cancel => "cancel",
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

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Linked(self.service.requests(request))
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        there_and_back("renew", None, || self.service.renew(leases)).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        there_and_back("release", None, move || {
            self.service.release(lease, tombstone)
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

/// Shows the lock service, because the link stands for it.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service.fmt(f)
    }
}
