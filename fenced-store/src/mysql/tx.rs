use std::{
    fmt,
    future::poll_fn,
    ops::{Deref, DerefMut},
    panic::AssertUnwindSafe,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{FutureExt, TryStreamExt};
use sqlx::{
    AssertSqlSafe, Connection, Executor, MySql, MySqlConnection, MySqlPool, SqlStr,
    mysql::MySqlTransactionManager, pool::PoolConnection,
};
use sqlx_core::transaction::TransactionManager;
use tokio::{runtime::Handle, time::timeout};
use tracing::{Instrument, warn};

use super::FORGET;

/// How long answers are waited for that nobody else waits for any more.
const PATIENCE: Duration = Duration::from_secs(5);

/// A transaction that sqlx counts, on a connection that is closed unless its answers are known to
/// be in step with its questions.
///
/// A connection of sqlx 0.9.0 counts the answers that it has still to read, but not those to the
/// preparation of a statement. If the future of a statement is dropped meanwhile, the next question
/// gets those answers for its own, and waits for ever, fails, or panics. The pool asks one when it
/// gets a connection back, without a limit of time.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct MySqlTx {
    /// `None` once the transaction is over.
    connection: Option<PoolConnection<MySql>>,
}

impl MySqlTx {
    /// Begins by a statement. Fails on a connection that is inside a transaction of sqlx.
    pub(super) async fn begin(pool: &MySqlPool, statement: SqlStr) -> Result<Self, sqlx::Error> {
        let mut connection = pool.acquire().await?;
        MySqlTransactionManager::begin(&mut connection, Some(statement)).await?;
        Ok(Self {
            connection: Some(connection),
        })
    }

    /// Reads what is left of the answers to statements that were dropped. Fails if they are not
    /// there in time, or if it had to wait for them and the connection is out of step: then nothing
    /// was sent, and the transaction is over. What had arrived before shows only in the answers to
    /// what is sent next.
    pub(super) async fn catch_up(&mut self) -> Result<(), sqlx::Error> {
        let caught_up = in_time(catch_up(self)).await;
        self.unless_lost(caught_up)
    }

    /// Executes a text of so many statements that return no rows. An error that is not the
    /// database's own leaves open what was executed, and then the transaction is over.
    pub(super) async fn run(&mut self, text: String, statements: usize) -> Result<(), sqlx::Error> {
        let answered = answered(self, text, statements).await;
        self.unless_lost(answered)
    }

    /// The same, for a text that nobody waits for any longer than for other answers.
    pub(super) async fn run_in_time(
        &mut self,
        text: String,
        statements: usize,
    ) -> Result<(), sqlx::Error> {
        let answered = in_time(answered(self, text, statements)).await;
        self.unless_lost(answered)
    }

    /// Gives the connection back after a statement that has ended the transaction.
    pub(super) fn end(mut self) {
        if let Some(connection) = self.connection.take() {
            give_back(connection);
        }
    }

    pub(super) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        let undone = undo(&mut self).await;
        if let Some(connection) = self.connection.take() {
            give_back_unless_lost(connection, &undone);
        }
        undone
    }

    /// Closes the connection after an error that is not the database's own.
    fn unless_lost(&mut self, result: Result<(), sqlx::Error>) -> Result<(), sqlx::Error> {
        if let Err(error) = &result
            && error.as_database_error().is_none()
            && let Some(connection) = self.connection.take()
        {
            close(connection, error);
        }
        result
    }
}

/// Why there is always a connection.
const UNTIL_DROPPED: &str = "a transaction has its connection until it is over";

impl Deref for MySqlTx {
    type Target = MySqlConnection;

    fn deref(&self) -> &MySqlConnection {
        self.connection.as_ref().expect(UNTIL_DROPPED)
    }
}

impl DerefMut for MySqlTx {
    fn deref_mut(&mut self) -> &mut MySqlConnection {
        self.connection.as_mut().expect(UNTIL_DROPPED)
    }
}

/// Rolls back. One poll sends the statement, unless there are answers to be read before it; a task
/// waits for the rest.
impl Drop for MySqlTx {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            // The server rolls back when the connection is closed.
            drop(connection.detach());
            return;
        };
        let rollback = async move {
            let undone = undo(&mut connection).await;
            give_back_unless_lost(connection, &undone);
        };
        let mut rollback = Box::pin(rollback.in_current_span());
        let polled = rollback
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_pending() {
            drop(runtime.spawn(rollback));
        }
    }
}

impl fmt::Debug for MySqlTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlTx").finish_non_exhaustive()
    }
}

/// Rolls back, and clears what the triggers look at.
async fn undo(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    in_time(async {
        while let Err(error) = catch_up(connection).await {
            // If a statement that was dropped has failed, there may be more to read.
            if error.as_database_error().is_none() {
                return Err(error);
            }
        }
        answered(connection, format!("ROLLBACK; {FORGET}"), 2).await
    })
    .await
}

/// Reads the answers that the connection knows to be missing. If it had to wait for them, then a
/// statement was dropped a moment ago, perhaps while it was prepared: a question of its own shows
/// whether there is more. Otherwise it would cost a round trip for nothing.
async fn catch_up(connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
    {
        let mut missing = pin!(connection.flush());
        match poll_fn(|context| Poll::Ready(missing.as_mut().poll(context))).await {
            Poll::Ready(read) => return read,
            Poll::Pending => missing.await?,
        }
    }
    connection.ping().await
}

/// Executes statements that return no rows, and makes sure that the answers are theirs. What is
/// left of a preparation begins as rows do; the driver may panic when it goes on to read it.
async fn answered(
    connection: &mut MySqlConnection,
    text: String,
    statements: usize,
) -> Result<(), sqlx::Error> {
    let reading = async {
        let mut answers = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(text)));
        let mut missing = statements;
        while let Some(answer) = answers.try_next().await? {
            if answer.is_right() || missing == 0 {
                return Err(of_another());
            }
            missing -= 1;
        }
        if missing == 0 {
            Ok(())
        } else {
            Err(of_another())
        }
    };
    let read = AssertUnwindSafe(reading).catch_unwind().await;
    read.unwrap_or_else(|_| Err(of_another()))
}

fn of_another() -> sqlx::Error {
    let reason = "the answers were those to a statement that was dropped while it was prepared";
    sqlx::Error::Protocol(reason.to_owned())
}

async fn in_time(work: impl Future<Output = Result<(), sqlx::Error>>) -> Result<(), sqlx::Error> {
    timeout(PATIENCE, work).await.unwrap_or_else(|_| {
        Err(sqlx::Error::Protocol(format!(
            "a statement that was dropped has no answer for {PATIENCE:?}"
        )))
    })
}

fn give_back_unless_lost(connection: PoolConnection<MySql>, result: &Result<(), sqlx::Error>) {
    match result {
        Ok(()) => give_back(connection),
        Err(error) => close(connection, error),
    }
}

/// For sqlx the transaction is still open; so the pool rolls back, too.
fn give_back(mut connection: PoolConnection<MySql>) {
    MySqlTransactionManager::start_rollback(&mut connection);
}

/// The pool would wait for an answer.
fn close(connection: PoolConnection<MySql>, error: &sqlx::Error) {
    warn!(
        error = error as &dyn std::error::Error,
        "closing the connection of a transaction, of which it is not known what the server has \
         still to say there, perhaps because the future of a statement was dropped"
    );
    drop(connection.detach());
}
