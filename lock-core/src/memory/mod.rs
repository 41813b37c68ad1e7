//! The in-process lock service, with the URL `memory:`; the reference implementation of the
//! contract.
//!
//! The lock service lives as long as its [`MemoryBackend`]. Clones of the handle are the same
//! service. Waiters are served first come, first served, and a release hands the lease directly to
//! the next one.

mod table;

use std::{
    fmt,
    future::pending,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use self::table::Table;
use crate::{
    AcquireRequest, Attempt, AttemptId, AttemptRef, Capabilities, Error, Extension, Fairness,
    Fencing, FencingToken, Forced, Grant, InitialToken, Inspection, Listed, LockBackend, Released,
    RenewRequest, Renewed, ResourceName, Runtime, Sequencer, TokioRuntime, Waking,
    acquisition::{Reply, Request, Requests, Wake, WakeUps},
    support::lock,
};

/// The kind that errors name and the default issuer.
const KIND: &str = "memory";

/// The time for which an ended acquisition is remembered, so that its late requests are refused.
const ENDED_TTL: Duration = Duration::from_secs(60);

/// A lock service inside this process: only this value and its clones use it.
#[derive(Clone)]
pub struct MemoryBackend {
    /// The lock is never held across an await, and every step under it is short.
    table: Arc<Mutex<Table>>,
    runtime: Arc<dyn Runtime>,
}

/// A service on the system's clock, with tokens that begin at the time of that clock.
impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new(Arc::new(TokioRuntime), InitialToken::default())
    }
}

impl MemoryBackend {
    /// A new, empty service.
    #[must_use]
    pub fn new(runtime: Arc<dyn Runtime>, initial: InitialToken) -> Self {
        Self {
            table: Arc::new(Mutex::new(Table::new(initial))),
            runtime,
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

/// The requests of one attempt.
struct Waiter<'a> {
    backend: &'a MemoryBackend,
    request: &'a AcquireRequest,
    /// The wake-ups, from the moment on when the attempt first has a place in the queue. The queue
    /// has them, too, but only while this value lives.
    wake_ups: OnceLock<Arc<WakeUps>>,
}

impl Requests for Waiter<'_> {
    async fn send(&self, request: Request) -> Result<Reply, Error> {
        let MemoryBackend { runtime, .. } = self.backend;
        let Request::Look { queue } = request else {
            self.backend.cancel(&self.request.attempt).await?;
            return Ok(Reply::Cancelled);
        };
        let (now, unix_time) = (runtime.now(), runtime.unix_time());
        let wake_ups = queue.then(|| self.wake_ups.get_or_init(Arc::default));
        let mut table = self.backend.table();
        table.acquire(self.request, wake_ups, now, unix_time)
    }

    async fn woken(&self) -> Wake {
        match self.wake_ups.get() {
            Some(wake_ups) => wake_ups.next().await,
            None => pending().await,
        }
    }
}

impl LockBackend for MemoryBackend {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(Fencing::BestEffort, Fairness::Fifo, Waking::Pushed)
            .counting(crate::TokenScale::Revision)
            .extended(Extension::ALL)
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(&self.runtime)
    }

    fn requests<'a>(&'a self, request: &'a AcquireRequest) -> impl Requests + 'a {
        Waiter {
            backend: self,
            request,
            wake_ups: OnceLock::new(),
        }
    }

    async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        let now = self.runtime.now();
        let mut table = self.table();
        leases
            .iter()
            .map(|lease| Ok(table.renew(lease, now)))
            .collect()
    }

    async fn release(&self, lease: &Sequencer, tombstone: bool) -> Result<Released, Error> {
        let _ = tombstone;
        Ok(self.table().release(lease, self.runtime.now()))
    }

    async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        self.table().cancel(attempt, self.runtime.now());
        Ok(())
    }

    async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        Ok(self.table().inspect(resource, self.runtime.now()))
    }

    async fn release_hold(&self, lease: &Sequencer, attempt: AttemptId) -> Result<Released, Error> {
        let now = self.runtime.now();
        Ok(self.table().release_hold(lease, attempt, now))
    }

    async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let now = self.runtime.now();
        self.table().force_release(resource, token, now)
    }

    async fn list(&self) -> Result<Vec<Listed>, Error> {
        Ok(self.table().list(self.runtime.now()))
    }

    async fn acquire_together(
        &self,
        requests: &[AcquireRequest],
    ) -> Result<Attempt<Vec<Grant>>, Error> {
        let (now, unix_time) = (self.runtime.now(), self.runtime.unix_time());
        self.table().acquire_together(requests, now, unix_time)
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend").finish_non_exhaustive()
    }
}
