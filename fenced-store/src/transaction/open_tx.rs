//! An open transaction that is rolled back when it is dropped. sqlx 0.9.0 leaves a transaction
//! behind if the future that uses it is dropped.

use std::{
    io,
    ops::{Deref, DerefMut},
    time::Duration,
};

use lock_core::backend::{Runtime, support::Tasks};
use scopeguard::{ScopeGuard, guard};
use sqlx::{Connection, Database, Pool, pool::PoolConnection};
use sqlx_core::transaction::TransactionManager;
use tracing::{Instrument, warn};

use crate::{
    FenceError,
    storage::OpenTransaction,
    transaction::{tx_name::TxName, uninterrupted::uninterrupted},
};

/// The end of a transaction that its caller has dropped.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub trait RollBack: Database {
    /// Rolls back, after the statements whose futures were dropped.
    fn undo(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Ends the session of a transaction whose rollback was not answered, and waits for its end.
    /// Does nothing in a database that has no sessions, or that ends such a session by itself.
    fn end_session(
        _: &Pool<Self>,
        _: TxName,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send {
        std::future::ready(Ok(()))
    }
}

/// The time that a server has for an answer that needs no work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A pooled connection inside a transaction. If this value is dropped, a task rolls the transaction
/// back.
///
/// The task waits for the answer up to a limit of the dialect. Then it ends the session and closes
/// the connection. Until then the connection keeps its place in the pool, so that an application
/// that drops many slow transactions does not open more and more sessions.
#[derive(Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct OpenTx<DB: RollBack> {
    held: ScopeGuard<Held<DB>, fn(Held<DB>)>,
}

/// The things that a task needs to end a transaction.
#[derive(Debug)]
struct Held<DB: RollBack> {
    connection: PoolConnection<DB>,
    pool: Pool<DB>,
    tx_name: TxName,
    patience: Option<Duration>,
    is_lost: bool,
    tasks: Tasks,
}

impl<DB: RollBack> OpenTx<DB> {
    /// A transaction that has begun, or is about to begin. A rollback waits up to `patience` for
    /// its answer. If `patience` is `None`, it waits without bound.
    pub(crate) fn new(
        pool: &Pool<DB>,
        connection: PoolConnection<DB>,
        tx_name: TxName,
        patience: Option<Duration>,
        tasks: Tasks,
    ) -> Self {
        let held = Held {
            connection,
            pool: pool.clone(),
            tx_name,
            patience,
            is_lost: false,
            tasks,
        };
        let held = guard(held, Held::abandon as fn(_));
        Self { held }
    }

    /// The name of the transaction.
    pub(crate) fn tx_name(&self) -> TxName {
        self.held.tx_name
    }

    /// Remembers that the commit has to remove a note of the transaction.
    #[cfg(feature = "sqlite")]
    pub(crate) fn noted(&mut self) {
        self.held.tx_name = self.held.tx_name.noted();
    }

    /// After an error that does not come from the database itself, the server may still be at work,
    /// or may still send answers. The session then has to be ended.
    #[cfg(feature = "mysql")]
    pub(crate) fn unless_lost(
        &mut self,
        result: Result<(), sqlx::Error>,
    ) -> Result<(), sqlx::Error> {
        if let Err(error) = &result {
            self.held.is_lost |= error.as_database_error().is_none();
        }
        result
    }

    /// Gives the connection back after a statement that has ended the transaction.
    pub(crate) fn end(self) {
        give_back(ScopeGuard::into_inner(self.held).connection);
    }

    /// Closes the session when the transaction ends, so that it is not used again.
    #[cfg(feature = "mysql")]
    pub(crate) fn close_session_at_its_end(&mut self) {
        self.held.connection.close_on_drop();
    }
}

impl<DB: RollBack> OpenTransaction for OpenTx<DB> {
    fn tasks(&self) -> &Tasks {
        &self.held.tasks
    }

    async fn roll_back(self) -> Result<(), FenceError> {
        let held = ScopeGuard::into_inner(self.held);
        Ok(uninterrupted(held.tasks.clone(), held.roll_back()).await?)
    }
}

impl<DB: RollBack> Held<DB> {
    /// Runs when a transaction is dropped. It spawns a task, although a drop should not do that:
    /// see decision 23.
    fn abandon(self) {
        let tasks = self.tasks.clone();
        let rolled_back = async { drop(self.roll_back().await) };
        tasks.spawn(rolled_back.in_current_span());
    }

    /// Gives the connection back once the database has answered, with any answer.
    async fn roll_back(mut self) -> Result<(), sqlx::Error> {
        let undone = match self.patience {
            _ if self.is_lost => {
                let reason = "the answers of this connection are out of step";
                Err(sqlx::Error::Protocol(reason.to_owned()))
            }
            Some(patience) => {
                let runtime = &**self.tasks.runtime();
                in_time(runtime, patience, DB::undo(&mut self.connection)).await
            }
            None => DB::undo(&mut self.connection).await,
        };
        match &undone {
            Err(error) if error.as_database_error().is_none() => self.close(error).await,
            _ => give_back(self.connection),
        }
        undone
    }

    /// Ends the session before it closes the connection, because a server goes on with a statement
    /// although its client is gone. The connection does not go back to the pool, which would wait
    /// for an answer.
    async fn close(self, error: &sqlx::Error) {
        let ended = DB::end_session(&self.pool, self.tx_name);
        let runtime = &**self.tasks.runtime();
        let ended = in_time(runtime, PATIENCE, ended).await;
        let closed = in_time(runtime, PATIENCE, self.connection.close()).await;
        warn!(
            error = error as &dyn std::error::Error,
            ?ended,
            ?closed,
            "closed the connection of a transaction that was not rolled back, perhaps because the \
             future of a statement was dropped"
        );
    }
}

/// Fails if there is no answer in time. The work may then have been executed, or not.
pub(crate) async fn in_time(
    runtime: &dyn Runtime,
    patience: Duration,
    work: impl Future<Output = Result<(), sqlx::Error>>,
) -> Result<(), sqlx::Error> {
    let answer = runtime.timeout(patience, work).await;
    answer.unwrap_or_else(|| {
        let reason = format!("no answer for {patience:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, reason).into())
    })
}

/// If the transaction is still open for sqlx, the pool rolls back, too.
fn give_back<DB: RollBack>(mut connection: PoolConnection<DB>) {
    if connection.is_in_transaction() {
        DB::TransactionManager::start_rollback(&mut connection);
    }
}

impl<DB: RollBack> Deref for OpenTx<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        &self.held.connection
    }
}

impl<DB: RollBack> DerefMut for OpenTx<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        &mut self.held.connection
    }
}
