use std::sync::Arc;

use fenced_store::{PgFencedLocks, PgFencedStore};
use lock_core::{Error, LockManager, backend::SystemClock};
use palisade_postgres::{PostgresBackend, PostgresOptions};

/// Makes the database of the store the lock service, too: one PostgreSQL database is enough.
///
/// The locks use the connections of the store's pool, and one more, which waits for notices. With
/// settings of the lock service or of the manager do the same in three steps:
/// [`PostgresBackend::on`] the pool, [`LockManager::builder`], [`PgFencedLocks::in_one_database`].
///
/// # Errors
/// As [`PostgresBackend::on`]: [`ErrorKind::Refused`](crate::ErrorKind::Refused) if the database
/// has not been [migrated](PgFencedStore::migrate), or
/// [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable).
///
/// # Panics
/// Outside a Tokio runtime.
///
/// # Cancel safety
/// Cancel safe.
///
/// # Examples
/// ```no_run
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// use palisade::store::PgFencedStore;
///
/// let pool = sqlx::PgPool::connect("postgres://localhost/bank").await?;
/// let store = PgFencedStore::new(pool);
/// store.migrate().await?;
/// let accounts = palisade::one_database(store).await?;
///
/// let guard = accounts.acquire("account:42").await?;
/// let mut tx = guard.begin().await?;
/// sqlx::query("UPDATE accounts SET balance = balance - 10 WHERE id = 42")
///     .execute(&mut *tx)
///     .await?;
/// tx.commit_and_release(guard).await?;
/// # Ok(()) }
/// ```
pub async fn one_database(store: PgFencedStore) -> Result<PgFencedLocks, Error> {
    let (pool, options) = (store.pool().clone(), PostgresOptions::default());
    let backend = PostgresBackend::on(pool, options, Arc::new(SystemClock)).await?;
    let locks = LockManager::builder().build(backend)?;
    Ok(PgFencedLocks::in_one_database(locks, store))
}
