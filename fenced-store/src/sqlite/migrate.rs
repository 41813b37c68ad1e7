use sqlx::{Sqlite, SqlitePool, migrate::Migrator};

use crate::{
    FenceError,
    dialect::sealed::Errors,
    leaked::begin_unfenced,
    migrations::{self, wording::Migrations},
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

/// Applies the migrations in one transaction, which keeps all other writers out.
pub(super) async fn apply(pool: &SqlitePool) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    migrations::apply::<Sqlite>(&mut tx).await?;
    tx.commit().await.map_err(Sqlite::of_commit)
}

pub(super) fn migrations() -> Migrations {
    Migrations {
        migrator: &MIGRATIONS,
        table: "_fenced_migrations",
        time: "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        bytes: "BLOB",
        first: "BEGIN IMMEDIATE;".to_owned(),
        last: "COMMIT;",
        told_before: false,
    }
}
