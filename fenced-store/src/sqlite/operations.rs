use std::time::Duration;

use lock_core::{ResourceName, Sequencer};
use sqlx::{
    Connection, Database, Executor, Sqlite, SqliteConnection, SqlitePool,
    pool::PoolConnection,
    sqlite::{SqliteQueryResult, SqliteTransactionManager},
};
use sqlx_core::transaction::TransactionManager;
use tracing::{debug, warn};

use super::{
    claim,
    errors::{self, no_transaction},
    forget,
    uncounted::{self, LEAVE},
};
use crate::{
    FenceError, HighWater, Storage,
    admin::AdminError,
    dialect::{Errors, Operations, by_statements::ByStatements, literal::literal},
    forget::{Batch, Forget, Rows, by_statements},
    rule::{self, Claim, marks},
    transaction::{
        begin_request::{BeginRequest, Fence},
        leaked::{begin_unfenced, past_leaked, to_read},
        open_tx::{OpenTx, RollBack},
    },
};

impl Storage for Sqlite {
    const KIND: &'static str = <Self as Database>::NAME;

    type Access = SqlitePool;
    type Session = SqliteConnection;
    type Reading = PoolConnection<Self>;
    type Tx = OpenTx<Self>;
    type TxOptions = ();
    type Jobs = ByStatements;

    async fn claim(pool: &SqlitePool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        // A claim that cannot succeed is refused before it queues for the file.
        let mark = Self::mark(sequencer.resource());
        let seen = marks::standing::<Self>(&mut *to_read(pool).await?, &mark).await?;
        rule::claim(&seen, sequencer)?;

        let mut tx = begin_unfenced(pool).await?;
        claim::check_issuer(&mut tx, sequencer).await?;
        let standing = marks::standing::<Self>(&mut tx, &mark).await?;
        match rule::claim(&standing, sequencer)? {
            Claim::Replay => {}
            Claim::Raise => claim::raise(&mut tx, sequencer).await?,
        }
        Ok(tx.commit().await?)
    }

    /// A transaction is the only writer of the file. Once the transaction of this call has begun,
    /// all others are over.
    async fn settle(pool: &SqlitePool, (): &(), sequencer: &Sequencer) -> Result<(), FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        let mark = Self::mark(sequencer.resource());
        let standing = marks::standing::<Self>(&mut tx, &mark).await?;
        rule::check(&standing, sequencer)?;
        Ok(tx.rollback().await?)
    }

    /// Begins as the only writer of the file. If a table is protected, it also notes the grants for
    /// the triggers, and the commit has to delete that note.
    async fn begin(
        pool: &SqlitePool,
        (): &(),
        request: &BeginRequest,
    ) -> Result<OpenTx<Self>, FenceError> {
        let begun = past_leaked(pool, || uncounted::only_writer(pool, request)).await;
        let (mut tx, first_mark) = begun.map_err(Self::of_our_call)?;
        let first = request.first().sequencer();
        let mut is_noted = uncounted::check(&mut tx, first_mark, first).await?;
        for sequencer in request.others().iter().map(Fence::sequencer) {
            let mark =
                uncounted::row(&mut tx, include_str!("sql/mark.sql"), sequencer.resource()).await;
            let mark = mark.map_err(Self::of_our_call)?;
            is_noted |= uncounted::check(&mut tx, mark, sequencer).await?;
        }
        if is_noted {
            uncounted::note(&mut tx, request).await?;
            tx.noted();
        }
        Ok(tx)
    }

    async fn commit(mut tx: OpenTx<Self>) -> Result<(), FenceError> {
        let is_noted = tx.tx_name().is_noted();
        let Err(source) = uncounted::commit(&mut tx, is_noted).await else {
            tx.end();
            return Ok(());
        };
        if errors::no_savepoint(&source) {
            leave(&mut tx, is_noted).await;
            return Err(FenceError::Aborted);
        }
        Err(Self::of_commit(source))
    }

    async fn read(pool: &SqlitePool) -> Result<PoolConnection<Self>, FenceError> {
        to_read(pool).await
    }

    async fn high_water(
        session: &mut SqliteConnection,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        marks::high_water::<Self>(session, resource).await
    }

    async fn refresh(pool: &SqlitePool, grant: &Sequencer) -> Result<bool, FenceError> {
        forget::refresh(pool, grant).await
    }

    async fn forget(
        pool: &SqlitePool,
        _: &(),
        order: &Forget,
        rows: Rows,
        after: &str,
    ) -> Result<Batch, AdminError> {
        match rows {
            Rows::Marks => forget::forget(pool, order, after).await,
            Rows::Leases => forget::forget_leases(pool, order, after).await,
        }
    }

    async fn state_longest_hold(pool: &SqlitePool, hold: Duration) -> Result<(), FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        by_statements::state_longest_hold::<Self>(&mut tx, hold).await?;
        tx.commit().await.map_err(Self::of_commit)
    }
}

/// All our tables are named with `main`, their file. A name without it would never find a table of
/// an attached file first, but it would find a TEMP table of the same name first.
impl Operations for Sqlite {
    const ISSUER: &'static str = "SELECT name FROM main.fenced_lock_service";

    const FLOOR: &'static str = "SELECT marks FROM main.fenced_forgotten";

    fn rows_affected(result: &SqliteQueryResult) -> u64 {
        result.rows_affected()
    }

    fn mark(resource: &ResourceName) -> String {
        let resource = literal(resource.as_str());
        format!(
            "SELECT token, issuer, holder FROM main.fenced_high_water_mark \
             WHERE resource = {resource}"
        )
    }

    /// Rolls back a leaked transaction. The connection is not closed, because a database in memory
    /// would lose its data with the connection. A `ROLLBACK` fails if there is no transaction.
    async fn refuse_leaked(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        while connection.is_in_transaction() {
            match SqliteTransactionManager::rollback(connection).await {
                // SQLite has ended the transaction by itself, and sqlx still counts it.
                Err(error) if no_transaction(&error) => {
                    connection.execute("BEGIN").await?;
                }
                result => result?,
            }
        }
        match connection.execute("ROLLBACK").await {
            Err(error) if no_transaction(&error) => Ok(()),
            result => result.map(drop),
        }
    }
}

impl RollBack for Sqlite {
    /// The thread of the connection executes the rollback after the statements that were dropped.
    async fn undo(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        connection.execute("ROLLBACK").await.map(drop)
    }
}

/// Cleans up after a statement that has ended the transaction, and that may have committed its note
/// of the grants.
async fn leave(connection: &mut SqliteConnection, is_noted: bool) {
    if let Err(error) = connection.execute("ROLLBACK").await {
        debug!(%error, "a statement had ended the transaction, and no other one was open");
    }
    if is_noted && let Err(error) = connection.execute(LEAVE).await {
        warn!(%error, "a statement had ended the transaction, and its note of the grants is left");
    }
}
