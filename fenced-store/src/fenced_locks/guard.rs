use std::{borrow::Cow, ops::Deref};

use lock_core::{DetachedLease, LeaseGuard, Released, backend::StoreSide};

use super::{FencedLocks, Held, refresh::Living};
use crate::{Begin, FencedStore, Presented, Storage};

/// A lease whose token is claimed in the store, so that all earlier holders of the resource are
/// shut out.
///
/// This guard derefs to a [`LeaseGuard`], which has the token, the deadline and the renewals. It
/// can also begin fenced transactions.
///
/// # Dropping
/// As [`LeaseGuard`]: the release follows shortly.
///
/// # Examples
/// ```
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use fenced_store::{FenceError, FencedLocks, SqliteFencedStore};
/// # let directory = tempfile::tempdir()?;
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(directory.path().join("db"));
/// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
/// # let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
/// # store.migrate().await?;
/// # sqlx::query("CREATE TABLE accounts AS SELECT 42 AS id, 100 AS balance")
/// #     .execute(store.pool())
/// #     .await?;
/// # let accounts = FencedLocks::new(palisade::connect("memory:").await?, store);
/// let from = accounts.acquire("account:42").await?;
/// let to = accounts.acquire("account:7").await?;
/// let mut tx = from.begin().and(&to).await?; // both grants have to be current
/// sqlx::query("UPDATE accounts SET balance = balance - 1 WHERE id = 42").execute(&mut *tx).await?;
/// sqlx::query("UPDATE accounts SET balance = balance + 1 WHERE id = 7").execute(&mut *tx).await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
#[must_use = "dropping the guard releases the lease"]
#[derive(Debug)]
#[clippy::has_significant_drop]
pub struct FencedGuard<DB: Storage> {
    held: Held,
    store: FencedStore<DB>,
    /// Whether the store is the lock service, too.
    one_database: bool,
    /// Keeps the mark young as long as the guard lives.
    _living: Living<DB>,
}

impl<DB: Storage> FencedGuard<DB> {
    /// The caller must have claimed the lease's token.
    pub(super) fn new(lease: LeaseGuard, protected: &FencedLocks<DB>) -> Self {
        let living = protected.refreshed.add(lease.sequencer());
        Self {
            held: Held::new(lease),
            _living: living,
            store: protected.store.clone(),
            one_database: protected.one_database,
        }
    }

    /// Prepares a fenced transaction. It never claims again.
    ///
    /// For several guards use [`and`](Begin::and): `one.begin().and(&other).await?`.
    ///
    /// # Errors
    /// Awaiting it fails as [`Begin`] does. [`FenceError::LeaseLost`] from the deadline of the
    /// lease on, without a request to the store. [`FenceError::MarkLost`] if the store has
    /// forgotten the claim. A guard that was refused once stays fenced: it always gets the same
    /// answer, without a request to the store.
    ///
    /// [`FenceError::LeaseLost`]: crate::FenceError::LeaseLost
    /// [`FenceError::MarkLost`]: crate::FenceError::MarkLost
    pub fn begin(&self) -> Begin<'_, DB> {
        self.store.begin(self)
    }

    /// Whether a transaction would be refused without a request to the store.
    pub(super) fn is_over(&self) -> bool {
        self.held.check().is_err()
    }

    /// Gives up the guard and keeps the lease, as [`LeaseGuard::detach`] does. Its token stays
    /// claimed.
    #[must_use = "nothing renews or releases the lease any more"]
    pub fn detach(self) -> DetachedLease {
        self.held.lease.detach()
    }

    /// The name of the lease, if the store can release the lease by a request that leaves no
    /// tombstone.
    pub(super) fn name_for_store(&self) -> Option<Cow<'_, str>> {
        let is_released = self.one_database && self.held.lease.needs_no_tombstone();
        is_released.then(|| self.held.lease.lease_name())
    }

    /// Ends the guard without a release, because the store has released the lease.
    pub(super) fn released_by_store(self) {
        self.held.lease.released_by_store();
    }

    /// Releases the lease. The mark in the store stays.
    ///
    /// # Errors
    /// As [`LeaseGuard::release`].
    ///
    /// # Cancel safety
    /// As [`LeaseGuard::release`]: the watchdog finishes it.
    pub async fn release(self) -> Result<Released, lock_core::Error> {
        self.held.lease.release().await
    }
}

impl<DB: Storage> Deref for FencedGuard<DB> {
    type Target = LeaseGuard;

    fn deref(&self) -> &LeaseGuard {
        &self.held.lease
    }
}

impl<'a, DB: Storage> From<&'a FencedGuard<DB>> for Presented<'a> {
    fn from(guard: &'a FencedGuard<DB>) -> Self {
        Self::of_held(guard.sequencer(), &guard.held)
    }
}
