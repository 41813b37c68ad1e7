//! A lock service combined with a fenced store: [`FencedLocks`]. `acquire.rs` locks and then
//! claims, and `leases.rs` lets it do so for one resource or several. `guard.rs` is the result,
//! `guards.rs` is a set of guards, and `held.rs` is the part of a guard that a transaction checks;
//! `refresh.rs` keeps the marks of guards. The other files have further calls: `run.rs`,
//! `commit_and_release.rs`, `force.rs` and `forget.rs` for operators, and `lead.rs` for leaders.

mod acquire;
mod commit_and_release;
mod error;
mod force;
mod forget;
mod guard;
mod guards;
mod held;
mod lead;
mod leases;
mod refresh;
mod run;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Attempt, FencingToken, InvalidName, LockManager, ResourceName};
use tracing::warn;

pub(crate) use self::held::Held;
use self::refresh::Refreshed;
pub use self::run::until_lost;
pub use self::{
    acquire::{AcquireAllFenced, AcquireFenced},
    commit_and_release::NotCommitted,
    error::FencedLockError,
    guard::FencedGuard,
    guards::FencedGuards,
};
use crate::{FenceError, FencedStore, Storage, counted};

/// Resources that are locked in a lock service and written in a fenced store.
///
/// Acquiring a resource locks it *and* claims it in the store, so that no older holder's write is
/// accepted from then on, whether or not the new holder has written anything yet. Cloning is cheap.
///
/// NOT guaranteed: that there is only one holder at a time, or anything about effects outside of
/// the store.
///
/// # Examples
/// ```
/// # #[cfg(not(feature = "sqlite"))]
/// # fn main() {}
/// # #[cfg(feature = "sqlite")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use fenced_store::{FencedLocks, SqliteFencedStore};
/// use lock_core::{LockManager, Ttl};
///
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("accounts.db");
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
/// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
/// # let pool = sqlx::SqlitePool::connect_with(options).await?;
/// # sqlx::query("CREATE TABLE accounts (id INTEGER, balance INTEGER)").execute(&pool).await?;
/// let locks = palisade::connect("memory:").await?;
/// let store = SqliteFencedStore::new(pool);
/// store.migrate().await?;
/// let accounts = FencedLocks::new(locks, store);
///
/// let guard = accounts.acquire("account:42").ttl(Ttl::secs(10)).await?;
/// let mut tx = guard.begin().await?;
/// sqlx::query("UPDATE accounts SET balance = balance - 10 WHERE id = 42")
///     .execute(&mut *tx)
///     .await?;
/// let receipt = tx.commit().await?;
/// assert_eq!(receipt.token(), guard.token());
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FencedLocks<DB: Storage> {
    locks: LockManager,
    store: FencedStore<DB>,
    floor_repairs: Arc<AtomicU64>,
    one_database: bool,
    refreshed: Arc<Refreshed<DB>>,
}

impl<DB: Storage> FencedLocks<DB> {
    /// Combines a lock service and a store.
    #[must_use]
    pub fn new(locks: LockManager, store: FencedStore<DB>) -> Self {
        counted::begin_repairs(locks.backend_kind());
        Self {
            locks,
            refreshed: Refreshed::new(store.clone()),
            store,
            floor_repairs: Arc::default(),
            one_database: false,
        }
    }

    /// Combines a store with the lock service in the same database. This saves round trips: a grant
    /// and its claim take one round trip, and in PostgreSQL [commit and
    /// release](crate::FencedTx::commit_and_release) take one, too.
    ///
    /// `palisade::open` makes the lock service over the pool of the store.
    ///
    /// If the lock service is *not* in the database of the store, every transaction is refused:
    /// [`MarkLost`](crate::FenceError::MarkLost). The tokens are those of the database, so the
    /// [`plausibility`](FencedStore::plausibility) of the store is not checked.
    #[must_use]
    pub fn in_one_database(locks: LockManager, store: FencedStore<DB>) -> Self {
        Self {
            one_database: true,
            ..Self::new(locks, store)
        }
    }

