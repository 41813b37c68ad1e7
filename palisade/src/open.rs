use std::sync::Arc;

use fenced_store::{FencedLockError, PgFencedLocks, PgFencedStore, Rights};
use lock_core::{
    LockManager,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade_postgres::{PostgresBackend, address_of};
use sqlx::{PgPool, postgres::PgPoolOptions};

/// The argument of [`open`]: the URL of a PostgreSQL database, with or without [`ConnectOptions`],
/// the pool of an application, or a store with settings. Sealed.
pub trait Database: sealed::Database {}

impl<D: sealed::Database> Database for D {}

/// Opens one PostgreSQL database as lock service and store: nothing else is needed.
///
/// Applies the [migrations](PgFencedStore::migrate) that are missing. A role that may not apply
/// them needs none: it gets an error that says what is missing, or which right it lacks.
///
/// The locks use connections of their own, with the login of the store's pool, so that renewals do
/// not queue behind the transactions of the application. The URL may have the parameters of the
/// lock service, such as `prefix`. With settings of the manager, do the same in three steps:
/// [`PostgresBackend::on`] the pool, [`LockManager::builder`], [`PgFencedLocks::in_one_database`].
///
/// # Errors
/// [`FencedLockError::Store`] if the database cannot be reached, takes no writes, or is not as this
/// build needs it: see [`check`](PgFencedStore::check).
/// [`FencedLockError::Lock`] if the URL is wrong, and as [`PostgresBackend::on`].
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
    let (store, options) = database.store()?;
    store.migrate().await?;
    store.check(Rights::ClaimAndWrite).await?;
    let pool = store.pool().clone();
    let backend = PostgresBackend::on(pool, options, Arc::new(TokioRuntime)).await?;
    let locks = LockManager::builder().build(backend)?;
    Ok(PgFencedLocks::in_one_database(locks, store))
}

mod sealed {
    use super::{
        ConnectOptions, FencedLockError, PgFencedStore, PgPool, PgPoolOptions, address_of,
    };

    type Opened = Result<(PgFencedStore, ConnectOptions), FencedLockError>;

    #[expect(unnameable_types, reason = "what seals `Database`")]
    pub trait Database: Send {
        fn store(self) -> Opened;
    }

    impl Database for PgFencedStore {
        fn store(self) -> Opened {
            Ok((self, ConnectOptions::default()))
        }
    }

    impl Database for PgPool {
        fn store(self) -> Opened {
            PgFencedStore::new(self).store()
        }
    }

    impl Database for ConnectOptions {
        fn store(self) -> Opened {
            let address = address_of(&self);
            let address = address?;
            let pool = PgPoolOptions::new().connect_lazy_with(address);
            Ok((PgFencedStore::new(pool), self))
        }
    }

    impl Database for &str {
        fn store(self) -> Opened {
            ConnectOptions::from(self).store()
        }
    }

    impl Database for String {
        fn store(self) -> Opened {
            ConnectOptions::from(self).store()
        }
    }
}
