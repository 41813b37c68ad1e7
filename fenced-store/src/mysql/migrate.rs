use std::io;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, MySqlPool, migrate::Migrator,
};

use super::error::of_our_call;
use crate::{
    FenceError, NotReady,
    migrations::{self, Words},
    strays::not_a_stray,
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/mysql");

const BOOKS: &str = "_fenced_migrations";

/// The lock belongs to the whole server, so its name contains the database.
const LOCK: &str = "GET_LOCK(CONCAT('fenced_store:', MD5(DATABASE())), 60)";

/// Whether all migrations were applied.
pub(super) async fn check(pool: &MySqlPool) -> Result<(), FenceError> {
    let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
    let seen = look(&mut connection).await;
    if !matches!(
        seen,
        Err(FenceError::NotReady(NotReady::HalfApplied { .. }))
    ) {
        return seen;
    }
    // Perhaps it is being applied: whoever does that has the lock.
    let mut connection = locked(pool).await?;
    look(&mut connection).await?;
    Ok(connection.close().await?)
}

async fn look(connection: &mut MySqlConnection) -> Result<(), FenceError> {
    migrations::check::<MySql>(&MIGRATIONS, BOOKS, connection, of_our_call).await
}

/// Applies the migrations on a connection of its own, under a lock that ends with the connection.
///
/// A transaction is no help here: a change of the schema commits it.
pub(super) async fn apply(pool: &MySqlPool) -> Result<(), FenceError> {
    let mut connection = locked(pool).await?;
    migrations::apply::<MySql>(&MIGRATIONS, BOOKS, &mut connection).await?;
    Ok(connection.close().await?)
}

/// A connection of its own, which keeps out others until it is closed.
async fn locked(pool: &MySqlPool) -> Result<MySqlConnection, FenceError> {
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    lock(&mut connection).await?;
    Ok(connection)
}

/// Keeps out others who change the schema, until the connection is closed.
///
/// sqlx's own lock passes a timeout of -1, which means "for ever" to MySQL and "not at all" to
/// MariaDB.
pub(super) async fn lock(connection: &mut MySqlConnection) -> Result<(), FenceError> {
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

/// The same, as a script. The lock ends with the session. If the lock is not granted, the second
/// line is an error, since a number cannot be two.
pub(super) fn script() -> String {
    let first = format!("SELECT IF({LOCK} = 1, 1, (SELECT 1 UNION SELECT 2)) AS locked;");
    let words = Words {
        first: &first,
        last: "-- The end.",
        table: BOOKS,
        time: "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        bytes: "BLOB",
        told_before: true,
    };
    migrations::script(&MIGRATIONS, &words)
}
