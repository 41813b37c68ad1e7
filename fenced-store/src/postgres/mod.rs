//! PostgreSQL 12 or newer. The rule itself is in SQL: `migrations/postgres`.

mod administer;
mod calls;
mod claim;
mod error;
mod migrate;
mod options;
mod protect;
mod rights;
mod single;

use std::{
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use lock_core::{ResourceName, Sequencer};
use sqlx::{Connection, Executor, FromRow, PgConnection, PgPool, Postgres, SqlStr, Transaction};
use tracing::debug;

pub(crate) use self::error::classify;
pub use self::options::{PgIsolation, PgTxOptions};
use crate::{
    FenceError, FencedStore, HighWater, Protected, Protection, Rights,
    dialect::sealed::Operations,
    entering::Entering,
    entry::Entry,
    postgres::error::{of_commit, of_our_call},
    readiness::of_database,
    statement::Statement,
    strays::{not_a_stray, past_strays},
    uninterrupted::uninterrupted,
};

/// A fenced store in PostgreSQL.
pub type PgFencedStore = FencedStore<Postgres>;

/// A lock service combined with a fenced store in PostgreSQL.
pub type PgProtected = Protected<Postgres>;

impl FencedStore<Postgres> {
    /// The same store, with these settings for claims and transactions.
    #[must_use]
    pub fn with_options(self, options: PgTxOptions) -> Self {
        self.with_tx_options(options)
    }
}

impl Operations for Postgres {
    type Admin = administer::ByFunctions;

    type Tx = Transaction<'static, Self>;

    type TxOptions = PgTxOptions;

    fn lock_timeout(options: &PgTxOptions) -> Option<Duration> {
        options.lock_timeout
    }

    async fn apply_migrations(pool: &PgPool) -> Result<(), FenceError> {
        migrate::apply(pool).await
    }

    async fn check_migrations(pool: &PgPool) -> Result<(), FenceError> {
        migrate::check(pool).await
    }

    async fn check_rights(pool: &PgPool, rights: Rights) -> Result<(), FenceError> {
        rights::check(pool, rights).await
    }

    fn is_denied(error: &FenceError) -> bool {
        of_database(error).is_some_and(error::is_denied)
    }

    fn migration_script() -> String {
        migrate::script()
    }

    async fn claim(
        pool: &PgPool,
        options: &PgTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        claim::claim(pool, options, sequencer).await
    }

    async fn settle(
        pool: &PgPool,
        options: &PgTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        claim::settle(pool, options, sequencer).await
    }

    async fn begin(
        pool: PgPool,
        options: PgTxOptions,
        entering: Entering,
    ) -> Result<(Transaction<'static, Self>, Entry), FenceError> {
        let begin = calls::begin(&entering, &options);
        let begin = async move { past_strays(&pool, || pool.begin_with(begin.clone())).await };
        let tx = uninterrupted(async move { begin.await.map_err(of_our_call) }).await?;
        Ok((tx, entering.entry()))
    }

    /// `AND CHAIN` begins an empty transaction, which the drop of `tx` rolls back: sqlx counts one
    /// as open, and the rollback happens off the caller's path.
    async fn commit(mut tx: Transaction<'static, Self>, entry: Entry) -> Result<(), FenceError> {
        let commit = sqlx::raw_sql(calls::commit(entry));
        tx.execute(commit).await.map_err(of_commit)?;
        Ok(())
    }

    async fn rollback(tx: Transaction<'static, Self>) -> Result<(), sqlx::Error> {
        tx.rollback().await
    }

    async fn run(
        connection: &mut PgConnection,
        statement: Statement<Self>,
    ) -> Result<u64, sqlx::Error> {
        let executed = statement.into_query().execute(connection).await?;
        Ok(executed.rows_affected())
    }

    /// In one message, unless the options have an isolation level, which cannot be set in it.
    async fn at_once(
        pool: &PgPool,
        options: &PgTxOptions,
        entering: &Entering,
        statement: &Statement<Self>,
    ) -> Option<Result<u64, FenceError>> {
        if options.isolation.is_some() {
            return None;
        }
        Some(single::execute(pool, options.lock_timeout, entering, statement).await)
    }

    async fn protect(pool: &PgPool, protection: &Protection) -> Result<(), FenceError> {
        protect::protect(pool, protection).await
    }

    async fn unprotect(pool: &PgPool, protection: &Protection) -> Result<(), FenceError> {
        protect::unprotect(pool, protection).await
    }

    async fn execute(connection: &mut PgConnection, statements: SqlStr) -> Result<(), sqlx::Error> {
        sqlx::raw_sql(statements)
            .execute(connection)
            .await
            .map(drop)
    }

    /// Ends the session, or, if the role may not do that, blocks it with a transaction.
    ///
    /// In sqlx 0.9.0 `begin_with` queues its message before it waits for anything, so one poll is
    /// enough; nobody needs to see the answer.
    fn seal_if_over(connection: &mut PgConnection) {
        const END: &str =
            "BEGIN; SELECT pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())";
        if !connection.is_in_transaction() {
            let mut end = pin!(connection.begin_with(END));
            let sent = end.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            debug!(
                answered = sent.is_ready(),
                "ending the session of a transaction that is over"
            );
        }
    }

    fn is_stray(error: &sqlx::Error) -> bool {
        error::is_stray(error)
    }

    async fn refuse_stray(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        connection
            .execute(sqlx::raw_sql(calls::REFUSE_STRAY))
            .await?;
        Ok(())
    }

    async fn high_water(
        pool: &PgPool,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        let mark = sqlx::raw_sql(calls::high_water(resource));
        let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
        let mark = mark.fetch_optional(&mut *connection).await;
        let Some(row) = mark.map_err(of_our_call)? else {
            return Ok(None);
        };
        HighWater::from_columns(FromRow::from_row(&row)?).map(Some)
    }
}
