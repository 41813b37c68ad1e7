use std::{sync::Arc, time::Duration};

use lock_core::{ResourceName, Sequencer, backend::Runtime};
use sqlx::{
    AssertSqlSafe, Connection, Database, Executor, MySql, MySqlConnection, MySqlPool, SqlSafeStr,
    mysql::{MySqlQueryResult, MySqlRow},
    pool::PoolConnection,
};
use tracing::debug;

use super::{
    answers, claim, end_sessions,
    errors::is_name_missing,
    fence, forget,
    options::{MySqlTxOptions, limited},
    rights,
};
use crate::{
    FenceError, HighWater, Storage,
    admin::AdminError,
    dialect::{Errors, Operations, Queries, Value, by_statements::ByStatements, literal::literal},
    forget::{Batch, Forget, Rows, by_statements},
    rule::{self, marks},
    storage::OpenTransaction,
    transaction::{
        begin_request::{BeginRequest, Fence},
        leaked::{before_anything, begin_counted, past_leaked, says_read_only, to_read},
        open_tx::{OpenTx, PATIENCE, RollBack, in_time},
        tx_name::TxName,
    },
};

/// Deletes the note of the resources that fence the transaction.
pub(super) const LEAVE: &str =
    "DELETE FROM fenced_open_transaction WHERE connection_id = CONNECTION_ID()";

/// Clears the variables that the triggers of protected tables look at first.
const FORGET: &str = "SET @fenced_tx_name = NULL, @fenced_resources = NULL";

impl Storage for MySql {
    const KIND: &'static str = <Self as Database>::NAME;

    type Access = MySqlPool;
    type Session = MySqlConnection;
    type Reading = PoolConnection<Self>;
    type Tx = OpenTx<Self>;
    type TxOptions = MySqlTxOptions;
    type Jobs = ByStatements;

    fn lock_timeout(options: &MySqlTxOptions) -> Option<Duration> {
        options.lock_timeout
    }

    async fn claim(
        pool: &MySqlPool,
        options: &MySqlTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        for _ in 1..claim::ATTEMPTS {
            let busy = match claim::attempt(pool, options, sequencer).await {
                Err(claim::Failed::AtTheMark(busy)) if options.terminate_older => busy,
                result => return Ok(result?),
            };
            if end_sessions::terminate_older(&mut *pool.acquire().await?, sequencer).await? == 0 {
                return Err(busy);
            }
        }
        Ok(claim::attempt(pool, options, sequencer).await?)
    }

    /// Waits until no transaction of this grant is in progress. An exclusive lock is granted when
    /// all transactions that share the lock are over.
    async fn settle(
        pool: &MySqlPool,
        options: &MySqlTxOptions,
        sequencer: &Sequencer,
    ) -> Result<(), FenceError> {
        let connection = past_leaked(pool, || pool.acquire()).await;
        let mut connection = connection.map_err(before_anything::<Self>)?;
        let (limit, mark) = (options.limit(), Self::mark(sequencer.resource()));
        let wait = format!("COMMIT; {limit}{mark} FOR UPDATE; COMMIT");
        Self::look(&mut connection, &wait, &[]).await?;
        let standing = marks::standing::<Self>(&mut connection, &mark).await?;
        rule::check(&standing, sequencer)
    }

    /// If a deadlock or a statement ends the transaction, the savepoint is gone, and the commit
    /// notices that. The variables are for the triggers of protected tables.
    async fn begin(
        pool: &MySqlPool,
        options: &MySqlTxOptions,
        request: &BeginRequest,
    ) -> Result<OpenTx<Self>, FenceError> {
        let tx_name = request.tx_name();
        let begin = format!(
            "START TRANSACTION; SAVEPOINT {tx_name}; \
             SET @fenced_tx_name = '{tx_name}', @fenced_resources = {}",
            literal(&fence::resources(request)),
        );
        let begin = AssertSqlSafe(begin).into_sql_str();
        let begun = begin_counted(pool, begin, request, Some(PATIENCE)).await;
        let mut tx = begun.map_err(before_anything::<Self>)?;
        for sequencer in request.fences().map(Fence::sequencer) {
            let fenced = fence::fence(&mut tx, options, sequencer, tx_name).await;
            if fenced.as_ref().is_err_and(says_read_only::<Self>) {
                tx.close_session_at_its_end();
            }
            fenced?;
        }
        Ok(tx)
    }

