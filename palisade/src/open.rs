use std::sync::Arc;

use fenced_store::{Dialect, FencedLockError, FencedLocks, FencedStore, Rights};
use lock_core::{
    Error, LockManager,
    backend::{ConnectOptions, LockService, Runtime, TokioRuntime},
};
use sqlx::Pool;

/// The argument of [`open`]: the pool of an application, a store with settings, or for PostgreSQL
/// also a URL, with or without [`ConnectOptions`]. Sealed.
pub trait Database: sealed::Database {}

impl<D: sealed::Database> Database for D {}

/// Opens one database as lock service and store. No other server is needed.
///
/// The argument is a pool, or a store with settings. A text is the URL of a PostgreSQL database,
/// which may have the parameters of the lock service, such as `prefix`.
///
/// Applies the [migrations](FencedStore::migrate) that are missing. If the role may not apply
/// migrations, none may be missing: otherwise the error names the missing migration or right.
///
/// The locks use connections of their own, with the login of the store's pool, so that renewals do
/// not queue behind the transactions of the application. To set options of the manager, do the same
/// in three steps: connect the lock service `on` the pool, [`LockManager::builder`],
/// [`FencedLocks::in_one_database`].
///
/// # Errors
/// [`FencedLockError::Store`] if the database cannot be reached, takes no writes, or is not as this
/// build needs it: see [`check`](FencedStore::check). [`FencedLockError::Lock`] if the URL is
/// wrong, or if the connection to the lock service fails.
///
/// # Panics
/// Outside a Tokio runtime.
///
/// # Cancel safety
/// Cancel safe.
///
/// # Examples
/// ```no_run
/// # #[cfg(feature = "postgres")]
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
pub async fn open<D: Database>(database: D) -> Result<FencedLocks<D::In>, FencedLockError> {
    let (store, options) = database.store()?;
    store.migrate().await?;
    store.check(Rights::ClaimAndWrite).await?;
    let service = sealed::Both::lock_service(store.pool(), options, Arc::new(TokioRuntime)).await?;
    let locks = LockManager::builder().build(service)?;
    Ok(FencedLocks::in_one_database(locks, store))
}

mod sealed {
    use super::{
        Arc, ConnectOptions, Dialect, Error, FencedLockError, FencedStore, LockService, Pool,
        Runtime,
    };

    pub(super) type Opened<DB> = Result<(FencedStore<DB>, ConnectOptions), FencedLockError>;

    #[expect(unnameable_types, reason = "what seals `Database`")]
    pub trait Database: Send {
        type In: Both;

        fn store(self) -> Opened<Self::In>;
    }

    /// A database that can be lock service and store.
    #[expect(unnameable_types, reason = "what seals `Database`")]
    pub trait Both: Dialect {
        fn lock_service(
            pool: &Pool<Self>,
            options: ConnectOptions,
            runtime: Arc<dyn Runtime>,
        ) -> impl Future<Output = Result<LockService, Error>> + Send;
    }

    impl<DB: Both> Database for FencedStore<DB> {
        type In = DB;

        fn store(self) -> Opened<DB> {
            Ok((self, ConnectOptions::default()))
        }
    }

    impl<DB: Both> Database for Pool<DB> {
        type In = DB;

        fn store(self) -> Opened<DB> {
            FencedStore::new(self).store()
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use palisade_postgres::{PostgresBackend, address_of};
    use sqlx::{Postgres, postgres::PgPoolOptions};

    use super::{
        Arc, ConnectOptions, Error, FencedStore, LockService, Pool, Runtime,
        sealed::{Both, Database, Opened},
    };

    impl Both for Postgres {
        async fn lock_service(
            pool: &Pool<Self>,
            options: ConnectOptions,
            runtime: Arc<dyn Runtime>,
        ) -> Result<LockService, Error> {
            let backend = PostgresBackend::on(pool.clone(), options, runtime).await?;
            Ok(backend.into())
        }
    }

    impl Database for ConnectOptions {
        type In = Postgres;

        fn store(self) -> Opened<Postgres> {
            let pool = PgPoolOptions::new().connect_lazy_with(address_of(&self)?);
            Ok((FencedStore::new(pool), self))
        }
    }

    impl Database for &str {
        type In = Postgres;

        fn store(self) -> Opened<Postgres> {
            ConnectOptions::from(self).store()
        }
    }

    impl Database for String {
        type In = Postgres;

        fn store(self) -> Opened<Postgres> {
            ConnectOptions::from(self).store()
        }
    }
}

#[cfg(feature = "mysql")]
mod mysql {
    use palisade_mysql::MySqlBackend;
    use sqlx::MySql;

    use super::{Arc, ConnectOptions, Error, LockService, Pool, Runtime, sealed::Both};

    impl Both for MySql {
        async fn lock_service(
            pool: &Pool<Self>,
            options: ConnectOptions,
            runtime: Arc<dyn Runtime>,
        ) -> Result<LockService, Error> {
            let backend = MySqlBackend::on(pool, options, runtime).await?;
            Ok(backend.into())
        }
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use palisade_sqlite::SqliteBackend;
    use sqlx::Sqlite;

    use super::{Arc, ConnectOptions, Error, LockService, Pool, Runtime, sealed::Both};

    impl Both for Sqlite {
        async fn lock_service(
            pool: &Pool<Self>,
            options: ConnectOptions,
            runtime: Arc<dyn Runtime>,
        ) -> Result<LockService, Error> {
            let file = pool.connect_options();
            let backend = SqliteBackend::on(&file, options, runtime).await?;
            Ok(backend.into())
        }
    }
}
