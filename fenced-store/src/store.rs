use std::sync::Arc;

use lock_core::{
    FencingToken, Plausibility, ResourceName, Sequencer,
    backend::{Runtime, TokioRuntime, support::Tasks},
};
use sqlx::Pool;

use crate::{
    Dialect, FenceError, HighWater, Rights, Storage, counted,
    schema::{migrations, readiness},
    transaction::uninterrupted::uninterrupted,
};

/// A database that accepts a write only from the grant that its high-water mark shows.
///
/// For each resource the store remembers the greatest token that was claimed, and the holder that
/// claimed it. This pair is the mark. [`claim`] raises the mark. [`begin`] opens a transaction only
/// for the grant that the mark shows, and the check holds until the transaction ends.
///
/// NOT guaranteed: anything about writes outside of fenced transactions, or about effects outside
/// of the database. Cloning is cheap. All methods need a Tokio runtime, as sqlx does.
///
/// [`claim`]: FencedStore::claim
/// [`begin`]: FencedStore::begin
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
/// # let (locks, store) = (accounts.locks(), accounts.store());
/// let slow = locks.acquire("account:42").await?;
/// store.claim(slow.sequencer()).await?;
/// locks.force_release("account:42").await?; // as if the holder was paused past its lease
/// let next = locks.acquire("account:42").await?;
/// store.claim(next.sequencer()).await?;
///
/// store.begin(next.sequencer()).await?.commit().await?;
/// let refused = store.begin(slow.sequencer()).await.unwrap_err();
/// assert!(matches!(refused, FenceError::Stale { .. }));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FencedStore<DB: Storage> {
    pub(crate) access: DB::Access,
    pub(crate) tx_options: DB::TxOptions,
    plausibility: Option<Plausibility>,
    pub(crate) runtime: Arc<dyn Runtime>,
}

impl<DB: Storage> FencedStore<DB> {
    /// A store that is reached this way.
    pub(crate) fn over(access: DB::Access) -> Self {
        counted::begin();
        Self {
            access,
            tx_options: DB::TxOptions::default(),
            plausibility: None,
            runtime: Arc::new(TokioRuntime),
        }
    }

    /// The source of time, of chance and of tasks: pauses between the attempts of
    /// [`transact`](FencedStore::transact), the names of transactions, clean-ups of transactions
    /// that were dropped. Defaults to [`TokioRuntime`]. Time limits of the pool and of the database
    /// are counted by sqlx and the server.
    #[must_use]
    pub fn runtime(mut self, runtime: Arc<dyn Runtime>) -> Self {
        self.runtime = runtime;
        self
    }

    pub(crate) fn with_tx_options(mut self, tx_options: DB::TxOptions) -> Self {
        self.tx_options = tx_options;
        self
    }

    /// The bound for tokens that are claimed, and for marks that an administrator sets. Defaults to
    /// [`Plausibility::by`] the clock of the [`runtime`](FencedStore::runtime).
    ///
    /// For a lock service whose counters start at a small number choose [`Plausibility::up_to`].
    /// Claims that do not come through this method, from SQL in another language for example, are
    /// not checked.
    #[must_use]
    pub fn plausibility(mut self, plausibility: Plausibility) -> Self {
        self.plausibility = Some(plausibility);
        self
    }

    pub(crate) fn admits(&self, token: FencingToken) -> bool {
        match &self.plausibility {
            Some(plausibility) => plausibility.admits(token),
            None => Plausibility::by(Arc::clone(&self.runtime)).admits(token),
        }
    }

    /// The tasks that finish its work if a caller goes away.
    pub(crate) fn tasks(&self) -> Tasks {
        Tasks::here(Arc::clone(&self.runtime))
    }

    pub(crate) const fn tx_options(&self) -> &DB::TxOptions {
        &self.tx_options
    }

    /// Raises the high-water mark to this grant, which shuts out every older holder.
    ///
    /// Call it once per acquisition, after acquiring and *before* anything is read. When it
    /// returns, no transaction of an older holder is in progress any more. Claiming the same grant
    /// again is allowed and changes nothing.
    ///
    /// If a transaction of an older holder is still open, the claim waits for it, up to the lock
    /// timeout. Then it ends that session (`PgTxOptions::terminate_older`, and the same in
    /// `MySqlTxOptions`). In SQLite, and where ending sessions is switched off or not allowed, the
    /// claim fails with [`FenceError::Busy`].
    ///
    /// # Errors
    /// Fenced: [`FenceError::Stale`], [`FenceError::DuplicateToken`], [`FenceError::WrongIssuer`].
    /// These, and [`FenceError::Implausible`], change nothing and disturb no other holder. After
    /// [`FenceError::Busy`] or [`FenceError::Serialization`] the mark is as it was; after
    /// [`FenceError::Db`] it may have been raised. After each of these three errors claim again.
    ///
    /// # Cancel safety
    /// The claim is finished in the background. Claim again to find out its result.
    pub async fn claim(&self, sequencer: &Sequencer) -> Result<(), FenceError> {
        counted::refusal(self.claim_uncounted(sequencer).await)
    }

    pub(crate) async fn claim_uncounted(&self, sequencer: &Sequencer) -> Result<(), FenceError> {
        if !self.admits(sequencer.token()) {
            let resource = sequencer.resource().clone();
            return Err(FenceError::implausible(resource, sequencer.token()));
        }
        let (store, sequencer) = (self.clone(), sequencer.clone());
        let claim = async move { DB::claim(&store.access, &store.tx_options, &sequencer).await };
        uninterrupted(self.tasks(), claim).await
    }

