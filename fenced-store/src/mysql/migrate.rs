use std::io;

use sqlx::{ConnectOptions, Connection, MySqlConnection, MySqlPool, migrate::Migrator};

use crate::{FenceError, migrations};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/mysql");

/// Applies the migrations on a connection of its own, under a lock that ends with it.
///
/// A transaction is no help here: a change of the schema commits it.
pub(super) async fn migrate(pool: &MySqlPool) -> Result<(), FenceError> {
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    lock(&mut connection).await?;
    migrations::apply(&MIGRATIONS, "_fenced_migrations", &mut connection).await?;
    Ok(connection.close().await?)
}

/// sqlx's own lock asks for a timeout of -1, which MySQL takes for "for ever" and MariaDB for "not
/// at all". The lock belongs to the server, so its name has the database in it.
async fn lock(connection: &mut MySqlConnection) -> Result<(), FenceError> {
    let lock = "SELECT GET_LOCK(CONCAT('fenced_store:', MD5(DATABASE())), 60)";
    let granted: Option<i64> = sqlx::query_scalar(lock).fetch_one(connection).await?;
    if granted == Some(1) {
        return Ok(());
    }
    let source = io::Error::new(
        io::ErrorKind::TimedOut,
        "another migration did not end in 60 s",
    );
    Err(FenceError::Busy {
        source: sqlx::Error::Io(source),
    })
}
