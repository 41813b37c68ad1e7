use std::{fmt, sync::Arc};

use super::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Forced, Inspection, Listed, LockBackend,
    Released, RenewRequest, Renewed,
};
use crate::{BoxFuture, Capabilities, Error, FencingToken, Grant, ResourceName, Sequencer};

/// A [`LockBackend`] behind a pointer; clones are the same lock service.
///
/// Made from a backend, or from an `Arc` of one that is used otherwise, too. Names the resource in
/// the errors of the backend.
#[derive(Clone)]
pub struct LockService(Arc<dyn Boxed>);

/// [`LockBackend`] with boxed futures, so that it can be `dyn`.
trait Boxed: fmt::Debug + Send + Sync {
    fn kind(&self) -> &'static str;
    fn capabilities(&self) -> Capabilities;
    fn part_of(&self, resource: &ResourceName) -> u16;
    fn acquire<'a>(&'a self, request: &'a AcquireRequest) -> Answer<'a, Attempt<Grant>>;
    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>>;
    fn release<'a>(&'a self, lease: &'a Sequencer) -> Answer<'a, Released>;
    fn release_answered<'a>(&'a self, lease: &'a Sequencer, again: bool) -> Answer<'a, Released>;
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

    fn acquire<'a>(&'a self, request: &'a AcquireRequest) -> Answer<'a, Attempt<Grant>> {
        Box::pin(LockBackend::acquire(self, request))
    }

    fn renew<'a>(
        &'a self,
        leases: &'a [RenewRequest],
    ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
        Box::pin(LockBackend::renew(self, leases))
    }

    fn release<'a>(&'a self, lease: &'a Sequencer) -> Answer<'a, Released> {
        Box::pin(LockBackend::release(self, lease))
    }

    fn release_answered<'a>(&'a self, lease: &'a Sequencer, again: bool) -> Answer<'a, Released> {
        Box::pin(LockBackend::release_answered(self, lease, again))
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

/// What [`LockBackend`] has, with its promises.
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

    /// See [`LockBackend::acquire`].
    ///
    /// # Errors
    /// Those of the backend.
    ///
    /// # Cancel safety
    /// By clause 9 of the contract, as of all methods here.
    pub async fn acquire(&self, request: &AcquireRequest) -> Result<Attempt<Grant>, Error> {
        let answer = self.0.acquire(request).await;
        answer.map_err(|error| error.on(&request.attempt.resource))
    }

    /// See [`LockBackend::renew`]. A lease without an answer gets an error.
    pub async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let mut answers = self.0.renew(leases).await.into_iter();
        let answered = leases.iter().map(|lease| {
            let resource = lease.sequencer.resource();
            match answers.next() {
                Some(answer) => answer.map_err(|error| error.on(resource)),
                None => Err(Error::unanswered(self.kind(), resource)),
            }
        });
        answered.collect()
    }

    /// See [`LockBackend::release`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn release(&self, lease: &Sequencer) -> Result<Released, Error> {
        let answer = self.0.release(lease).await;
        answer.map_err(|error| error.on(lease.resource()))
    }

    /// See [`LockBackend::release_answered`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn release_answered(
        &self,
        lease: &Sequencer,
        again: bool,
    ) -> Result<Released, Error> {
        let answer = self.0.release_answered(lease, again).await;
        answer.map_err(|error| error.on(lease.resource()))
    }

    /// See [`LockBackend::cancel`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let answer = self.0.cancel(attempt).await;
        answer.map_err(|error| error.on(&attempt.resource))
    }

    /// See [`LockBackend::inspect`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let answer = self.0.inspect(resource).await;
        answer.map_err(|error| error.on(resource))
    }

    /// See [`LockBackend::release_hold`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn release_hold(&self, lease: &Sequencer, id: AttemptId) -> Result<Released, Error> {
        let answer = self.0.release_hold(lease, id).await;
        answer.map_err(|error| error.on(lease.resource()))
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
        let answer = self.0.force_release(resource, token).await;
        answer.map_err(|error| error.on(resource))
    }

    /// See [`LockBackend::list`].
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn list(&self) -> Result<Vec<Listed>, Error> {
        self.0.list().await
    }

    /// See [`LockBackend::acquire_together`]. The error names the first resource, unless the
    /// backend names another.
    ///
    /// # Errors
    /// Those of the backend.
    pub async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let answer = self.0.acquire_together(requests).await;
        answer.map_err(|error| match requests.first() {
            Some(first) if error.resource().is_none() => error.on(&first.attempt.resource),
            _ => error,
        })
    }
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

/// As the backend.
impl fmt::Debug for LockService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
