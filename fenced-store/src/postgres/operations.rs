use std::{
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use lock_core::{ResourceName, Sequencer, backend::support::unlogged};
use sqlx::{
    Connection, Database, Executor, PgConnection, PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgQueryResult, PgTransactionManager},
};
use sqlx_core::transaction::TransactionManager;
use tracing::debug;

use super::{PgTxOptions, administer::ByFunctions, at_once, calls, claim, errors, forget};
use crate::{
    FenceError, HighWater, Storage,
    admin::AdminError,
    dialect::{Errors, Operations, Statement, literal::literal},
    forget::{Batch, Forget, Rows},
    rule::marks,
    transaction::{
        begin_request::BeginRequest,
        leaked::{begin_counted, to_read},
        open_tx::{OpenTx, PATIENCE, RollBack},
    },
};

impl Storage for Postgres {
    const KIND: &'static str = <Self as Database>::NAME;

    type Access = PgPool;
    type Session = PgConnection;
    type Reading = PoolConnection<Self>;
    type Tx = OpenTx<Self>;
    type TxOptions = PgTxOptions;
    type Jobs = ByFunctions;

    fn lock_timeout(options: &PgTxOptions) -> Option<Duration> {
        options.lock_timeout
    }

    /// A claim that older holders have blocked for a whole lock timeout ends their sessions. A
    /// claim that was blocked by anything else ends no session.
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
                        && errors::has_waited_for_open_transactions(
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

    /// Queues behind the transactions of this grant.
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
        let begin = calls::begin(request, options);
        // A server that can be reached has answered by then.
        let patience = options.statement_timeout.map(|longest| longest + PATIENCE);
        let begun = begin_counted(pool, begin, request, patience).await;
        begun.map_err(Self::of_our_call)
    }

    /// `AND CHAIN` begins an empty transaction, because sqlx still counts one as open. The empty
    /// transaction is rolled back when the connection goes back to the pool, and the caller does
    /// not wait for that.
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
            // The transaction is dropped here, and the task of that drop clears whatever the
            // release has left on the connection.
            Err(error) if completed >= calls::COMMITTED => {
                debug!(%error, "the lease was not released in the message of the commit");
                Ok(false)
            }
            Err(error) => Err(Self::of_commit(error)),
        }
    }

    /// Ends the session. If the role may not end sessions, the transaction that this call begins
    /// blocks the session.
    ///
    /// In sqlx 0.9.0 `begin_with` queues its message before it waits for anything, so one poll is
    /// enough. The answer does not matter.
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

    async fn read(pool: &PgPool) -> Result<PoolConnection<Self>, FenceError> {
        to_read(pool).await
    }

    async fn high_water(
        session: &mut PgConnection,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        marks::high_water::<Self>(session, resource).await
    }

    async fn refresh(pool: &PgPool, grant: &Sequencer) -> Result<bool, FenceError> {
        forget::refresh(pool, grant).await
    }

    async fn forget(
        pool: &PgPool,
        _: &PgTxOptions,
        order: &Forget,
        rows: Rows,
        after: &str,
    ) -> Result<Batch, AdminError> {
        forget::forget(pool, order, rows, after).await
    }

    async fn state_longest_hold(pool: &PgPool, hold: Duration) -> Result<(), FenceError> {
        forget::state_longest_hold(pool, hold).await
    }
}

impl Operations for Postgres {
    const ISSUER: &'static str =
        "SELECT name FROM fenced.current_issuer() AS name WHERE name IS NOT NULL";

    const FLOOR: &'static str = "SELECT fenced.mark_floor()";

    fn rows_affected(result: &PgQueryResult) -> u64 {
        result.rows_affected()
    }

    fn mark(resource: &ResourceName) -> String {
        let resource = literal(resource.as_str());
        format!("SELECT token, issuer FROM fenced.high_water({resource})")
    }

    /// Sends one message, unless the options have an isolation level, because such a message cannot
    /// set one. Only statements that write are sent in one message.
    async fn at_once(
        pool: &PgPool,
        options: &PgTxOptions,
        request: &BeginRequest,
        statement: &Statement<Self>,
    ) -> Option<Result<u64, FenceError>> {
        if options.isolation.is_some() || !at_once::fits(statement.sql.as_str()) {
            return None;
        }
        Some(at_once::execute(pool, options.lock_timeout, request, statement).await)
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
