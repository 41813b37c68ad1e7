//! MySQL 8 and MariaDB 10.6 or newer, on one writable server: with several writers (Galera) two
//! transactions can pass the check at once.
//!
//! A locking read sees the latest committed mark at every isolation level and keeps claims out
//! until the transaction ends; InnoDB serves lock requests in their order, so a claim is not
//! overtaken.

mod error;
mod migrate;

use lock_core::{Issuer, ResourceName, Sequencer};
use sqlx::{
    AssertSqlSafe, Connection, Executor, MySql, MySqlConnection, MySqlPool, SqlSafeStr, SqlStr,
    Transaction,
};

pub(crate) use self::error::classify;
use self::error::{of_commit, of_our_call};
use crate::{
    Begin, FenceError, FencedStore, HighWater, Receipt,
    begin::{Entering, Entrant},
    dialect::sealed::Operations,
    entry::Entry,
    high_water::columns::undecodable,
    rule::{self, Claim, Mark},
    single::{Statement, in_three_steps},
    strays::past_strays,
};

/// A fenced store in MySQL or MariaDB.
///
/// How long a claim waits for a transaction of the older holder is up to the server's
/// `innodb_lock_wait_timeout`, 50 s unless it is set otherwise.
pub type MySqlFencedStore = FencedStore<MySql>;

const MARK: &str = "SELECT token, holder, issuer FROM fenced_mark WHERE resource = ?";
const MARK_EXCLUSIVE: &str =
    "SELECT token, holder, issuer FROM fenced_mark WHERE resource = ? FOR UPDATE";
const MARK_SHARED: &str = concat!(
    "SELECT token, holder, issuer FROM fenced_mark WHERE resource = ?",
    " LOCK IN SHARE MODE"
);

impl Operations for MySql {
    type TxOptions = ();

    async fn migrate(pool: &MySqlPool) -> Result<(), FenceError> {
        migrate::migrate(pool).await
    }

    async fn claim(pool: &MySqlPool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        // What cannot win is refused before it queues: in the queue it would hold up others.
        let seen = mark(&mut *pool.acquire().await?, MARK, sequencer.resource()).await?;
        rule::claim(seen.as_ref(), sequencer)?;

        let mut tx = past_strays(pool, || pool.begin_with("START TRANSACTION")).await?;
        check_issuer(&mut tx, sequencer).await?;
        raise(&mut tx, sequencer).await?;
        let mark = mark(&mut tx, MARK_SHARED, sequencer.resource()).await?;
        match rule::claim(mark.as_ref(), sequencer)? {
            Claim::Replay => tx.commit().await.map_err(of_commit),
            // `raise` would have raised it.
            Claim::Raise => Err(FenceError::Aborted),
        }
    }

    /// An exclusive lock is granted when those who share it are over.
    async fn settle(pool: &MySqlPool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        let mut tx = past_strays(pool, || pool.begin_with("START TRANSACTION")).await?;
        let mark = mark(&mut tx, MARK_EXCLUSIVE, sequencer.resource()).await?;
        rule::enter(mark.as_ref(), sequencer)?;
        Ok(tx.rollback().await?)
    }

    /// The savepoint is gone if a deadlock or a statement ends the transaction: see `commit`.
    async fn begin(
        pool: &MySqlPool,
        (): &(),
        entering: &Entering,
    ) -> Result<Transaction<'static, Self>, FenceError> {
        let begin = format!("START TRANSACTION; SAVEPOINT {}", entering.entry());
        let begin = AssertSqlSafe(begin).into_sql_str();
        let mut tx = past_strays(pool, || pool.begin_with(begin.clone())).await?;
        for sequencer in entering.entrants().iter().map(Entrant::sequencer) {
            let mark = mark(&mut tx, MARK_SHARED, sequencer.resource()).await?;
            rule::enter(mark.as_ref(), sequencer)?;
        }
        Ok(tx)
    }

    /// After a deadlock MySQL is outside the transaction, and a `COMMIT` there succeeds and commits
    /// nothing. Releasing the savepoint fails then, and the `COMMIT` behind it is not reached.
    async fn commit(mut tx: Transaction<'static, Self>, entry: Entry) -> Result<(), FenceError> {
        let commit = AssertSqlSafe(format!("RELEASE SAVEPOINT {entry}; COMMIT"));
        tx.execute(sqlx::raw_sql(commit)).await.map_err(of_commit)?;
        Ok(())
    }

    async fn run(
        connection: &mut MySqlConnection,
        statement: Statement<Self>,
    ) -> Result<u64, sqlx::Error> {
        let executed = statement.into_query().execute(connection).await?;
        Ok(executed.rows_affected())
    }

    async fn single(
        begin: Begin<'_, Self>,
        statement: Statement<Self>,
    ) -> Result<(u64, Receipt), FenceError> {
        in_three_steps(begin, statement).await
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

    /// The driver waits before it sends a statement.
    fn seal_if_over(_: &mut MySqlConnection) {}

    fn is_stray(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::InvalidSavePointStatement)
    }

    /// sqlx counts one that it takes for open. One that it does not know of is ended by the server
    /// when another one begins.
    async fn refuse_stray(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        if connection.is_in_transaction() {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        Ok(())
    }

    async fn high_water(
        pool: &MySqlPool,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        let mark = mark(&mut *pool.acquire().await?, MARK, resource).await?;
        Ok(mark.map(Mark::high_water))
    }
}

async fn mark(
    connection: &mut MySqlConnection,
    query: &'static str,
    resource: &ResourceName,
) -> Result<Option<Mark>, FenceError> {
    let mark = sqlx::query_as(query).bind(resource.as_str());
    let row = mark.fetch_optional(connection).await.map_err(of_our_call)?;
    row.map(Mark::from_columns).transpose()
}

/// The first claim sets the issuer; the share lock keeps it while the claim is under way.
///
/// Inserted before it is read: two first claims that both share-locked the gap where it belongs
/// would deadlock.
async fn check_issuer(
    connection: &mut MySqlConnection,
    sequencer: &Sequencer,
) -> Result<(), FenceError> {
    sqlx::query("INSERT IGNORE INTO fenced_issuer (name) VALUES (?)")
        .bind(sequencer.issuer().as_str())
        .execute(&mut *connection)
        .await?;
    let current: String = sqlx::query_scalar("SELECT name FROM fenced_issuer LOCK IN SHARE MODE")
        .fetch_one(connection)
        .await?;
    rule::issuer(&Issuer::new(current).map_err(undecodable)?, sequencer)
}

async fn raise(connection: &mut MySqlConnection, sequencer: &Sequencer) -> Result<(), FenceError> {
    sqlx::query(include_str!("sql/raise.sql"))
        .bind(sequencer.resource().as_str())
        .bind(i64::from(sequencer.token()))
        .bind(sequencer.holder().digest())
        .bind(sequencer.issuer().as_str())
        .execute(connection)
        .await?;
    Ok(())
}
