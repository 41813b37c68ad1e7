use std::{
    fmt,
    ops::{Deref, DerefMut},
    pin::Pin,
    task::{Context, Waker},
};

use lock_core::ResourceName;
use sqlx::{
    Connection, Executor, Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection,
    sqlite::SqliteRow,
};
use tokio::runtime::Handle;
use tracing::{Instrument, debug};

use super::error::is_stray;

/// A transaction that sqlx does not count.
///
/// sqlx's own transaction takes one step to the thread of the connection for `BEGIN` and one for
/// `COMMIT`, and these steps can do nothing else. Here each of them also does what a fence needs.
/// Since sqlx does not count this transaction, it does not nest another one in it, and cannot be
/// wrong about when it is over.
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct SqliteTx {
    /// `None` only while it is being dropped.
    connection: Option<PoolConnection<Sqlite>>,
    /// Whether it may still have to be rolled back.
    is_open: bool,
}

/// One text is one step, and it is parsed once per connection.
///
/// The savepoint is gone when the transaction is, however that ended: this is how the commit
/// notices. Until then nobody else begins on this connection, so the name need not be unique.
const BEGIN: &str = concat!(
    "BEGIN IMMEDIATE; SAVEPOINT fenced_entry; ",
    include_str!("sql/mark.sql")
);

/// If the savepoint is gone, the first statement fails, and `COMMIT` is not executed.
const COMMIT: &str = "RELEASE fenced_entry; COMMIT";

/// The savepoint comes first here, too. If it is gone, this connection no longer has the file to
/// itself. Deleting the note could then fail because another writer has the file, and that is not
/// why this transaction is over.
const LEAVE_AND_COMMIT: &str = concat!(
    "RELEASE fenced_entry; ",
    include_str!("sql/leave.sql"),
    "; COMMIT"
);

impl SqliteTx {
    /// Becomes the only writer of the file, and reads a mark.
    pub(super) async fn begin(
        pool: &SqlitePool,
        resource: &ResourceName,
    ) -> Result<(Self, Option<SqliteRow>), sqlx::Error> {
        let connection = pool.acquire().await?;
        if connection.is_in_transaction() {
            return Err(sqlx::Error::InvalidSavePointStatement);
        }
        let mut tx = Self {
            connection: Some(connection),
            is_open: true,
        };
        let mark = tx.row(BEGIN, resource).await;
        // A transaction that somebody left open is not ours.
        tx.is_open = !mark.as_ref().is_err_and(is_stray);
        Ok((tx, mark?))
    }

    /// Reads another mark.
    pub(super) async fn mark(
        &mut self,
        resource: &ResourceName,
    ) -> Result<Option<SqliteRow>, sqlx::Error> {
        self.row(include_str!("sql/mark.sql"), resource).await
    }

    async fn row(
        &mut self,
        query: &'static str,
        resource: &ResourceName,
    ) -> Result<Option<SqliteRow>, sqlx::Error> {
        let query = sqlx::query(query).bind(resource.as_str());
        let row = query.fetch_optional(&mut **self).await?;
        if row.is_none() {
            // The driver gives the same answer if its thread is gone.
            self.ping().await?;
        }
        Ok(row)
    }

    /// Commits if this is still the transaction that began.
    ///
    /// The statements of a query are answered one by one. To be woken by the first answer, while
    /// the disk works on the second statement, costs more than to parse both. What sqlx takes for
    /// the `BEGIN` of a transaction is executed as a whole and answered once: see decision 22.
    pub(super) async fn commit(&mut self, is_noted: bool) -> Result<(), sqlx::Error> {
        let commit = if is_noted { LEAVE_AND_COMMIT } else { COMMIT };
        match self.begin_with(commit).await.map(drop) {
            // This error means that everything was executed, and that there is no transaction
            // afterwards.
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

/// Rolls back. One poll hands the command to the thread of the connection. That thread executes
/// commands in the order in which it gets them, so whoever has the connection next comes after the
/// rollback. A task has to wait only if dropped futures have left more commands behind than the
/// queue of that thread takes.
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
