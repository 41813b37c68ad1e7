use std::sync::LazyLock;

use sqlx::{
    PgPool, Postgres, SqlStr,
    migrate::{MigrateError, Migrator},
};

use super::{
    administer::ByFunctions,
    calls,
    errors::{NotOwned, not_owned, of_protect},
    rights,
};
use crate::{
    FenceError, NotReady, Protection, Rights,
    dialect::{Errors, Installation, Operations, Queries, Value::Text},
    schema::{
        migrations::{self, Migrations, migrations},
        protection::Resources,
    },
    transaction::leaked::{begin_unfenced, to_read},
};

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrations! { "postgres":
        "0001_marks",
        "0002_transactions",
        "0003_administration",
        "0004_protected_tables",
        "0005_jobs",
        "0006_leases",
        "0007_lease_calls",
        "0008_forgetting",
        "0009_tickets",
        "0010_longest_hold"
    }
});

/// The lock that serializes the callers. Any number will do that differs from the lock that sqlx
/// takes for the application.
const LOCK: i64 = 0x7061_6c69_7361_6465;

/// Makes the schemas, and refuses those in which another role could create functions that ours
/// would call.
const SCHEMAS: &str = include_str!("sql/schemas.sql");

const IS_READ_ONLY: &str = "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() \
    THEN 'this server is a standby' ELSE 'default_transaction_read_only is on' END \
    WHERE pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'on'";

/// Two statements in one message are one transaction, and the setting ends with the transaction. 64
/// kB is the least memory that Postgres allows, and 5 000 rows take twice as much.
const WRITE_A_FILE: &str = "SELECT pg_catalog.set_config('work_mem', '64kB', true); \
    SELECT pg_catalog.count(*) FROM pg_catalog.generate_series(1, 5000)";

impl Installation for Postgres {
    type Admin = ByFunctions;

    const GUARDED: &'static str = "SELECT tgrelid::pg_catalog.regclass::pg_catalog.text \
        FROM pg_catalog.pg_trigger \
        WHERE tgname OPERATOR(pg_catalog.=) 'fenced_guard' LIMIT 1";

    fn migrations() -> Migrations {
        Migrations {
            migrator: &MIGRATIONS,
            table: "fenced._migrations",
            time: "TIMESTAMPTZ NOT NULL DEFAULT now()",
            bytes: "BYTEA",
            first: format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED;\n\
                 SELECT pg_catalog.pg_advisory_xact_lock({LOCK});\n{SCHEMAS}",
            ),
            last: "COMMIT;",
            uncut: ("", ""),
            is_recorded_first: false,
        }
    }

    /// Applies them in one transaction, under a lock that ends with the transaction.
    async fn apply_migrations(pool: &PgPool) -> Result<(), FenceError> {
        let mut tx = begin_unfenced(pool).await?;
        // The session has looked for our tables before, and remembers which tables are missing. The
        // session forgets that when it locks a table, as the second statement does.
        let lock = format!(
            "SELECT pg_catalog.pg_advisory_xact_lock({LOCK}); \
             SELECT FROM pg_catalog.pg_namespace LIMIT 0"
        );
        Self::rows(&mut tx, &lock, &[]).await?;
        // This comes before any use of these schemas, because code in them would run with our
        // rights.
        Self::rows(&mut tx, SCHEMAS, &[])
            .await
            .map_err(of_schemas)?;
        migrations::apply::<Self>(&mut tx).await?;
        // All earlier statements have succeeded, so the commit of sqlx can be trusted here.
        tx.commit().await.map_err(Self::of_commit)
    }

    /// A role that may create schemas could have made our schemas before. The code of that role in
    /// the schemas would then run with the rights of a superuser.
    async fn check_owner(pool: &PgPool) -> Result<(), FenceError> {
        let mut connection = to_read(pool).await?;
        let owner = Self::rows(&mut connection, include_str!("sql/owner.sql"), &[]).await?;
        match owner.first() {
            None => Ok(()),
            Some(row) => Err(NotReady::SchemaNotOurs {
                schema: Self::text(row, 0)?,
                reason: Self::text(row, 1)?,
            }
            .into()),
        }
    }

    async fn check_migrations(pool: &PgPool) -> Result<(), FenceError> {
        migrations::check(pool).await
    }

    async fn check_rights(pool: &PgPool, rights: Rights) -> Result<(), FenceError> {
        rights::check(pool, rights).await
    }

    /// A role need not have a right on any table, so no table is written. Rows that do not fit into
    /// the memory of the session go to a temporary file, on the disk of the data unless
    /// `temp_tablespaces` names another one. A server whose disk is full can still change small
    /// rows for a while, and stops when its log finds no room.
    async fn try_to_write(pool: &PgPool) -> Result<(), FenceError> {
        let mut connection = to_read(pool).await?;
        let read_only = Self::look(&mut connection, IS_READ_ONLY, &[]).await?;
        if let Some(row) = read_only.first() {
            // The name of the server may lead to another server at the next check.
            connection.close_on_drop();
            let reason = Self::text(row, 0)?;
            return Err(NotReady::ReadOnly { reason }.into());
        }
        Self::look(&mut connection, WRITE_A_FILE, &[])
            .await
            .map(drop)
    }

    fn begin_unfenced() -> SqlStr {
        calls::begin_unfenced()
    }

    async fn protect(pool: &PgPool, protection: &Protection) -> Result<(), FenceError> {
        let table = protection.quoted('"');
        match &protection.resources {
            Resources::Rows { id_column, prefix } => {
                let call =
                    "SELECT fenced.protect($1::pg_catalog.regclass, $2::pg_catalog.name, $3)";
                change(pool, call, &[&table, id_column, prefix.as_str()]).await
            }
            Resources::Table(resource) => {
                let call = "SELECT fenced.protect($1::pg_catalog.regclass, $2)";
                change(pool, call, &[&table, resource.as_str()]).await
            }
        }
    }

    async fn unprotect(pool: &PgPool, protection: &Protection) -> Result<(), FenceError> {
        let call = "SELECT fenced.unprotect($1::pg_catalog.regclass)";
        change(pool, call, &[&protection.quoted('"')]).await
    }
}

/// An error of the script that makes the schemas: its own refusal, or a missing right.
fn of_schemas(source: sqlx::Error) -> FenceError {
    match not_owned(&source) {
        Some(NotOwned { schema, reason }) => NotReady::SchemaNotOurs { schema, reason }.into(),
        None => FenceError::Migration {
            source: MigrateError::Execute(source),
        },
    }
}

/// Calls a function that makes or drops triggers. Any client may call it.
async fn change(pool: &PgPool, call: &'static str, values: &[&str]) -> Result<(), FenceError> {
    let values: Vec<_> = values.iter().map(|value| Text(value)).collect();
    let mut tx = begin_unfenced(pool).await?;
    let call = Postgres::statement(call, &values)?;
    Postgres::run(&mut tx, call).await.map_err(of_protect)?;
    tx.commit().await.map_err(Postgres::of_commit)
}