    /// Waits until no transaction of this grant is in progress. Call it after a commit whose answer
    /// was lost ([`FenceError::CommitUnknown`]), before you repeat anything.
    ///
    /// Until then that commit may still happen, because the server may not have begun it. When this
    /// returns, the commit has happened or never will. Settling does *not* find out which: look, in
    /// a fenced transaction, at the data that the commit would have changed.
    ///
    /// This is certain only for transactions whose `begin` had returned. Settling changes nothing,
    /// and it does not claim.
    ///
    /// # Errors
    /// [`FenceError::Stale`]: a newer holder has claimed. In this case, too, no transaction of this
    /// grant is in progress, and no further one will be accepted. [`FenceError::MarkLost`]: the
    /// store has forgotten the claim, so it cannot answer. [`FenceError::Busy`]: a transaction is
    /// still in progress, perhaps one whose client is gone. Call again: in Postgres that
    /// transaction ends at its own timeouts at the latest. Settling ends no sessions.
    ///
    /// # Cancel safety
    /// Cancel safe: it changes nothing.
    pub async fn settle(&self, sequencer: &Sequencer) -> Result<(), FenceError> {
        let (store, sequencer) = (self.clone(), sequencer.clone());
        let settle = async move { DB::settle(&store.access, &store.tx_options, &sequencer).await };
        let settled = counted::refusal(uninterrupted(self.tasks(), settle).await);
        settled.map_err(FenceError::of_claimed)
    }

    /// Reads the high-water mark of a resource; `None` if it was never claimed, or its mark is
    /// [forgotten](Self::forget_marks).
    ///
    /// # Errors
    /// If the database cannot be queried.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn high_water(
        &self,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        DB::high_water(&mut *DB::read(&self.access).await?, resource).await
    }
}

/// In a database of sqlx.
impl<DB: Dialect> FencedStore<DB> {
    /// A store that uses the application's own pool. Call [`migrate`](FencedStore::migrate) once.
    #[must_use]
    pub fn new(pool: Pool<DB>) -> Self {
        Self::over(pool)
    }

    /// The pool. Direct writes through it are not fenced.
    #[must_use]
    pub const fn pool(&self) -> &Pool<DB> {
        &self.access
    }

    /// Creates the tables of this crate, or brings them up to date.
    ///
    /// The tables are beside those of the application: in the schema `fenced` (Postgres) or with
    /// the prefix `fenced_`. They have a migrations table of their own. Call it as often as you
    /// like, also from several processes at once. If a migration is missing, the role has to be one
    /// that may create tables.
    ///
    /// # Errors
    /// [`FenceError::NotReady`], for example if a migration is missing and the role may not apply
    /// it, or if the database has one that this build does not know. Otherwise
    /// [`FenceError::Migration`]. After an error nothing has changed in Postgres and SQLite.
    ///
    /// # Cancel safety
    /// Cancel safe: work that has been started is finished in the background, or not done at all.
    pub async fn migrate(&self) -> Result<(), FenceError> {
        let pool = self.access.clone();
        uninterrupted(self.tasks(), async move { readiness::migrate(&pool).await }).await
    }

    /// Checks that the database is as this build needs it, and that the role has the rights for
    /// fenced writes. A program that does not migrate calls it before its first request.
    ///
    /// When it returns, exactly the migrations of this build were applied, the role has the rights
    /// (in Postgres, MySQL and MariaDB), and the database takes writes at this moment: see
    /// [`check_writable`](FencedStore::check_writable). The check does not look at the tables of
    /// the application, nor at rights that only [administrators](FencedStore::admin) and
    /// [`protect`](FencedStore::protect) need. It leaves nothing behind.
    ///
    /// # Errors
    /// [`FenceError::NotMigrated`] if none of our tables is there. [`FenceError::NotReady`] names
    /// anything else that is missing. Otherwise errors of the database.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn check(&self, rights: Rights) -> Result<(), FenceError> {
        readiness::check(&self.access, rights).await
    }

    /// Checks that the database takes writes now. The check is meant for probes. It fails on a
    /// standby, on a database that was switched to read only, on a read-only file, and on a full
    /// disk. It needs no lock that a client could hold.
    ///
    /// SQLite and MariaDB commit a row that the same transaction has deleted. Postgres writes 70 kB
    /// to a temporary file and deletes it, because a role need not have a right on any table.
    ///
    /// NOT a promise about the next write. On a full disk a server may still change rows for which
    /// it has room. `temp_tablespaces` may put the temporary file of Postgres on another disk.
    ///
    /// # Errors
    /// [`FenceError::NotReady`] with the reason, or errors of the database.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn check_writable(&self) -> Result<(), FenceError> {
        readiness::check_writable(&self.access).await
    }

    /// The work of [`migrate`](FencedStore::migrate) for a database that has none of our tables, as
    /// a script for the client of the database. Read it, or let the owner of the schema apply it.
    /// [`migrate`](FencedStore::migrate) then finds nothing to do.
    ///
    /// Make the client stop at the first error: `psql -v ON_ERROR_STOP=1`, `sqlite3 -bail`.
    /// `mariadb` and `mysql` always stop at it. In a database that has our tables, the script fails
    /// at once and changes nothing.
    ///
    /// # Examples
    /// ```
    /// # #[cfg(feature = "postgres")]
    /// assert!(fenced_store::PgFencedStore::migration_script().contains("CREATE SCHEMA"));
    /// ```
    #[must_use]
    pub fn migration_script() -> String {
        migrations::script(&DB::migrations())
    }
}

impl<DB: Storage> Clone for FencedStore<DB> {
    fn clone(&self) -> Self {
        Self {
            access: self.access.clone(),
            tx_options: self.tx_options.clone(),
            plausibility: self.plausibility.clone(),
            runtime: Arc::clone(&self.runtime),
        }
    }
}