    /// Locks and claims a resource: await the builder. By default it waits without bound.
    pub fn acquire<N>(&self, resource: N) -> AcquireFenced<DB>
    where
        N: TryInto<ResourceName>,
        N::Error: Into<InvalidName>,
    {
        AcquireFenced::new(self, self.locks.acquire(resource), None)
    }

    /// Locks and claims a resource if it is free. It looks once, with the
    /// [ttl](lock_core::LockManagerBuilder::ttl) of the manager.
    ///
    /// # Errors
    /// As [`AcquireFenced::try_acquire`].
    ///
    /// # Cancel safety
    /// As [`AcquireFenced`].
    pub async fn try_acquire<N>(
        &self,
        resource: N,
    ) -> Result<Attempt<FencedGuard<DB>>, FencedLockError>
    where
        N: TryInto<ResourceName> + Send,
        N::Error: Into<InvalidName>,
    {
        let acquire = self.acquire(resource);
        acquire.try_acquire().await
    }

    /// Locks and claims several resources, all or none: await the builder.
    ///
    /// `wait` is how long to wait for all of the leases while others hold some of them. The claims
    /// in the store take additional time; each waits as long as the store's settings allow.
    ///
    /// The leases are acquired sorted by name, as [`LockManager::acquire_all`] does, so that such
    /// calls do not deadlock among themselves. When all of them are held, each is claimed.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(not(feature = "sqlite"))]
    /// # fn main() {}
    /// # #[cfg(feature = "sqlite")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fenced_store::{FencedLocks, SqliteFencedStore};
    /// use std::time::Duration;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let file = directory.path().join("accounts.db");
    /// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    /// # let options = SqliteFencedStore::recommended(options.create_if_missing(true));
    /// # let store = SqliteFencedStore::new(sqlx::SqlitePool::connect_with(options).await?);
    /// # store.migrate().await?;
    /// # let locks = palisade::connect("memory:").await?;
    /// let accounts = FencedLocks::new(locks, store);
    /// let wait = Duration::from_secs(5);
    /// let guards = accounts.acquire_all(["account:42", "account:7"], wait).await?;
    ///
    /// let tx = guards.begin().await?; // write to both accounts through it
    /// let receipt = tx.commit().await?;
    /// assert_eq!(receipt.resources().count(), 2);
    /// guards.release_all().await?;
    /// # Ok(()) }
    /// ```
    pub fn acquire_all<I>(&self, resources: I, wait: Duration) -> AcquireAllFenced<DB>
    where
        I: IntoIterator,
        I::Item: TryInto<ResourceName>,
        <I::Item as TryInto<ResourceName>>::Error: Into<InvalidName>,
    {
        AcquireFenced::new(self, self.locks.acquire_all(resources, wait), Some(wait))
    }

    /// The lock service.
    #[must_use]
    pub const fn locks(&self) -> &LockManager {
        &self.locks
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &FencedStore<DB> {
        &self.store
    }

    /// The number of times that the lock service issued a token that the store had already seen,
    /// and was then raised above the mark. Any number but 0 is worth an alert, because the lock
    /// service has lost its state.
    #[must_use]
    pub fn floor_repairs(&self) -> u64 {
        self.floor_repairs.load(Ordering::Relaxed)
    }

    /// Notes that the store has refused a fresh token, so that the lock service is raised above the
    /// mark.
    fn note_repair(&self, error: &FenceError, above: FencingToken) {
        warn!(%error, %above, "the lock service is behind the store: acquiring afresh");
        self.floor_repairs.fetch_add(1, Ordering::Relaxed);
        counted::repair(self.locks.backend_kind());
    }
}

impl<DB: Storage> Clone for FencedLocks<DB> {
    fn clone(&self) -> Self {
        Self {
            locks: self.locks.clone(),
            store: self.store.clone(),
            floor_repairs: Arc::clone(&self.floor_repairs),
            one_database: self.one_database,
            refreshed: Arc::clone(&self.refreshed),
        }
    }
}
