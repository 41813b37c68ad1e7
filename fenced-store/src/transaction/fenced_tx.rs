use std::{
    borrow::Cow,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use lock_core::{Sequencer, backend::support::Tasks};
use tracing::debug;

use crate::{
    Dialect, FenceError, FencedSavepoint, Receipt, Storage, storage::OpenTransaction,
    transaction::uninterrupted::uninterrupted,
};

/// A transaction that the store has accepted: until it ends, no newer holder can claim a resource
/// that fences it.
///
/// It derefs to the connection of the database, so your own queries run on `&mut *tx`; savepoints
/// are [`tx.begin()`](FencedTx::begin). Its reads are current: older holders have committed all
/// that they are going to commit.
///
/// A statement of yours that ends the transaction (`COMMIT`, `ROLLBACK`) also ends the fence, and
/// sqlx does not notice that. [`commit`](FencedTx::commit) then fails.
///
/// NOT for use on that connection: sqlx's own `Connection::begin` and `Acquire::begin`. In sqlx
/// 0.9.0, the drop of their future rolls back the whole transaction, and later statements would be
/// stored one by one, unfenced. In Postgres the session is ended the next time that the connection
/// is taken from this type. In SQLite these calls fail, and do no harm. In MySQL nothing stops
/// later statements, and only the commit detects the end.
///
/// # Dropping
/// Dropping it rolls back. The mark stays as it is.
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
/// sqlx::query("UPDATE accounts SET balance = balance + 10 WHERE id = 42")
///     .execute(&mut *tx)
///     .await?;
/// let receipt = tx.commit().await?;
/// assert_eq!(receipt.token(), guard.token());
/// # Ok(()) }
/// ```
#[must_use = "a fenced transaction is rolled back when it is dropped"]
#[clippy::has_significant_drop]
pub struct FencedTx<DB: Storage> {
    tx: DB::Tx,
    /// At least one.
    sequencers: Vec<Sequencer>,
    undecided_savepoints: usize,
}

impl<DB: Storage> FencedTx<DB> {
    pub(crate) const fn new(tx: DB::Tx, sequencers: Vec<Sequencer>) -> Self {
        Self {
            tx,
            sequencers,
            undecided_savepoints: 0,
        }
    }

    /// The tasks that finish its work if a caller goes away.
    pub(crate) fn tasks(&self) -> &Tasks {
        self.tx.tasks()
    }

    /// The grant that fences this transaction; if there are several, the first that was named.
    #[must_use]
    pub fn sequencer(&self) -> &Sequencer {
        &self.sequencers[0]
    }

    /// All grants that fence this transaction, in the order in which they were named.
    pub fn sequencers(&self) -> impl Iterator<Item = &Sequencer> {
        self.sequencers.iter()
    }

    /// See [`Storage::catch_up`].
    pub(crate) async fn catch_up(&mut self) -> Result<(), FenceError> {
        let runtime = Arc::clone(self.tx.tasks().runtime());
        DB::catch_up(&mut *self.tx, &*runtime).await
    }

    /// Commits. A receipt means that everything since `begin` is committed, and was fenced.
    ///
    /// sqlx's own `commit` returns `Ok` for a transaction that a failed statement has already
    /// aborted, although nothing is stored. This method returns an error.
    ///
    /// # Errors
    /// [`FenceError::Aborted`] if a statement failed and its error was ignored, or a savepoint was
    /// neither committed nor rolled back. [`FenceError::CommitUnknown`] if no answer came, or the
    /// answer leaves the result open. Otherwise errors of the database, and then nothing was
    /// committed. In MySQL a statement whose future was dropped may make the commit fail. The
    /// commit is not sent if that statement has no answer after 5 s.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the commit goes on in the background, and its
    /// result is unknown.
    pub async fn commit(self) -> Result<Receipt, FenceError> {
        let (receipt, _) = self.commit_with(None).await?;
        Ok(receipt)
    }

    /// Commits. If the name of a lease in the lock service is given, the database then releases
    /// that lease. Also returns whether the lease was released.
    pub(crate) async fn commit_with(
        self,
        lease: Option<(Cow<'_, str>, &Sequencer)>,
    ) -> Result<(Receipt, bool), FenceError> {
        let Self {
            tx,
            sequencers,
            undecided_savepoints,
        } = self;
        if undecided_savepoints != 0 {
            if let Err(error) = tx.roll_back().await {
                // If the transaction had ended before, later writes may be stored.
                debug!(%error, "a transaction that must not be committed was not rolled back");
            }
            return Err(FenceError::Aborted);
        }
        let lease = lease.map(|(name, lease)| (name.into_owned(), lease.clone()));
        let tasks = tx.tasks().clone();
        let committed = async move {
            match lease {
                None => DB::commit(tx).await.map(|()| false),
                Some((name, lease)) => DB::commit_and_release(tx, &name, &lease).await,
            }
        };
        let released = uninterrupted(tasks, committed).await?;
        Ok((Receipt::of_commit(&sequencers), released))
    }

    /// Rolls back, and waits until it is done. Dropping does the same without waiting.
    ///
    /// # Errors
    /// If the connection broke. The database then rolls back by itself.
    ///
    /// # Cancel safety
    /// Cancel safe: the transaction is rolled back nevertheless.
    pub async fn rollback(self) -> Result<(), FenceError> {
        self.tx.roll_back().await
    }
}

impl<DB: Dialect> FencedTx<DB> {
    /// Sets a savepoint: later writes can be undone separately.
    ///
    /// # Errors
    /// Errors of the database; a transaction with a failed statement in it must be rolled back.
    ///
    /// # Cancel safety
    /// Cancel safe: a savepoint that was set meanwhile stays unused and has no effect.
    pub async fn begin(&mut self) -> Result<FencedSavepoint<'_, DB>, FenceError> {
        let runtime = Arc::clone(self.tx.tasks().runtime());
        FencedSavepoint::set(&mut *self.tx, &mut self.undecided_savepoints, runtime).await
    }
}

impl<DB: Storage> Deref for FencedTx<DB> {
    type Target = DB::Session;

    fn deref(&self) -> &DB::Session {
        &self.tx
    }
}

impl<DB: Storage> DerefMut for FencedTx<DB> {
    fn deref_mut(&mut self) -> &mut DB::Session {
        DB::seal_if_over(&mut *self.tx);
        &mut self.tx
    }
}

impl<DB: Storage> fmt::Debug for FencedTx<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedTx")
            .field("database", &DB::KIND)
            .field("sequencers", &self.sequencers)
            .finish_non_exhaustive()
    }
}
