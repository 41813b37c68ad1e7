use lock_core::{
    Error, Lead, LeaseGuard, Released,
    backend::{Candidate, TermGuard, lead_resource},
};

use super::{AcquireFenced, FencedGuard, FencedLockError, FencedLocks};
use crate::Dialect;

impl<DB: Dialect> FencedLocks<DB> {
    /// Prepares to lead under a name, with every term a fence: of all processes that campaign for
    /// it, one leads at most, and the store refuses what an earlier leader still writes. See
    /// [`Lead`]. The resource is `lead:NAME`.
    ///
    /// # Examples
    /// ```no_run
    /// # use fenced_store::{PgFencedLocks, FencedLockError};
    /// # async fn f(shop: PgFencedLocks) -> Result<(), FencedLockError> {
    /// let lead = shop.lead("scheduler");
    /// // A connection that is cut costs a pause, and not the lead.
    /// lead.run_through(FencedLockError::may_pass, async |term| {
    ///     loop {
    ///         let mut tx = term.begin().await?;
    ///         sqlx::query("UPDATE orders SET sent = now() WHERE sent IS NULL")
    ///             .execute(&mut *tx)
    ///             .await?;
    ///         tx.commit().await?;
    ///         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ///     }
    /// })
    /// .await
    /// # }
    /// ```
    pub fn lead(&self, name: &str) -> Lead<AcquireFenced<DB>> {
        Lead::new(self.acquire(lead_resource(name)))
    }
}

impl<DB: Dialect> Candidate for AcquireFenced<DB> {
    type Guard = FencedGuard<DB>;
    type Error = FencedLockError;

    async fn campaign(self) -> Result<FencedGuard<DB>, FencedLockError> {
        self.await
    }

    fn may_pass(error: &FencedLockError) -> bool {
        error.may_pass()
    }
}

impl<DB: Dialect> TermGuard for FencedGuard<DB> {
    fn lease(&self) -> &LeaseGuard {
        self
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    async fn resign(self) -> Result<Released, Error> {
        self.release().await
    }
}