    /// After a deadlock MySQL is outside the transaction, and a `COMMIT` there succeeds and commits
    /// nothing. In that case the release of the savepoint fails, and the `COMMIT` after it is not
    /// reached.
    async fn commit(mut tx: OpenTx<Self>) -> Result<(), FenceError> {
        let runtime = Arc::clone(tx.tasks().runtime());
        let caught_up = in_time(&*runtime, PATIENCE, answers::catch_up(&mut tx)).await;
        tx.unless_lost(caught_up)?;
        let tx_name = tx.tx_name();
        let commit = format!("{LEAVE}; RELEASE SAVEPOINT {tx_name}; {FORGET}; COMMIT");
        let committed = answers::to(&mut tx, commit, 4).await;
        let Err(error) = tx.unless_lost(committed) else {
            tx.end();
            return Ok(());
        };
        if is_name_missing(&error) {
            // A statement that ended the transaction may have committed its note.
            let leave = format!("ROLLBACK; {LEAVE}; {FORGET}; COMMIT");
            let left = in_time(&*runtime, PATIENCE, answers::to(&mut tx, leave, 4)).await;
            match tx.unless_lost(left) {
                Ok(()) => tx.end(),
                Err(error) => debug!(%error, "a note of a transaction that is over stays behind"),
            }
        }
        Err(Self::of_commit(error))
    }

    /// It costs one round trip.
    async fn catch_up(
        session: &mut MySqlConnection,
        runtime: &dyn Runtime,
    ) -> Result<(), FenceError> {
        Ok(Self::savepoint(session, runtime, "DO 0".to_owned(), 1).await?)
    }

    async fn read(pool: &MySqlPool) -> Result<PoolConnection<Self>, FenceError> {
        to_read(pool).await
    }

    async fn high_water(
        session: &mut MySqlConnection,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        marks::high_water::<Self>(session, resource).await
    }

    async fn refresh(pool: &MySqlPool, grant: &Sequencer) -> Result<bool, FenceError> {
        forget::refresh(pool, grant).await
    }

    async fn forget(
        pool: &MySqlPool,
        options: &MySqlTxOptions,
        order: &Forget,
        rows: Rows,
        after: &str,
    ) -> Result<Batch, AdminError> {
        match rows {
            Rows::Marks => forget::forget(pool, options, order, after).await,
            Rows::Leases => forget::forget_leases(pool, order, after).await,
        }
    }

    async fn state_longest_hold(pool: &MySqlPool, hold: Duration) -> Result<(), FenceError> {
        let mut connection = to_read(pool).await?;
        match by_statements::state_longest_hold::<Self>(&mut connection, hold).await {
            Err(error) => Err(rights::of_refused_hold(&mut connection, error).await),
            stated => stated,
        }
    }
}

impl Operations for MySql {
    async fn look(
        connection: &mut MySqlConnection,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<MySqlRow>, FenceError> {
        let rows = Self::rows(connection, &limited(sql), values).await;
        rows.map_err(Self::of_our_call)
    }

    async fn change(
        connection: &mut MySqlConnection,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, FenceError> {
        let statement = Self::statement(&limited(sql), values)?;
        let result = Self::run(connection, statement).await;
        Ok(result.map_err(Self::of_our_call)?.rows_affected())
    }

    const ISSUER: &'static str = "SELECT name FROM fenced_lock_service";

    const FLOOR: &'static str = "SELECT marks FROM fenced_forgotten";

    fn rows_affected(result: &MySqlQueryResult) -> u64 {
        result.rows_affected()
    }

    fn mark(resource: &ResourceName) -> String {
        let resource = literal(resource.as_str());
        format!(
            "SELECT token, issuer, holder FROM fenced_high_water_mark WHERE resource = {resource}"
        )
    }

    async fn savepoint(
        connection: &mut MySqlConnection,
        runtime: &dyn Runtime,
        sql: String,
        statements: usize,
    ) -> Result<(), sqlx::Error> {
        in_time(runtime, PATIENCE, answers::catch_up(connection)).await?;
        answers::to(connection, sql, statements).await
    }

    /// sqlx counts the transactions that it knows to be open. The `COMMIT` ends any other one:
    /// without autocommit, a session begins a transaction with any query.
    async fn refuse_leaked(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        if connection.is_in_transaction() {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        connection.execute("COMMIT").await.map(drop)
    }
}

impl RollBack for MySql {
    /// Also clears the variables of the triggers.
    async fn undo(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        while let Err(error) = answers::catch_up(connection).await {
            // The error may belong to a statement that was dropped, and more answers may follow.
            if error.as_database_error().is_none() {
                return Err(error);
            }
        }
        answers::to(connection, format!("ROLLBACK; {FORGET}"), 2).await
    }

    async fn end_session(pool: &MySqlPool, tx_name: TxName) -> Result<(), sqlx::Error> {
        end_sessions::end_session(pool, tx_name).await
    }
}
