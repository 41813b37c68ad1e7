use std::sync::LazyLock;

use sqlx::{SqlSafeStr, SqlStr, Sqlite, SqlitePool, migrate::Migrator};

use super::{errors::is_taken, protect, uncounted::LEAVE};
use crate::{
    FenceError, Protection,
    dialect::{Errors, Installation, by_statements::ByStatements},
    schema::{
        migrations::{self, Migrations, migrations},
        readiness,
    },
    transaction::leaked::begin_unfenced,
};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrations! { "sqlite":
        "0001_marks",
        "0002_transactions",
        "0003_administration",
        "0004_protected_tables",
        "0005_jobs",
        "0008_forgetting"
    }
});

/// SQLite has no roles.
impl Installation for Sqlite {
    type Admin = ByStatements;

    const GUARDED: &'static str = "SELECT tbl_name FROM sqlite_master \
        WHERE type = 'trigger' AND name LIKE 'fenced!_guard!_%' ESCAPE '!' LIMIT 1";

    fn migrations() -> Migrations {
        Migrations {
            migrator: &MIGRATIONS,
            table: "_fenced_migrations",
            time: "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
            bytes: "BLOB",
            first: "BEGIN IMMEDIATE;".to_owned(),
            last: "COMMIT;",
            uncut: ("", ""),
            is_recorded_first: false,
        }
    }

    /// Applies them in one transaction, which keeps all other writers out.
    async fn apply_migrations(pool: &SqlitePool) -> Result<(), FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        migrations::apply::<Self>(&mut tx).await?;
        tx.commit().await.map_err(Self::of_commit)
    }

    async fn check_migrations(pool: &SqlitePool) -> Result<(), FenceError> {
        migrations::check(pool).await
    }

    async fn try_to_write(pool: &SqlitePool) -> Result<(), FenceError> {
        let note = "INSERT INTO main.fenced_open_transaction (resource, token) VALUES ('', 0)";
        match readiness::commit_nothing(pool, [note, LEAVE]).await {
            Err(FenceError::Busy { source }) if is_taken(&source) => Ok(()),
            tried => tried,
        }
    }

    fn begin_unfenced() -> SqlStr {
        "BEGIN IMMEDIATE".into_sql_str()
    }

    async fn protect(pool: &SqlitePool, protection: &Protection) -> Result<(), FenceError> {
        protect::change(pool, protection, true).await
    }

    async fn unprotect(pool: &SqlitePool, protection: &Protection) -> Result<(), FenceError> {
        protect::change(pool, protection, false).await
    }
}
