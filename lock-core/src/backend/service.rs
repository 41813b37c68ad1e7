use std::{borrow::Cow, collections::BTreeSet, fmt, sync::Arc};

use super::{
    AcquireRequest, Acquisition, Attempt, AttemptId, AttemptRef, BoxedRequests, Ended, Forced,
    Inspection, Listed, LockBackend, LockBackendExt, Released, RenewRequest, Renewed, Runtime,
    Shutdown,
};
use crate::{
    BoxFuture, Capabilities, Error, ErrorKind, FencingToken, Grant, Operation, ResourceName,
    Sequencer, acquisition,
};

/// A [`LockBackend`] behind a pointer; clones are the same lock service.
///
/// Made from a backend, or from an `Arc` of a backend that is in use elsewhere, too. Names
/// operation, kind and resource in the errors of the backend.
#[derive(Clone)]
pub struct LockService(Arc<dyn Boxed>);

/// [`LockBackend`] with boxed futures, so that it can be `dyn`.
trait Boxed: fmt::Debug + Send + Sync {
    fn kind(&self) -> &'static str;
    fn capabilities(&self) -> Capabilities;
    fn part_of(&self, resource: &ResourceName) -> u16;
    fn runtime(&self) -> Arc<dyn Runtime>;
    fn drive<'a>(
        &'a self,
        attempt: &'a mut Acquisition,
        request: &'a AcquireRequest,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, Ended>;
    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> BoxedRequests<'a>;
    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str>;
    fn acquire<'a>(&'a self, request: &'a AcquireRequest) -> Answer<'a, Attempt<Grant>>;
    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>>;
    fn release<'a>(&'a self, lease: &'a Sequencer, tombstone: bool) -> Answer<'a, Released>;
    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> Answer<'a, ()>;
    fn inspect<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Inspection>;
    fn release_hold<'a>(&'a self, lease: &'a Sequencer, id: AttemptId) -> Answer<'a, Released>;
    fn force_release<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> Answer<'a, Forced>;
    fn list(&self) -> Answer<'_, Vec<Listed>>;
    fn acquire_together<'a>(
        &'a self,
        requests: &'a [AcquireRequest],
    ) -> Answer<'a, Attempt<Vec<Grant>>>;
}

type Answer<'a, T> = BoxFuture<'a, Result<T, Error>>;

impl<B: LockBackend> Boxed for B {
    fn kind(&self) -> &'static str {
        LockBackend::kind(self)
    }

    fn capabilities(&self) -> Capabilities {
        LockBackend::capabilities(self)
    }

    fn part_of(&self, resource: &ResourceName) -> u16 {
        LockBackend::part_of(self, resource)
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        LockBackend::runtime(self)
    }

    fn drive<'a>(
        &'a self,
        attempt: &'a mut Acquisition,
        request: &'a AcquireRequest,
        shutdown: Shutdown<'a>,
    ) -> BoxFuture<'a, Ended> {
        Box::pin(async move {
            let (requests, runtime) = (self.requests(request), LockBackend::runtime(self));
            acquisition::acquire(attempt, &requests, &*runtime, shutdown).await
        })
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> BoxedRequests<'a> {
        BoxedRequests::new(LockBackend::requests(self, request))
    }

    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        LockBackend::lease_name(self, resource)
    }

    fn acquire<'a>(&'a self, request: &'a AcquireRequest) -> Answer<'a, Attempt<Grant>> {
        Box::pin(LockBackendExt::acquire(self, request))
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(LockBackend::renew(self, leases))
    }

    fn release<'a>(&'a self, lease: &'a Sequencer, tombstone: bool) -> Answer<'a, Released> {
        Box::pin(LockBackend::release(self, lease, tombstone))
    }

    fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> Answer<'a, ()> {
        Box::pin(LockBackend::cancel(self, attempt))
    }

    fn inspect<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Inspection> {
        Box::pin(LockBackend::inspect(self, resource))
    }

    fn release_hold<'a>(&'a self, lease: &'a Sequencer, id: AttemptId) -> Answer<'a, Released> {
        Box::pin(LockBackend::release_hold(self, lease, id))
    }

    fn force_release<'a>(
        &'a self,
        resource: &'a ResourceName,
        token: FencingToken,
    ) -> Answer<'a, Forced> {
        Box::pin(LockBackend::force_release(self, resource, token))
    }

    fn list(&self) -> Answer<'_, Vec<Listed>> {
        Box::pin(LockBackend::list(self))
    }

    fn acquire_together<'a>(
        &'a self,
        requests: &'a [AcquireRequest],
    ) -> Answer<'a, Attempt<Vec<Grant>>> {
        Box::pin(LockBackend::acquire_together(self, requests))
    }
}

