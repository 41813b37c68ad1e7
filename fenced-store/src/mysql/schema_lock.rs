//! The lock that migrations and changes of protected tables take.

use std::io;

use sqlx::{AssertSqlSafe, ConnectOptions, Executor, MySqlConnection, MySqlPool};

use crate::FenceError;

/// The lock belongs to the whole server, so its name contains the database. MySQL 9.7 has no MD5.
pub(super) const LOCK: &str =
    "GET_LOCK(CONCAT('fenced_store:', LEFT(SHA2(DATABASE(), 256), 32)), 60)";

/// A connection of its own. Until it is closed, it keeps out other callers that change the schema.
pub(super) async fn locked(pool: &MySqlPool) -> Result<MySqlConnection, FenceError> {
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    // The default wait for a table that is in use, or for a backup, is a day.
    let limit = sqlx::raw_sql("SET SESSION lock_wait_timeout = 50");
    connection.execute(limit).await?;
    lock(&mut connection).await?;
    Ok(connection)
}

/// Keeps out other callers that change the schema, until the connection is closed.
///
/// The lock of sqlx is not used, because it passes a timeout of -1. That means "for ever" to MySQL
/// and "not at all" to MariaDB.
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
