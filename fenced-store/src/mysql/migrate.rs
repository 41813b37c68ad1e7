use sqlx::{
    ConnectOptions, Connection, MySqlPool,
    migrate::{Migrate, Migrator},
};

use crate::{FenceError, migrations};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/mysql");

/// Applies the migrations on a connection of its own, under sqlx's lock.
///
/// That lock belongs to the session and would be kept when a migration fails; so the session must
/// end. A transaction is no help here: a change of the schema commits it.
pub(super) async fn migrate(pool: &MySqlPool) -> Result<(), FenceError> {
    let mut connection = pool.connect_options().as_ref().clone().connect().await?;
    connection
        .lock()
        .await
        .map_err(|source| FenceError::Migration { source })?;
    migrations::apply(&MIGRATIONS, "_fenced_migrations", &mut connection).await?;
    Ok(connection.close().await?)
}
