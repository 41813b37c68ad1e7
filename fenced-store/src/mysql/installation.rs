use std::sync::LazyLock;

use sqlx::{Connection, MySql, MySqlPool, SqlSafeStr, SqlStr, migrate::Migrator};

use super::{
    operations::LEAVE,
    protect, rights,
    schema_lock::{LOCK, locked},
};
use crate::{
    FenceError, NotReady, Protection, Rights,
    dialect::{Installation, by_statements::ByStatements},
    schema::{
        migrations::{self, Migrations, migrations},
        readiness,
    },
};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrations! { "mysql":
        "0001_marks",
        "0002_transactions",
        "0003_administration",
        "0005_jobs",
        "0006_leases",
        "0007_lease_calls",
        "0008_forgetting",
        "0011_ascii"
    }
});

impl Installation for MySql {
    type Admin = ByStatements;

    /// Looks in this database only, because the others of the server do not belong to this store.
    const GUARDED: &'static str = "SELECT event_object_table FROM information_schema.triggers \
        WHERE event_object_schema = DATABASE() \
          AND trigger_name LIKE 'fenced!_guard!_%' ESCAPE '!' LIMIT 1";

    /// The lock of the script ends with the session. If the lock is not granted, the subquery
    /// returns two rows, and that error stops the client.
    fn migrations() -> Migrations {
        Migrations {
            migrator: &MIGRATIONS,
            table: "_fenced_migrations",
            time: "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
            bytes: "BLOB",
            first: format!("SELECT IF({LOCK} = 1, 1, (SELECT 1 UNION SELECT 2)) AS locked;"),
            last: "-- The end.",
            // A procedure has semicolons inside.
            uncut: ("DELIMITER $$\n", "\n$$\nDELIMITER ;"),
            is_recorded_first: true,
        }
    }

    /// Uses a connection of its own, and a lock that ends with the connection. A transaction does
    /// not help here, because a change of the schema commits it.
    async fn apply_migrations(pool: &MySqlPool) -> Result<(), FenceError> {
        let mut connection = locked(pool).await?;
        migrations::apply::<Self>(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn check_migrations(pool: &MySqlPool) -> Result<(), FenceError> {
        match migrations::check::<Self>(pool).await {
            Err(FenceError::NotReady(NotReady::HalfApplied { .. })) => {}
            checked => return checked,
        }
        // Another client may be applying the migrations. That client has the lock.
        let mut connection = locked(pool).await?;
        migrations::check_on::<Self>(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn check_rights(pool: &MySqlPool, rights: Rights) -> Result<(), FenceError> {
        rights::check(pool, rights).await
    }

    async fn try_to_write(pool: &MySqlPool) -> Result<(), FenceError> {
        let note = "INSERT INTO fenced_open_transaction \
            (connection_id, resource, token, tx_name) VALUES (CONNECTION_ID(), '', 0, '')";
        readiness::commit_nothing(pool, [note, LEAVE]).await
    }

    fn begin_unfenced() -> SqlStr {
        "START TRANSACTION".into_sql_str()
    }

    async fn protect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
        protect::protect(pool, protection).await
    }

    async fn unprotect(pool: &MySqlPool, protection: &Protection) -> Result<(), FenceError> {
        protect::unprotect(pool, protection).await
    }
}
