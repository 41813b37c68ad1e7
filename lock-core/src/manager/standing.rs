use super::LockManager;
use crate::{Error, FencingToken, Standing};

/// For operators who replace one lock service by another: see the module `admin` of the crate
/// `fenced-store`, which calls these in the right order.
impl LockManager {
    /// Whether the lock service grants, and which tokens it has issued.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if no answer came,
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// # Cancel safety
    /// Cancel safe: nothing changes.
    pub async fn standing(&self) -> Result<Standing, Error> {
        self.inner.backend.standing().await
    }

    /// Takes the lock service out of service for all its clients. Every acquire fails with
    /// [`ErrorKind::Retired`](crate::ErrorKind::Retired), and so does every waiter when its turn
    /// would come. Leases go on until they end. After this, [`Standing::last`] is final until
    /// somebody reinstates the service.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "memory")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use lock_core::{ErrorKind, LockManager};
    ///
    /// let locks = LockManager::connect("memory:").await?;
    /// let guard = locks.acquire("nightly").await?;
    /// let standing = locks.retire().await?;
    /// assert_eq!(standing.last, Some(guard.token()));
    /// guard.release().await?;
    /// let refused = locks.try_acquire("nightly").await.unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Retired);
    /// # Ok(()) }
    /// # #[cfg(not(feature = "memory"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if no answer came. Whatever the
    /// kind: if the outcome is [`Unknown`](crate::Outcome::Unknown), parts of the service may be
    /// retired. [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// # Cancel safety
    /// Parts of the service may be retired. Call again.
    pub async fn retire(&self) -> Result<Standing, Error> {
        let standing = self.inner.backend.retire().await?;
        tracing::warn!(backend = self.backend_kind(), "the lock service is retired");
        Ok(standing)
    }

    /// Puts the lock service into service: from then on every token of every resource is at least
    /// `floor`, and greater than all before. In a service that was never retired only the tokens
    /// are raised.
    ///
    /// # Errors
    /// [`ErrorKind::FloorImplausible`](crate::ErrorKind::FloorImplausible) if the floor is farther
    /// ahead than it can be; [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable) if no answer
    /// came. Whatever the kind: if the outcome is [`Unknown`](crate::Outcome::Unknown), parts of
    /// the service may be in service.
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// # Cancel safety
    /// Parts of the service may be in service. Call again.
    pub async fn reinstate(&self, floor: FencingToken) -> Result<Standing, Error> {
        let standing = self.inner.backend.reinstate(floor).await?;
        tracing::info!(backend = self.backend_kind(), %floor, "the lock service is in service");
        Ok(standing)
    }
}
