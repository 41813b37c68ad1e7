use sqlx::{
    PgPool,
    migrate::{Migrate, Migrator},
};

use super::{administer::begin_unfenced, error::of_commit};
use crate::{
    FenceError,
    migrations::{self, Words},
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/postgres");

/// Serializes the callers. Any number that differs from sqlx's lock for the application will do.
const LOCK: i64 = 0x7061_6c69_7361_6465;

const BOOKS: &str = "fenced._migrations";

/// Applies the migrations in one transaction, under a lock that ends with it.
pub(super) async fn migrate(pool: &PgPool) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)")
        .bind(LOCK)
        .execute(&mut *tx)
        .await?;
    tx.create_schema_if_not_exists("fenced")
        .await
        .map_err(|source| FenceError::Migration { source })?;
    migrations::apply(&MIGRATIONS, BOOKS, &mut *tx).await?;
    // All earlier statements succeeded, so sqlx's own commit can be trusted here.
    tx.commit().await.map_err(of_commit)
}

/// The same, as a script.
pub(super) fn script() -> String {
    let first = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED;\nSELECT pg_advisory_xact_lock({LOCK});\n\
         CREATE SCHEMA IF NOT EXISTS fenced;",
    );
    let words = Words {
        first: &first,
        last: "COMMIT;",
        table: BOOKS,
        time: "TIMESTAMPTZ NOT NULL DEFAULT now()",
        bytes: "BYTEA",
        told_before: false,
    };
    migrations::script(&MIGRATIONS, &words)
}
