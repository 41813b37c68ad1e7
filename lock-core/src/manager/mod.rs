//! The user's side: acquire, hold, lose, release.

mod acquire;
mod again;
mod all;
mod asking;
mod builder;
mod cleanup;
mod detached;
mod force;
mod granted;
mod guard;
mod guarded;
mod guards;
mod lead;
mod leaders;
mod lost;
mod meter;
mod observed;
mod owner;
mod run;
mod settings;
mod several;
mod stats;
mod status;
mod together;
mod watchdog;
mod writable;

use std::{fmt, sync::Arc};

pub use self::{
    acquire::{Acquire, Single},
    all::{AcquireAll, InTurn},
    builder::LockManagerBuilder,
    detached::DetachedLease,
    force::ForceReleased,
    guard::LeaseGuard,
    guards::LeaseGuards,
    lead::{Candidate, Lead, Term, TermGuard, lead_resource},
    lost::{Lost, LostReason},
    owner::Owner,
    stats::Stats,
    together::{AcquireTogether, Together},
};
use self::{guarded::Guarded, leaders::Leaders, meter::Meter, watchdog::Handle};
use crate::{
    Attempt, Capabilities, Error, Inspection, InvalidName, Issuer, LockService, Operation,
    ResourceName, Runtime, backend::LeaseSettings, error::OURSELVES,
};

/// Acquires leases from one lock service. Cloning is cheap; clones share one watchdog.
///
/// NOT guaranteed: mutual exclusion. Two clients can believe that they hold the same lease: a
/// client that was paused until after the end of its lease, and the client that holds it now. Only
/// a store that checks the fencing token of every write keeps the paused client from doing damage.
///
/// # One runtime
/// The watchdog is a task of the Tokio runtime on which the manager was made. When that runtime
/// ends, or if the lock service's implementation panics in the watchdog, all leases of the manager
/// are lost with [`LostReason::ShutDown`], every acquire fails with
/// [`ErrorKind::ShutDown`](crate::ErrorKind::ShutDown) from then on, and a warning is logged. So
/// make a manager for each runtime: a manager in a `static` that several `#[tokio::test]`s share
/// ends with the first test.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lock_core::{LockManager, Ttl};
/// use std::time::Duration;
///
/// # use lock_core::memory::MemoryBackend;
/// let locks = LockManager::builder().build(MemoryBackend::default())?;
/// let guard = locks.acquire("account:42").ttl(Ttl::secs(10)).wait(Duration::from_secs(5)).await?;
/// println!("fencing token {}", guard.token());
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct LockManager {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    backend: LockService,
    runtime: Arc<dyn Runtime>,
    issuer: Issuer,
    defaults: LeaseSettings,
    meter: Arc<Meter>,
    watchdog: Handle,
    guarded: Arc<Guarded>,
    leaders: Leaders,
}

impl LockManager {
    /// Builds a manager with other settings.
    pub fn builder() -> LockManagerBuilder {
        LockManagerBuilder::default()
    }

    fn start(backend: LockService, issuer: Issuer, defaults: LeaseSettings) -> Self {
        let runtime = backend.runtime();
        let meter = Arc::new(Meter::new(backend.kind()));
        let watchdog = watchdog::start(backend.clone(), Arc::clone(&runtime), Arc::clone(&meter));
        Self {
            inner: Arc::new(Inner {
                backend,
                runtime,
                issuer,
                defaults,
                meter,
                watchdog,
                guarded: Arc::default(),
                leaders: Leaders::default(),
            }),
        }
    }

    /// Acquires a lease: await the builder. Waits without bound by default.
    pub fn acquire<N>(&self, resource: N) -> Acquire
    where
        N: TryInto<ResourceName>,
        N::Error: Into<InvalidName>,
    {
        Acquire::new(self, resource.try_into().map_err(Into::into))
    }

    /// Acquires a lease if it is free: one look, with the manager's [ttl](LockManagerBuilder::ttl).
    ///
    /// # Errors
    /// As [`Acquire::try_acquire`].
    ///
    /// # Cancel safety
    /// As [`Acquire`].
    pub async fn try_acquire<N>(&self, resource: N) -> Result<Attempt<LeaseGuard>, Error>
    where
        N: TryInto<ResourceName> + Send,
        N::Error: Into<InvalidName>,
    {
        let acquire = self.acquire(resource);
        acquire.try_acquire().await
    }

    /// Looks at a resource: the holder, the time left by the lock service's own count, and the
    /// number of waiters, if the service knows.
    ///
    /// The result may be out of date when it arrives, so never base a write on it. For the time
    /// left of your own lease use [`LeaseGuard::remaining`].
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] if no answer came, [`ErrorKind::InvalidInput`] if the name is not
    /// valid.
    ///
    /// # Cancel safety
    /// Cancel safe: nothing changes.
    ///
    /// [`ErrorKind::InvalidInput`]: crate::ErrorKind::InvalidInput
    /// [`ErrorKind::Unavailable`]: crate::ErrorKind::Unavailable
    pub async fn inspect<N>(&self, resource: N) -> Result<Inspection, Error>
    where
        N: TryInto<ResourceName>,
        N::Error: Into<InvalidName>,
    {
        let resource = named(resource, Operation::Inspect)?;
        let Inner { backend, .. } = &*self.inner;
        self.inner.answered(|| backend.inspect(&resource)).await
    }

    /// Sends what is still queued, such as releases of dropped guards, and ends the watchdog.
    ///
    /// Leases that are still held are lost, because they are not renewed any more: release them
    /// first, or they end by their ttl. From now on every acquire fails, also an acquire that waits
    /// and an acquire of a clone.
    ///
    /// If the lock service does not answer, this takes as long as the longest ttl of anything that
    /// is queued, and at least a minute if a lease of an [`Owner`] or of a given
    /// [`holder`](Acquire::holder) is queued. Put a timeout around this call if that is too long.
    ///
    /// # Cancel safety
    /// The shutdown goes on by itself.
    pub async fn shutdown(&self) {
        self.inner.watchdog.shut_down().await;
    }

    /// The counts of this manager and its clones so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.meter.stats()
    }

    /// The name of the lock service, as the store remembers it.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.inner.issuer
    }

    /// The runtime of the lock service. Deadlines are moments of its clock.
    #[must_use]
    pub fn runtime(&self) -> &dyn Runtime {
        &*self.inner.runtime
    }

    /// The kind of lock service, such as `"redis"`.
    #[must_use]
    pub fn backend_kind(&self) -> &'static str {
        self.inner.backend.kind()
    }

    /// The promises of the lock service beyond the contract.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.inner.backend.capabilities()
    }

    /// Stops the watchdog, or lets it go on, as if the process were stopped. For pause tests.
    #[cfg(feature = "test-util")]
    pub fn freeze_watchdog(&self, frozen: bool) {
        self.inner.watchdog.freeze(frozen);
    }
}

impl fmt::Debug for LockManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockManager")
            .field("backend", &self.inner.backend)
            .field("issuer", &self.inner.issuer)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner")
            .field("backend", &self.backend)
            .finish_non_exhaustive()
    }
}

/// The resource that an operation is about, checked before anything is sent.
fn named<N>(resource: N, operation: Operation) -> Result<ResourceName, Error>
where
    N: TryInto<ResourceName>,
    N::Error: Into<InvalidName>,
{
    let resource = resource.try_into().map_err(Into::into);
    resource.map_err(|error| Error::from(error).during(operation, OURSELVES))
}
