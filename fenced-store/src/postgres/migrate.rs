use sqlx::{
    AssertSqlSafe, Executor, PgPool, Postgres,
    migrate::{Migrate, Migrator},
};

use super::{
    administer::begin_unfenced,
    error::{of_commit, of_our_call},
};
use crate::{
    FenceError,
    migrations::{self, Words},
    strays::not_a_stray,
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/postgres");

/// Serializes the callers. Any number that differs from sqlx's lock for the application will do.
const LOCK: i64 = 0x7061_6c69_7361_6465;

const BOOKS: &str = "fenced._migrations";

/// Whether all migrations were applied.
pub(super) async fn check(pool: &PgPool) -> Result<(), FenceError> {
    let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
    migrations::check::<Postgres>(&MIGRATIONS, BOOKS, &mut connection, of_our_call).await
}

/// Applies the migrations in one transaction, under a lock that ends with it.
pub(super) async fn apply(pool: &PgPool) -> Result<(), FenceError> {
    let mut tx = begin_unfenced(pool).await?;
    // The session has looked before, and remembers what it has not found. It forgets that when it
    // locks a table, as the second statement does.
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK}); SELECT FROM pg_namespace LIMIT 0");
    tx.execute(sqlx::raw_sql(AssertSqlSafe(lock))).await?;
    tx.create_schema_if_not_exists("fenced")
        .await
        .map_err(|source| FenceError::Migration { source })?;
    migrations::apply::<Postgres>(&MIGRATIONS, BOOKS, &mut tx).await?;
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
