use sqlx::{SqlitePool, migrate::Migrator};

use crate::{FenceError, migrations, strays::past_strays};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// Applies the migrations in one transaction, which keeps all other writers out.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<(), FenceError> {
    let mut tx = past_strays(pool, || pool.begin_with("BEGIN IMMEDIATE")).await?;
    migrations::apply(&MIGRATIONS, "_fenced_migrations", &mut *tx).await?;
    Ok(tx.commit().await?)
}
