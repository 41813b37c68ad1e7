use sqlx::{SqlitePool, migrate::Migrator};

use crate::{
    FenceError,
    migrations::{self, Words},
    strays::past_strays,
};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations/sqlite");

const BOOKS: &str = "_fenced_migrations";

/// Applies the migrations in one transaction, which keeps all other writers out.
pub(super) async fn migrate(pool: &SqlitePool) -> Result<(), FenceError> {
    let mut tx = past_strays(pool, || pool.begin_with("BEGIN IMMEDIATE")).await?;
    migrations::apply(&MIGRATIONS, BOOKS, &mut *tx).await?;
    Ok(tx.commit().await?)
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
