use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use lock_core::backend::Runtime;

use crate::{Dialect, FenceError, transaction::tx_name::TxName};

/// A savepoint of a [`FencedTx`](crate::FencedTx): later writes can be undone without ending the
/// transaction.
///
/// It derefs to the connection, as the transaction does. Savepoints can be nested.
///
/// # Dropping
/// End it by [`commit`](FencedSavepoint::commit) or [`rollback`](FencedSavepoint::rollback). A
/// savepoint that is dropped instead is undecided. The transaction can then only be rolled back:
/// the commit of the transaction fails with [`FenceError::Aborted`].
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
/// let guard = accounts.acquire("account:42").await?;
/// let mut tx = guard.begin().await?;
/// let mut attempt = tx.begin().await?;
/// sqlx::query("UPDATE accounts SET balance = 0").execute(&mut *attempt).await?;
/// attempt.rollback().await?; // undoes the writes after the savepoint
/// tx.commit().await?;
/// # let balance: i64 = sqlx::query_scalar("SELECT balance FROM accounts")
/// #     .fetch_one(accounts.store().pool())
/// #     .await?;
/// # assert_eq!(balance, 100);
/// # Ok(()) }
/// ```
#[must_use = "a transaction with an undecided savepoint cannot be committed"]
pub struct FencedSavepoint<'tx, DB: Dialect> {
    connection: &'tx mut DB::Connection,
    name: TxName,
    undecided: &'tx mut usize,
    undecided_before: usize,
    runtime: Arc<dyn Runtime>,
}

impl<'tx, DB: Dialect> FencedSavepoint<'tx, DB> {
    /// Uses a name that is never used again, so that a savepoint that was left behind by a dropped
    /// future does no harm.
    pub(crate) async fn set(
        connection: &'tx mut DB::Connection,
        undecided: &'tx mut usize,
        runtime: Arc<dyn Runtime>,
    ) -> Result<Self, FenceError> {
        let name = TxName::draw(&*runtime);
        DB::savepoint(connection, &*runtime, format!("SAVEPOINT {name}"), 1).await?;
        let undecided_before = *undecided;
        *undecided += 1;
        Ok(Self {
            connection,
            name,
            undecided,
            undecided_before,
            runtime,
        })
    }

    /// Sets a savepoint inside this one. As [`FencedTx::begin`](crate::FencedTx::begin).
    ///
    /// # Errors
    /// Errors of the database. A transaction with a failed statement in it has to be rolled back.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn begin(&mut self) -> Result<FencedSavepoint<'_, DB>, FenceError> {
        let runtime = Arc::clone(&self.runtime);
        FencedSavepoint::set(self.connection, self.undecided, runtime).await
    }

    /// Keeps the writes since the savepoint. They are stored when the transaction is committed.
    ///
    /// # Errors
    /// Errors of the database. The savepoint is undecided then: the transaction can only be rolled
    /// back.
    ///
    /// # Cancel safety
    /// If the future is dropped, the savepoint is undecided.
    pub async fn commit(self) -> Result<(), FenceError> {
        let release = format!("RELEASE SAVEPOINT {}", self.name);
        DB::savepoint(self.connection, &*self.runtime, release, 1).await?;
        *self.undecided -= 1;
        Ok(())
    }

    /// Undoes the writes since the savepoint. This works after a failed statement, too.
    ///
    /// # Errors
    /// Errors of the database. The savepoint is undecided then: the transaction can only be rolled
    /// back.
    ///
    /// # Cancel safety
    /// If the future is dropped, the savepoint is undecided.
    pub async fn rollback(self) -> Result<(), FenceError> {
        let name = self.name;
        let undo = format!("ROLLBACK TO SAVEPOINT {name}; RELEASE SAVEPOINT {name}");
        DB::savepoint(self.connection, &*self.runtime, undo, 2).await?;
        // Nested savepoints are undone, too, even those that were committed.
        *self.undecided = self.undecided_before;
        Ok(())
    }
}

impl<DB: Dialect> Deref for FencedSavepoint<'_, DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        self.connection
    }
}

impl<DB: Dialect> DerefMut for FencedSavepoint<'_, DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        DB::seal_if_over(self.connection);
        self.connection
    }
}

impl<DB: Dialect> fmt::Debug for FencedSavepoint<'_, DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedSavepoint")
            .field("database", &DB::NAME)
            .finish_non_exhaustive()
    }
}
