use std::sync::Arc;

use fenced_store::{FencedLockError, PgFencedLocks, PgFencedStore, Rights};
use lock_core::{
    LockManager,
    backend::{SystemClock, support::database_url},
};
use palisade_postgres::{PostgresBackend, PostgresOptions};
use sqlx::{
    PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

/// What [`open`] opens: the URL of a PostgreSQL database, the pool of an application, or a store
/// with settings. Sealed.
pub trait Database: sealed::Database {}

impl<D: sealed::Database> Database for D {}

/// Opens one PostgreSQL database as lock service and store: nothing else is needed.
///
/// Applies the [migrations](PgFencedStore::migrate) that are missing. A role that may not apply
/// them needs none: it gets an error that says what is missing, or which right it lacks.
///
/// The locks use connections of their own, with the login of the store's pool, so that renewals do
/// not queue behind the transactions of the application. With settings of the lock service or of
/// the manager, such as the address to listen at behind a PgBouncer, do the same in three steps:
/// [`PostgresBackend::on`] the pool, [`LockManager::builder`], [`PgFencedLocks::in_one_database`].
///
/// # Errors
/// [`FencedLockError::Store`] if the URL is wrong, the database cannot be reached, takes no writes,
/// or is not as this build needs it: see [`check`](PgFencedStore::check).
/// [`FencedLockError::Lock`] as [`PostgresBackend::on`].
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
/// let accounts = palisade::open("postgres://localhost/bank").await?;
///
/// let guard = accounts.acquire("account:42").await?;
/// let mut tx = guard.begin().await?;
/// sqlx::query("UPDATE accounts SET balance = balance - 10 WHERE id = 42")
///     .execute(&mut *tx)
///     .await?;
/// tx.commit_and_release(guard).await?;
/// # Ok(()) }
/// ```
pub async fn open(database: impl Database) -> Result<PgFencedLocks, FencedLockError> {
    let store = database.store()?;
    store.migrate().await?;
    store.check(Rights::ClaimAndWrite).await?;
    let (pool, options) = (store.pool().clone(), PostgresOptions::default());
    let backend = PostgresBackend::on(pool, options, Arc::new(SystemClock)).await?;
    let locks = LockManager::builder().build(backend)?;
    Ok(PgFencedLocks::in_one_database(locks, store))
}

mod sealed {
    use super::{
        FencedLockError, PgConnectOptions, PgFencedStore, PgPool, PgPoolOptions, database_url,
    };

    #[expect(unnameable_types, reason = "what seals `Database`")]
    pub trait Database: Send {
        fn store(self) -> Result<PgFencedStore, FencedLockError>;
    }

    impl Database for PgFencedStore {
        fn store(self) -> Result<PgFencedStore, FencedLockError> {
            Ok(self)
        }
    }

    impl Database for PgPool {
        fn store(self) -> Result<PgFencedStore, FencedLockError> {
            Ok(PgFencedStore::new(self))
        }
    }

    impl Database for &str {
        fn store(self) -> Result<PgFencedStore, FencedLockError> {
            let options = database_url::parse(self, PgConnectOptions::host)?;
            PgPoolOptions::new().connect_lazy_with(options).store()
        }
    }

    impl Database for String {
        fn store(self) -> Result<PgFencedStore, FencedLockError> {
            self.as_str().store()
        }
    }
}
