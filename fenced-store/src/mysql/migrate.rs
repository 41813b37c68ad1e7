use std::io;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, MySqlPool, migrate::Migrator,
};

use crate::{
    FenceError, NotReady,
    migrations::{self, wording::Migrations},
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/mysql");

/// The lock belongs to the whole server, so its name contains the database.
const LOCK: &str = "GET_LOCK(CONCAT('fenced_store:', MD5(DATABASE())), 60)";

/// Whether all migrations were applied.
pub(super) async fn check(pool: &MySqlPool) -> Result<(), FenceError> {
    let seen = migrations::check::<MySql>(pool).await;
    if !matches!(
        seen,
        Err(FenceError::NotReady(NotReady::HalfApplied { .. }))
    ) {
        return seen;
    }
    // Perhaps it is being applied: whoever does that has the lock.
    let mut connection = locked(pool).await?;
    migrations::check_on::<MySql>(&mut connection).await?;
    Ok(connection.close().await?)
}

/// Applies the migrations on a connection of its own, under a lock that ends with the connection.
///
/// A transaction is no help here: a change of the schema commits it.
pub(super) async fn apply(pool: &MySqlPool) -> Result<(), FenceError> {
    let mut connection = locked(pool).await?;
    migrations::apply::<MySql>(&mut connection).await?;
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

/// The lock of the script ends with the session. If the lock is not granted, the second line is an
/// error, since a number cannot be two.
pub(super) fn migrations() -> Migrations {
    Migrations {
        migrator: &MIGRATIONS,
        table: "_fenced_migrations",
        time: "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        bytes: "BLOB",
        first: format!("SELECT IF({LOCK} = 1, 1, (SELECT 1 UNION SELECT 2)) AS locked;"),
        last: "-- The end.",
        told_before: true,
    }
}
