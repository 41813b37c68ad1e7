use sqlx::{Sqlite, SqlitePool, migrate::Migrator};

use super::error::of_our_call;
use crate::{
    FenceError,
    migrations::{self, Words},
    strays::{not_a_stray, past_strays},
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

const BOOKS: &str = "_fenced_migrations";

/// Applies the migrations in one transaction, which keeps all other writers out.
pub(super) async fn apply(pool: &SqlitePool) -> Result<(), FenceError> {
    let mut tx = past_strays(pool, || pool.begin_with("BEGIN IMMEDIATE")).await?;
    migrations::apply::<Sqlite>(&MIGRATIONS, BOOKS, &mut tx).await?;
    Ok(tx.commit().await?)
}

/// Whether all migrations were applied.
pub(super) async fn check(pool: &SqlitePool) -> Result<(), FenceError> {
    let mut connection = not_a_stray(pool).await.map_err(of_our_call)?;
    migrations::check::<Sqlite>(&MIGRATIONS, BOOKS, &mut connection, of_our_call).await
}

/// The same, as a script.
pub(super) fn script() -> String {
    let words = Words {
        first: "BEGIN IMMEDIATE;",
        last: "COMMIT;",
        table: BOOKS,
        time: "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
        bytes: "BLOB",
        told_before: false,
    };
    migrations::script(&MIGRATIONS, &words)
}
