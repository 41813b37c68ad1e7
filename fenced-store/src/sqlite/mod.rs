//! SQLite. `BEGIN IMMEDIATE` makes a transaction the only writer of the file. So a plain read of
//! the mark inside it is a check that holds until the transaction ends.

mod administer;
mod claim;
mod enter;
mod error;
mod migrate;
mod protect;
mod tx;

use std::time::Duration;

use lock_core::{ResourceName, Sequencer};
use sqlx::{
    Connection, Executor, SqlStr, Sqlite, SqliteConnection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};
use tracing::{debug, warn};

pub(crate) use self::error::classify;
use self::{
    enter::LEAVE,
    error::{no_transaction, of_our_call},
    tx::SqliteTx,
};
use crate::{
    FenceError, FencedStore, HighWater, Protected, Protection, Rights,
    admin::by_statements::ByStatements, dialect::sealed::Operations, entering::Entering,
    entry::Entry, marks, rule::Mark, statement::Statement, strays::not_a_stray,
};

/// A fenced store in an SQLite file.
///
/// A fenced transaction keeps out all other writers of the file, whatever their resource. So does a
/// process that is stopped inside one: claims are [`Busy`](FenceError::Busy) until it continues or
/// ends. SQLite has no remedy for that.
///
/// When a statement fails, SQLite may end the transaction by itself: because of `RAISE(ROLLBACK)`
/// or `ON CONFLICT ROLLBACK`, a full disk, an I/O error, lack of memory, or an interrupt. Later
/// statements are then written unfenced. The commit reports this, but too late: roll back
/// after any error.
pub type SqliteFencedStore = FencedStore<Sqlite>;

/// A lock service combined with a fenced store in an SQLite file.
pub type SqliteProtected = Protected<Sqlite>;

impl FencedStore<Sqlite> {
    /// Sets what a fenced store needs of a connection: a write-ahead log, so that readers do not
    /// block writers; `synchronous = FULL`, without which a power cut may take back a mark; and the
    /// time for which a writer waits for another one, 5 s.
    #[must_use]
    pub fn recommended(options: SqliteConnectOptions) -> SqliteConnectOptions {
        options
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(5))
    }
}

impl Operations for Sqlite {
    type Admin = ByStatements;

    type Tx = SqliteTx;

    type TxOptions = ();

    async fn apply_migrations(pool: &SqlitePool) -> Result<(), FenceError> {
        migrate::apply(pool).await
    }

    async fn check_migrations(pool: &SqlitePool) -> Result<(), FenceError> {
        migrate::check(pool).await
    }

    /// There are no roles.
    async fn check_rights(_: &SqlitePool, _: Rights) -> Result<(), FenceError> {
        Ok(())
    }

    fn is_denied(_: &FenceError) -> bool {
        false
    }

    fn migration_script() -> String {
        migrate::script()
    }

    async fn claim(pool: &SqlitePool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        claim::claim(pool, sequencer).await
    }

    async fn settle(pool: &SqlitePool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        claim::settle(pool, sequencer).await
    }

    async fn begin(
        pool: SqlitePool,
        (): (),
        entering: Entering,
    ) -> Result<(SqliteTx, Entry), FenceError> {
        let (tx, is_noted) = enter::enter(&pool, &entering).await?;
        Ok((tx, entering.entry().noted(is_noted)))
    }

    async fn commit(mut tx: SqliteTx, entry: Entry) -> Result<(), FenceError> {
        let Err(source) = tx.commit(entry.is_noted()).await else {
            return Ok(());
        };
        if error::no_savepoint(&source) {
            leave(&mut tx, entry.is_noted()).await;
            return Err(FenceError::Aborted);
        }
        Err(error::of_commit(source))
    }

    async fn rollback(tx: SqliteTx) -> Result<(), sqlx::Error> {
        tx.rollback().await
    }

    async fn run(
        connection: &mut SqliteConnection,
        statement: Statement<Self>,
    ) -> Result<u64, sqlx::Error> {
        let executed = statement.into_query().execute(connection).await?;
        Ok(executed.rows_affected())
    }

    async fn protect(pool: &SqlitePool, protection: &Protection) -> Result<(), FenceError> {
        protect::protect(pool, protection).await
    }

    async fn unprotect(pool: &SqlitePool, protection: &Protection) -> Result<(), FenceError> {
        protect::unprotect(pool, protection).await
    }

    async fn execute(
        connection: &mut SqliteConnection,
        statements: SqlStr,
    ) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(statements)
            .execute(connection)
            .await
            .map(drop)
    }

    /// Does nothing: another thread does the rollback, later, so there is nothing to see yet.
    fn seal_if_over(_: &mut SqliteConnection) {}

    fn is_stray(error: &sqlx::Error) -> bool {
        error::is_stray(error)
    }

    async fn refuse_stray(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        if connection.is_in_transaction() {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        // One statement: if it is dropped, nothing of it is left. Outside of a transaction, where
        // the connection should be, it fails.
        match connection.execute("ROLLBACK").await {
            Err(error) if no_transaction(&error) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(sqlx::Error::InvalidSavePointStatement),
        }
    }

    async fn high_water(
        pool: &SqlitePool,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
        let mark = mark(&mut connection, resource).await?;
        Ok(mark.map(Mark::high_water))
    }
}

/// All tables of ours are named with their file: an attached one never comes before it, but a TEMP
/// table of the same name does.
const MARK: &str =
    "SELECT token, holder, issuer FROM main.fenced_high_water_mark WHERE resource = ?";

async fn mark(
    connection: &mut SqliteConnection,
    resource: &ResourceName,
) -> Result<Option<Mark>, FenceError> {
    marks::mark::<Sqlite>(connection, MARK, resource, of_our_call).await
}

/// A statement that ended the transaction may have committed the note of what was entered.
async fn leave(connection: &mut SqliteConnection, is_noted: bool) {
    if let Err(error) = connection.execute("ROLLBACK").await {
        debug!(%error, "a transaction that was ended inside was the last one");
    }
    if is_noted && let Err(error) = connection.execute(LEAVE).await {
        warn!(%error, "a transaction that was ended inside has left the note of what it entered");
    }
}
