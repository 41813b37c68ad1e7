use std::io;

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, MySqlPool, SqlSafeStr,
    SqlStr, migrate::Migrator,
};

use super::{protect, rights};
use crate::{
    FenceError, NotReady, Protection, Rights,
    admin::by_statements::ByStatements,
    dialect::sealed::Installation,
    migrations::{self, wording::Migrations},
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/mysql");

/// The lock belongs to the whole server, so its name contains the database.
const LOCK: &str = "GET_LOCK(CONCAT('fenced_store:', MD5(DATABASE())), 60)";

impl Installation for MySql {
    type Admin = ByStatements;

    /// The lock of the script ends with the session. If the lock is not granted, the second line is
    /// an error, since a number cannot be two.
    fn migrations() -> Migrations {
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

    /// On a connection of its own, under a lock that ends with the connection. A transaction is no
    /// help here: a change of the schema commits it.
    async fn apply_migrations(pool: &MySqlPool) -> Result<(), FenceError> {
        let mut connection = locked(pool).await?;
        migrations::apply::<Self>(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn check_migrations(pool: &MySqlPool) -> Result<(), FenceError> {
        match migrations::check::<Self>(pool).await {
            Err(FenceError::NotReady(NotReady::HalfApplied { .. })) => {}
            checked => return checked,
        }
        // Perhaps it is being applied: then its client has the lock.
        let mut connection = locked(pool).await?;
        migrations::check_on::<Self>(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn check_rights(pool: &MySqlPool, rights: Rights) -> Result<(), FenceError> {
        rights::check(pool, rights).await
    }

    fn begin_unfenced() -> SqlStr {
        "START TRANSACTION".into_sql_str()
    }

    async fn protect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
        protect::protect(pool, protection).await
    }

    async fn unprotect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
        protect::unprotect(pool, protection).await
    }
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
