use std::time::Duration;

use super::LockManager;
use crate::{Error, Issuer, LockService, Operation, Ttl, backend::LeaseSettings, error::OURSELVES};

/// Settings of a [`LockManager`].
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct LockManagerBuilder {
    issuer: Option<Issuer>,
    defaults: LeaseSettings,
}

impl LockManagerBuilder {
    /// The name by which the store knows the lock service. Defaults to the kind of backend, such as
    /// `redis`.
    ///
    /// Give every lock service a name of its own if several lock services guard one store.
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuer = Some(issuer);
        self
    }

    /// The ttl of leases, unless the acquisition says otherwise; see
    /// [`Acquire::ttl`](crate::Acquire::ttl). Defaults to 10 s.
    ///
    /// It is also the ttl of acquisitions without such a setting, such as
    /// [`try_acquire`](LockManager::try_acquire).
    pub const fn ttl(mut self, ttl: Ttl) -> Self {
        self.defaults.ttl = ttl;
        self
    }

    /// The time for which the watchdog renews a lease, unless the acquisition says otherwise; see
    /// [`Acquire::max_hold`](crate::Acquire::max_hold). Defaults to no bound.
    pub const fn max_hold(mut self, max_hold: Duration) -> Self {
        self.defaults.max_hold = Some(max_hold);
        self
    }

    /// The greatest number of waiters for one resource, unless the acquisition says otherwise; see
    /// [`Acquire::max_waiters`](crate::Acquire::max_waiters). Defaults to no bound.
    pub const fn max_waiters(mut self, max_waiters: u32) -> Self {
        self.defaults.max_waiters = Some(max_waiters);
        self
    }

    /// Makes a manager over a lock service.
    ///
    /// Several managers may share a lock service. Deadlines follow the clock that the lock service
    /// was made with.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if no issuer was set and the
    /// backend's kind is not an issuer name.
    ///
    /// # Panics
    /// Outside a Tokio runtime, which the watchdog needs for as long as the manager is used.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lock_core::{LockManager, Ttl, memory::MemoryBackend};
    ///
    /// let locks = LockManager::builder().ttl(Ttl::secs(5)).build(MemoryBackend::default())?;
    /// # drop(locks);
    /// # Ok(()) }
    /// ```
    pub fn build(self, service: impl Into<LockService>) -> Result<LockManager, Error> {
        let backend = service.into();
        let issuer = match self.issuer {
            Some(issuer) => issuer,
            None => Issuer::new(backend.kind())
                .map_err(|error| Error::from(error).during(Operation::Connect, OURSELVES))?,
        };
        Ok(LockManager::start(backend, issuer, self.defaults))
    }
}
