use std::{borrow::Cow, fmt, sync::Arc};

use super::{Database, Leases, Waiters, asking::Asking, listing, renewing};
use crate::{
    Attempt, Capabilities, Error, Extension, Fairness, Fencing, FencingToken, Inspection, Listed,
    Released, ResourceName, Sequencer, TokenScale, Waking,
    backend::{
        AcquireRequest, AttemptId, AttemptRef, Forced, Grant, LockBackend, RenewRequest, Renewed,
        Requests, Runtime, repeat,
    },
};

/// A lock service in a database. A type that implements this trait is a [`LockBackend`].
pub trait InDatabase: fmt::Debug + Send + Sync + 'static {
    /// The [kind](LockBackend::kind) of lock service.
    const KIND: &'static str;

    /// How a waiter learns of its turn.
    const WAKING: Waking;

    /// The requests and the waiters of this process.
    fn service(&self) -> &DatabaseService<impl Leases>;
}

/// The requests and the waiters of this process, at a lock service in a database. When this is
/// dropped, the tasks that look and listen for the waiters end.
#[derive(Debug)]
pub struct DatabaseService<D: Leases>(Arc<Waiters<D>>);

impl<D: Leases> DatabaseService<D> {
    /// The lock service over this client.
    pub fn new(database: Arc<D>) -> Self {
        Self(Waiters::new(database))
    }

    fn database(&self) -> &D {
        self.0.database()
    }

    /// A lease may be free, and the next waiter in its queue may be in this process. A database
    /// that wakes the waiters wakes this one, too.
    fn freed(&self) {
        if self.database().longest_pause().is_some() {
            self.0.look_now();
        }
    }
}

impl<D: Leases> Drop for DatabaseService<D> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl<B: InDatabase> LockBackend for B {
    fn kind(&self) -> &'static str {
        B::KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, B::WAKING)
            .counting(TokenScale::Clock)
            .extended(Extension::ALL)
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(self.service().database().tasks().runtime())
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + Send + 'a {
        Asking::new(&self.service().0, request)
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        renewing::renew(self.service().database(), leases).await
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let service = self.service();
        let released = service.database().release(lease, tombstone).await;
        service.freed();
        released
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let service = self.service();
        let cancelled = service.database().cancel(attempt).await;
        service.freed();
        cancelled
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        listing::inspect(self.service().database(), resource).await
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let service = self.service();
        let released = service.database().release_hold(lease, attempt).await;
        service.freed();
        released
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let service = self.service();
        let database = service.database();
        let force = || database.force_release(resource, token);
        let forced = repeat(&**database.tasks().runtime(), force).await;
        service.freed();
        forced
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        listing::list(self.service().database()).await
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        self.service().database().acquire_together(requests).await
    }

    fn lease_name<'a>(&self, resource: &'a ResourceName) -> Cow<'a, str> {
        self.service().database().names().of(resource).into()
    }
}
