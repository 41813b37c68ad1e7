//! MySQL 8 and MariaDB 10.6 or newer, on one writable server: with several writers (Galera) two
//! transactions can pass the check at once.
//!
//! A locking read sees the latest committed mark at every isolation level and keeps claims out
//! until the transaction ends; InnoDB serves lock requests in their order, so a claim is not
//! overtaken.

mod administer;
mod claim;
mod enter;
mod error;
mod mark;
mod migrate;
mod older;
mod options;
mod protect;
mod rights;
mod tx;

use std::time::Duration;

use lock_core::{ResourceName, Sequencer};
use sqlx::{Connection, Executor, MySql, MySqlConnection, MySqlPool, SqlStr};
use tracing::debug;

pub(crate) use self::error::classify;
pub use self::options::MySqlTxOptions;
use self::{
    error::{is_entry_missing, of_commit, of_our_call},
    tx::MySqlTx,
};
use crate::{
    FenceError, FencedStore, HighWater, Protected, Protection, Rights,
    admin::by_statements::ByStatements,
    dialect::sealed::Operations,
    entering::Entering,
    entry::Entry,
    marks::{self, MARK},
    readiness::of_database,
    rule::Mark,
    statement::Statement,
    strays::not_a_stray,
    uninterrupted::uninterrupted,
};

/// A fenced store in MariaDB or MySQL.
///
/// A statement that fails may leave the transaction open (a lock wait that took too long) or end it
/// (a deadlock). Later statements are then stored without the failed one, or even unfenced, and
/// only in the second case does the commit fail: roll back after any error.
pub type MySqlFencedStore = FencedStore<MySql>;

/// A lock service combined with a fenced store in MariaDB or MySQL.
pub type MySqlProtected = Protected<MySql>;

impl FencedStore<MySql> {
    /// The same store, with these settings for claims and transactions.
    #[must_use]
    pub fn with_options(self, options: MySqlTxOptions) -> Self {
        self.with_tx_options(options)
    }
}

/// Deletes the note of the resources that the session has entered.
const LEAVE: &str = "DELETE FROM fenced_open_transaction WHERE connection_id = CONNECTION_ID()";

/// Clears what the triggers of protected tables look at first.
const FORGET: &str = "SET @fenced_entry = NULL, @fenced_resources = NULL";

impl Operations for MySql {
    type Admin = ByStatements;

    type Tx = MySqlTx;

    type TxOptions = MySqlTxOptions;

    fn lock_timeout(options: &MySqlTxOptions) -> Option<Duration> {
        options.lock_timeout
    }

    async fn apply_migrations(pool: &MySqlPool) -> Result<(), FenceError> {
        migrate::apply(pool).await
    }

    async fn check_migrations(pool: &MySqlPool) -> Result<(), FenceError> {
        migrate::check(pool).await
    }

    async fn check_rights(pool: &MySqlPool, rights: Rights) -> Result<(), FenceError> {
        rights::check(pool, rights).await
    }

    fn is_denied(error: &FenceError) -> bool {
        of_database(error).is_some_and(error::is_denied)
    }

    fn migration_script() -> String {
        migrate::script()
    }

    async fn claim(
        pool: &MySqlPool,
        options: &MySqlTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        claim::claim(pool, options, sequencer).await
    }

    async fn settle(
        pool: &MySqlPool,
        options: &MySqlTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        claim::settle(pool, options, sequencer).await
    }

    async fn begin(
        pool: MySqlPool,
        options: MySqlTxOptions,
        entering: Entering,
    ) -> Result<(MySqlTx, Entry), FenceError> {
        uninterrupted(async move { enter::begin(&pool, &options, &entering).await }).await
    }

    /// After a deadlock MySQL is outside the transaction, and a `COMMIT` there succeeds and commits
    /// nothing. In that case releasing the savepoint fails, and the `COMMIT` after it is not
    /// reached.
    async fn commit(mut tx: MySqlTx, entry: Entry) -> Result<(), FenceError> {
        tx.catch_up().await?;
        let commit = format!("{LEAVE}; RELEASE SAVEPOINT {entry}; {FORGET}; COMMIT");
        let Err(error) = tx.run(commit, 4).await else {
            tx.end();
            return Ok(());
        };
        if is_entry_missing(&error) {
            // A statement that ended the transaction may have committed its note.
            let leave = format!("ROLLBACK; {LEAVE}; {FORGET}; COMMIT");
            match tx.run_in_time(leave, 4).await {
                Ok(()) => tx.end(),
                Err(error) => debug!(%error, "a note of a transaction that is over stays behind"),
            }
        }
        Err(of_commit(error))
    }

    async fn rollback(tx: MySqlTx) -> Result<(), sqlx::Error> {
        tx.rollback().await
    }

    async fn run(
        connection: &mut MySqlConnection,
        statement: Statement<Self>,
    ) -> Result<u64, sqlx::Error> {
        let executed = statement.into_query().execute(connection).await?;
        Ok(executed.rows_affected())
    }

    async fn protect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
        protect::protect(pool, protection).await
    }

    async fn unprotect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
        protect::unprotect(pool, protection).await
    }

    async fn execute(
        connection: &mut MySqlConnection,
        statements: SqlStr,
    ) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(statements)
            .execute(connection)
            .await
            .map(drop)
    }

    /// Does nothing: the driver waits before it sends a statement.
    fn seal_if_over(_: &mut MySqlConnection) {}

    fn is_stray(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::InvalidSavePointStatement)
    }

    /// sqlx counts the transactions that it knows to be open. The server ends any other one when
    /// the next one begins, and here: without autocommit a mere look has begun one.
    async fn refuse_stray(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        if connection.is_in_transaction() {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        connection.execute("COMMIT").await.map(drop)
    }

    async fn high_water(
        pool: &MySqlPool,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
        let mark = marks::mark::<Self>(&mut connection, MARK, resource, of_our_call).await?;
        Ok(mark.map(Mark::high_water))
    }
}
