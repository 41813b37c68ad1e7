use std::{
    fmt,
    ops::{Deref, DerefMut},
    pin::Pin,
    task::{Context, Waker},
};

use lock_core::ResourceName;
use sqlx::{Connection, Executor, Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection};
use tokio::runtime::Handle;
use tracing::{Instrument, debug};

use super::{enter::MarkRow, error::is_stray};

/// A transaction that sqlx does not count.
///
/// sqlx's own takes a step to the thread of the connection for `BEGIN` and one for `COMMIT`, and
/// neither can do anything else. Here each does what a fence needs besides. What sqlx does not
/// count it does not nest another transaction in, either, nor is it wrong about when it is over.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct SqliteTx {
    /// `None` only once it is being dropped.
    connection: Option<PoolConnection<Sqlite>>,
    /// Whether it may still have to be rolled back.
    is_open: bool,
}

/// One text is one step, and is parsed once per connection.
///
/// The savepoint is gone when the transaction is, however it ended: so the commit knows. Until then
/// nobody else begins on this connection, so it needs no name of its own.
const BEGIN: &str = concat!(
    "BEGIN IMMEDIATE; SAVEPOINT fenced_entry; ",
    include_str!("sql/mark.sql")
);

/// The first statement fails if the savepoint is gone; then `COMMIT` is not executed.
const COMMIT: &str = "RELEASE fenced_entry; COMMIT";

/// The savepoint comes first here, too: without it nothing has the file for itself any more, so to
/// delete the note may fail because somebody else has, which is not why this transaction is over.
const LEAVE_AND_COMMIT: &str = concat!(
    "RELEASE fenced_entry; ",
    include_str!("sql/leave.sql"),
    "; COMMIT"
);

impl SqliteTx {
    /// Becomes the one writer of the file, and reads a mark.
    pub(super) async fn begin(
        pool: &SqlitePool,
        resource: &ResourceName,
    ) -> Result<(Self, Option<MarkRow>), sqlx::Error> {
        let connection = pool.acquire().await?;
        if connection.is_in_transaction() {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        let mut tx = Self {
            connection: Some(connection),
            is_open: true,
        };
        let mark = tx.row(BEGIN, resource).await;
        // One that somebody has left open is not ours.
        tx.is_open = !mark.as_ref().is_err_and(is_stray);
        Ok((tx, mark?))
    }

    /// Reads another mark.
    pub(super) async fn mark(
        &mut self,
        resource: &ResourceName,
    ) -> Result<Option<MarkRow>, sqlx::Error> {
        self.row(include_str!("sql/mark.sql"), resource).await
    }

    async fn row(
        &mut self,
        query: &'static str,
        resource: &ResourceName,
    ) -> Result<Option<MarkRow>, sqlx::Error> {
        let query = sqlx::query_as(query).bind(resource.as_str());
        let row = query.fetch_optional(&mut **self).await?;
        if row.is_none() {
            // So says the driver, too, if its thread is gone.
            self.ping().await?;
        }
        Ok(row)
    }

    /// Commits if this is still the transaction that began.
    ///
    /// The statements of a query are answered one by one, and to be woken for the first answer
    /// while the disk works on the second costs more than to parse both. What sqlx takes for the
    /// begin of a transaction is executed as a whole and answered once. See decision 22.
    pub(super) async fn commit(&mut self, is_noted: bool) -> Result<(), sqlx::Error> {
        let commit = if is_noted { LEAVE_AND_COMMIT } else { COMMIT };
        match self.begin_with(commit).await.map(drop) {
            // Everything was executed, and after that there is no transaction: so says this error.
            Err(sqlx::Error::BeginFailed) => {
                self.is_open = false;
                Ok(())
            }
            Err(error) => Err(error),
            Ok(()) => Err(sqlx::Error::Protocol("a commit has begun".to_owned())),
        }
    }

    pub(super) async fn rollback(mut self) -> Result<(), sqlx::Error> {
        self.execute("ROLLBACK").await?;
        self.is_open = false;
        Ok(())
    }
}

/// Why there is always a connection.
const UNTIL_DROPPED: &str = "a transaction has its connection until it is dropped";

impl Deref for SqliteTx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        self.connection.as_ref().expect(UNTIL_DROPPED)
    }
}

impl DerefMut for SqliteTx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        self.connection.as_mut().expect(UNTIL_DROPPED)
    }
}

/// Rolls back. One poll gives the order to the thread of the connection, which keeps the order of
/// what it is given, so whoever has the connection next comes after it. Only if dropped futures
/// have left more behind than that thread takes at a time, a task has to wait for it.
impl Drop for SqliteTx {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take().filter(|_| self.is_open) else {
            return;
        };
        let mut rollback: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(
            async move {
                if let Err(error) = connection.execute("ROLLBACK").await {
                    debug!(%error, "a transaction that was dropped was over already");
                }
            }
            .in_current_span(),
        );
        let done = rollback
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        if done.is_pending()
            && let Ok(runtime) = Handle::try_current()
        {
            drop(runtime.spawn(rollback));
        }
    }
}

impl fmt::Debug for SqliteTx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTx")
            .field("is_open", &self.is_open)
            .finish_non_exhaustive()
    }
}
