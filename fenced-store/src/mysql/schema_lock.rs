//! The lock that migrations and changes of protected tables take.

use std::io;

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, MySqlConnection, MySqlPool};

use crate::FenceError;

/// The lock belongs to the whole server, so its name contains the database.
pub(super) const LOCK: &str = "GET_LOCK(CONCAT('fenced_store:', MD5(DATABASE())), 60)";

/// A connection of its own, which keeps out others who change the schema until it is closed.
pub(super) async fn locked(pool: &MySqlPool) -> Result<MySqlConnection, FenceError> {
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    // A table that is in use, or a backup, is not waited for as long as is usual, a day.
    let limit = sqlx::raw_sql("SET SESSION lock_wait_timeout = 50");
    connection.execute(limit).await?;
    lock(&mut connection).await?;
    Ok(connection)
}

/// Keeps out others who change the schema, until the connection is closed.
///
/// sqlx's own lock passes a timeout of -1, which means "for ever" to MySQL and "not at all" to
/// MariaDB.
async fn lock(connection: &mut MySqlConnection) -> Result<(), FenceError> {
    let lock = AssertSqlSafe(format!("SELECT {LOCK}"));
    let granted: Option<i64> = sqlx::query_scalar(lock).fetch_one(connection).await?;
    if granted == Some(1) {
        return Ok(());
    }
    let source = io::Error::new(
        io::ErrorKind::TimedOut,
        "another migration, or protection of a table, did not end in 60 s",
    );
    Err(FenceError::Busy {
        source: sqlx::Error::Io(source),
    })
}
