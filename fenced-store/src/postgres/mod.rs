//! PostgreSQL 12 or newer. The rule itself is in SQL: `migrations/postgres`.

mod administer;
mod calls;
mod claim;
mod error;
mod installation;
mod jobs;
mod options;
mod rights;
mod single;

use std::{
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use lock_core::{LockManager, ResourceName, Sequencer, backend::support::unlogged};
use sqlx::{
    Connection, Executor, PgConnection, PgPool, Postgres,
    postgres::{PgQueryResult, PgTransactionManager},
};
use sqlx_core::transaction::TransactionManager;
use tracing::debug;

pub(crate) use self::error::classify;
pub use self::options::{PgIsolation, PgTxOptions};
use crate::{
    FenceError, FencedLocks, FencedStore,
    begin_request::BeginRequest,
    dialect::sealed::{Errors, Operations},
    leaked::begin_counted,
    literal::literal,
    open_tx::{OpenTx, PATIENCE, RollBack},
    statement::Statement,
};

/// A fenced store in PostgreSQL.
pub type PgFencedStore = FencedStore<Postgres>;

/// A lock service combined with a fenced store in PostgreSQL.
pub type PgFencedLocks = FencedLocks<Postgres>;

impl FencedStore<Postgres> {
    /// The same store, with these settings for claims and transactions.
    #[must_use]
    pub fn with_options(self, options: PgTxOptions) -> Self {
        self.with_tx_options(options)
    }
}

impl FencedLocks<Postgres> {
    /// Combines a store with the lock service in the same database, and saves round trips: a lease
    /// is granted and claimed in one, and so are
    /// [commit and release](crate::FencedTx::commit_and_release).
    ///
    /// `palisade::open` makes the lock service over the pool of the store.
    ///
    /// If the lock service is *not* in the database of the store, every transaction is refused:
    /// [`MarkLost`](FenceError::MarkLost). The tokens are those of the database, so the store's
    /// [`plausibility`](FencedStore::plausibility) is not asked.
    #[must_use]
    pub fn in_one_database(locks: LockManager, store: PgFencedStore) -> Self {
        Self::new(locks, store).with_one_database()
    }
}

impl Operations for Postgres {
    type TxOptions = PgTxOptions;

    fn lock_timeout(options: &PgTxOptions) -> Option<Duration> {
        options.lock_timeout
    }

    const ISSUER: &'static str =
        "SELECT name FROM fenced.current_issuer() AS name WHERE name IS NOT NULL";

    fn rows_affected(result: &PgQueryResult) -> u64 {
        result.rows_affected()
    }

    fn mark(resource: &ResourceName) -> String {
        let resource = literal(resource.as_str());
        format!("SELECT token, issuer FROM fenced.high_water({resource})")
    }

    /// Ends the sessions of older holders that block it for a whole lock timeout; a claim that was
    /// blocked by anything else ends nobody.
    async fn claim(
        pool: &PgPool,
        options: &PgTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        let request = calls::claim(sequencer, options);
        for _ in 1..claim::ATTEMPTS {
            match claim::execute(pool, &request).await {
                Err(error)
                    if options.terminate_older
                        && error::has_waited_for_open_transactions(
                            &error,
                            sequencer.resource(),
                        ) =>
                {
                    claim::terminate_older(pool, sequencer).await?;
                }
                result => return result.map_err(Self::of_our_call),
            }
        }
        claim::execute(pool, &request)
            .await
            .map_err(Self::of_our_call)
    }

    /// Gets in line behind the transactions of this grant.
    async fn settle(
        pool: &PgPool,
        options: &PgTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        let settle = calls::settle(sequencer, options);
        claim::execute(pool, &settle)
            .await
            .map_err(Self::of_our_call)
    }

    async fn begin(
        pool: &PgPool,
        options: &PgTxOptions,
        request: &BeginRequest,
    ) -> Result<OpenTx<Self>, FenceError> {
        let (begin, tx_name) = (calls::begin(request, options), request.tx_name());
        // The server answers by then, unless it is gone.
        let patience = options.statement_timeout.map(|longest| longest + PATIENCE);
        let begun = begin_counted(pool, begin, tx_name, patience).await;
        begun.map_err(Self::of_our_call)
    }

    /// `AND CHAIN` begins an empty transaction, which is rolled back when the connection is given
    /// back: sqlx counts one as open, and the rollback happens off the caller's path.
    async fn commit(mut tx: OpenTx<Self>) -> Result<(), FenceError> {
        let commit = sqlx::raw_sql(calls::commit(tx.tx_name()));
        tx.execute(commit).await.map_err(Self::of_commit)?;
        tx.end();
        Ok(())
    }

    async fn commit_and_release(
        mut tx: OpenTx<Self>,
        name: &str,
        lease: &Sequencer,
    ) -> Result<bool, FenceError> {
        let message = sqlx::raw_sql(calls::commit_and_release(tx.tx_name(), name, lease));
        let (completed, end) = unlogged(calls::completed(&mut tx, message)).await;
        match end {
            Ok(()) => {
                tx.end();
                Ok(true)
            }
            // Dropping it cleans the connection up, whatever the release has left there.
            Err(error) if completed >= calls::COMMITTED => {
                debug!(%error, "the lease was not released in the message of the commit");
                Ok(false)
            }
            Err(error) => Err(Self::of_commit(error)),
        }
    }

    /// In one message, unless the options have an isolation level, which cannot be set in it.
    async fn at_once(
        pool: &PgPool,
        options: &PgTxOptions,
        request: &BeginRequest,
        statement: &Statement<Self>,
    ) -> Option<Result<u64, FenceError>> {
        if options.isolation.is_some() {
            return None;
        }
        Some(single::execute(pool, options.lock_timeout, request, statement).await)
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

    async fn refuse_leaked(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        connection
            .execute(sqlx::raw_sql(calls::REFUSE_LEAKED))
            .await?;
        Ok(())
    }
}

impl RollBack for Postgres {
    async fn undo(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        PgTransactionManager::rollback(connection).await
    }
}
