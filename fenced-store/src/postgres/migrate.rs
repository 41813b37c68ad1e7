use sqlx::{
    PgPool, Postgres,
    migrate::{Migrate, Migrator},
};

use crate::{
    FenceError,
    dialect::sealed::Errors,
    leaked::begin_unfenced,
    migrations::{self, wording::Migrations},
    queries::Queries,
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/postgres");

/// Serializes the callers. Any number that differs from sqlx's lock for the application will do.
const LOCK: i64 = 0x7061_6c69_7361_6465;

/// Applies the migrations in one transaction, under a lock that ends with it.
pub(super) async fn apply(pool: &PgPool) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    // The session has looked before, and remembers what it has not found. It forgets that when it
    // locks a table, as the second statement does.
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK}); SELECT FROM pg_namespace LIMIT 0");
    Postgres::rows(&mut tx, &lock, &[]).await?;
    tx.create_schema_if_not_exists("fenced")
        .await
        .map_err(|source| FenceError::Migration { source })?;
    migrations::apply::<Postgres>(&mut tx).await?;
    // All earlier statements succeeded, so sqlx's own commit can be trusted here.
    tx.commit().await.map_err(Postgres::of_commit)
}

pub(super) fn migrations() -> Migrations {
    Migrations {
        migrator: &MIGRATIONS,
        table: "fenced._migrations",
        time: "TIMESTAMPTZ NOT NULL DEFAULT now()",
        bytes: "BYTEA",
        first: format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED;\nSELECT pg_advisory_xact_lock({LOCK});\n\
             CREATE SCHEMA IF NOT EXISTS fenced;",
        ),
        last: "COMMIT;",
        told_before: false,
    }
}
