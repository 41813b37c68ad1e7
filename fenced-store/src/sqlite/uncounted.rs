//! Transactions that sqlx does not count.
//!
//! A transaction of sqlx takes one step to the thread of the connection for `BEGIN` and one for
//! `COMMIT`, and these steps can do nothing else. Here each of these steps also does the work of
//! the fence. sqlx does not count this transaction. So sqlx nests no other transaction in it, and
//! is not wrong about its end.

use lock_core::{ResourceName, Sequencer};
use sqlx::{Connection, Executor, Row, Sqlite, SqliteConnection, SqlitePool, sqlite::SqliteRow};

use crate::{
    FenceError,
    dialect::Errors,
    rule::{self, marks},
    transaction::{
        begin_request::{BeginRequest, Fence},
        open_tx::{OpenTx, RollBack},
    },
};

/// The whole text is one step, and it is parsed once per connection.
///
/// The savepoint is gone after any end of the transaction, and the commit notices that. Until then
/// no other transaction begins on this connection, so the name need not be unique.
const BEGIN: &str = concat!(
    "BEGIN IMMEDIATE; SAVEPOINT fenced_tx; ",
    include_str!("sql/mark.sql")
);

/// If the savepoint is gone, the first statement fails, and `COMMIT` is not executed.
const COMMIT: &str = "RELEASE fenced_tx; COMMIT";

/// The release of the savepoint comes first here, too. If the savepoint is gone, another writer may
/// have the file. The deletion of the note could then fail because of that writer, and its error
/// would hide the real one.
const LEAVE_AND_COMMIT: &str = concat!(
    "RELEASE fenced_tx; ",
    include_str!("sql/leave.sql"),
    "; COMMIT"
);

/// Deletes the notes of transactions that are over.
pub(super) const LEAVE: &str = include_str!("sql/leave.sql");

/// Becomes the only writer of the file, and reads the mark of the first resource.
pub(super) async fn only_writer(
    pool: &SqlitePool,
    request: &BeginRequest,
) -> Result<(OpenTx<Sqlite>, Option<SqliteRow>), sqlx::Error> {
    let connection = pool.acquire().await?;
    if connection.is_in_transaction() {
        return Err(sqlx::Error::InvalidSavePointStatement);
    }
    let tasks = request.tasks().clone();
    let mut tx = OpenTx::new(pool, connection, request.tx_name(), None, tasks);
    match row(&mut tx, BEGIN, request.first().resource()).await {
        Ok(mark) => Ok((tx, mark)),
        Err(error) => {
            // The transaction that was left open is not ours. It is rolled back here, because our
            // `BEGIN IMMEDIATE` gives it the write lock before SQLite finds that a transaction is
            // open.
            if Sqlite::is_leaked(&error) {
                Sqlite::undo(&mut tx).await?;
                tx.end();
            }
            Err(error)
        }
    }
}

pub(super) async fn row(
    connection: &mut SqliteConnection,
    query: &'static str,
    resource: &ResourceName,
) -> Result<Option<SqliteRow>, sqlx::Error> {
    let query = sqlx::query(query).bind(resource.as_str());
    let row = query.fetch_optional(&mut *connection).await?;
    if row.is_none() {
        // The driver gives the same answer if its thread is gone.
        connection.ping().await?;
    }
    Ok(row)
}

/// Checks a mark. Returns whether any table is protected.
pub(super) async fn check(
    connection: &mut SqliteConnection,
    row: Option<SqliteRow>,
    sequencer: &Sequencer,
) -> Result<bool, FenceError> {
    let standing = marks::standing_of::<Sqlite>(connection, row.as_ref()).await?;
    rule::check(&standing, sequencer)?;
    Ok(row.is_some_and(|row| row.get(3)))
}

pub(super) async fn note(
    connection: &mut SqliteConnection,
    request: &BeginRequest,
) -> Result<(), FenceError> {
    connection.execute(LEAVE).await?;
    for sequencer in request.fences().map(Fence::sequencer) {
        sqlx::query("INSERT INTO main.fenced_open_transaction (resource, token) VALUES ($1, $2)")
            .bind(sequencer.resource().as_str())
            .bind(i64::from(sequencer.token()))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Commits if the transaction that [`only_writer`] began is still open.
///
/// The statements of a query are answered one by one. The first answer would wake this task while
/// the disk works on the second statement, and that costs more than parsing both. A text that sqlx
/// takes for the `BEGIN` of a transaction is executed as a whole and answered once: see decision
/// 22.
pub(super) async fn commit(
    connection: &mut SqliteConnection,
    is_noted: bool,
) -> Result<(), sqlx::Error> {
    let commit = if is_noted { LEAVE_AND_COMMIT } else { COMMIT };
    match connection.begin_with(commit).await.map(drop) {
        // This error means that all statements were executed, and that no transaction is open now.
        Err(sqlx::Error::BeginFailed) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(sqlx::Error::Protocol("a commit has begun".to_owned())),
    }
}