/// The methods of [`LockBackend`], with its promises.
impl LockService {
    /// See [`LockBackend::kind`].
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// See [`LockBackend::capabilities`].
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// See [`LockBackend::part_of`].
    #[must_use]
    pub fn part_of(&self, resource: &ResourceName) -> u16 {
        self.0.part_of(resource)
    }

    /// See [`LockBackend::runtime`].
    #[must_use]
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        self.0.runtime()
    }

    /// Asks for a lease, by the decisions of this attempt, until there is an answer for the caller.
    ///
    /// # Cancel safety
    /// The attempt knows which requests may have to be undone.
    pub async fn drive(
        &self,
        attempt: &mut Acquisition,
        request: &AcquireRequest,
        shutdown: Shutdown<'_>,
    ) -> Ended {
        let mut ended = self.0.drive(attempt, request, shutdown).await;
        let failed = self.failed(Operation::Acquire, &request.attempt.resource);
        ended.error = ended.error.map(failed);
        ended
    }

    /// See [`LockBackend::requests`].
    #[must_use]
    pub fn requests<'a>(&'a self, request: &'a AcquireRequest) -> BoxedRequests<'a> {
        self.0.requests(request)
    }

    /// See [`LockBackend::lease_name`].
    #[must_use]
    pub fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        self.0.lease_name(resource)
    }

    /// See [`LockBackendExt::acquire`].
    ///
    /// # Errors
    /// Those of the backend.
    ///
    /// # Cancel safety
    /// As in clause 9 of the contract. The same holds for all methods here.
    pub async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let failed = self.failed(Operation::Acquire, &request.attempt.resource);
        self.0.acquire(request).await.map_err(failed)
    }

    /// See [`LockBackend::renew`]. A lease without an answer gets an error.
    pub async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let mut answers = self.0.renew(leases).await.into_iter();
        let answered = leases.iter().map(|lease| {
            let answer = answers.next().unwrap_or_else(|| Err(unanswered()));
            answer.map_err(self.failed(Operation::Renew, lease.sequencer.resource()))
        });
        answered.collect()
    }

    /// See [`LockBackend::release`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let failed = self.failed(Operation::Release, lease.resource());
        self.0.release(lease, tombstone).await.map_err(failed)
    }

    /// See [`LockBackend::cancel`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let failed = self.failed(Operation::Cancel, &attempt.resource);
        self.0.cancel(attempt).await.map_err(failed)
    }

    /// See [`LockBackend::inspect`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let failed = self.failed(Operation::Inspect, resource);
        self.0.inspect(resource).await.map_err(failed)
    }

    /// See [`LockBackend::release_hold`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn release_hold(&self, lease: &Sequencer, id: AttemptId) -> Result<Released, Error> {
        let failed = self.failed(Operation::Release, lease.resource());
        self.0.release_hold(lease, id).await.map_err(failed)
    }

    /// See [`LockBackend::force_release`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let failed = self.failed(Operation::ForceRelease, resource);
        self.0.force_release(resource, token).await.map_err(failed)
    }

    /// See [`LockBackend::list`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn list(&self) -> Result<Vec<Listed>, Error> {
        let listed = self.0.list().await;
        listed.map_err(|error| error.during(Operation::List, self.kind()))
    }

    /// See [`LockBackend::acquire_together`]. The error names the first resource, unless the
    /// backend names another.
    ///
    /// # Errors
    /// Those of the backend, and [`ErrorKind::InvalidInput`] if a resource is named twice, because
    /// no holder would have one of its two tokens.
    pub async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let answer = match named_twice(requests) {
            Some(resource) => Err(Error::not_applied(ErrorKind::InvalidInput)
                .on(resource)
                .because("it is named twice")),
            None => self.0.acquire_together(requests).await,
        };
        answer.map_err(|error| {
            let error = error.during(Operation::Acquire, self.kind());
            match requests.first() {
                Some(first) if error.resource().is_none() => error.on(&first.attempt.resource),
                _ => error,
            }
        })
    }

    /// Adds to an error the operation that failed and the resource.
    fn failed(&self, operation: Operation, resource: &ResourceName) -> impl Fn(Error) -> Error {
        move |error| error.during(operation, self.kind()).on(resource)
    }
}

fn named_twice(requests: &[AcquireRequest]) -> Option<&ResourceName> {
    let mut names = BTreeSet::new();
    let mut resources = requests.iter().map(|request| &request.attempt.resource);
    resources.find(|resource| !names.insert(*resource))
}

/// A lock service that was asked to renew several leases has answered for fewer.
fn unanswered() -> Error {
    Error::unknown(ErrorKind::Refused).because("the backend gave no answer for the lease")
}

impl<B: LockBackend> From<B> for LockService {
    fn from(backend: B) -> Self {
        Self(Arc::new(backend))
    }
}

impl<B: LockBackend> From<Arc<B>> for LockService {
    fn from(backend: Arc<B>) -> Self {
        Self(backend)
    }
}

/// Shows the backend.
impl fmt::Debug for LockService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
