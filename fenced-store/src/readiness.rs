//! What a database has to have before it is used.

use sqlx::{Pool, migrate::MigrateError};

use crate::{FenceError, NotReady, Rights, dialect::sealed::Installation, leaked::to_read};

/// Applies the migrations that are missing; if none is, it needs no right but to read that. A role
/// that may not apply them is told what is missing, unless somebody else has applied it meanwhile.
pub(crate) async fn migrate<DB: Installation>(pool: &Pool<DB>) -> Result<(), FenceError> {
    DB::check_owner(pool).await?;
    match DB::check_migrations(pool).await {
        Err(FenceError::NotMigrated { .. } | FenceError::NotReady(_)) => {}
        Err(error) if is_denied::<DB>(&error) => {}
        checked => return checked,
    }
    match DB::apply_migrations(pool).await {
        Err(error) if is_denied::<DB>(&error) => match check(pool, Rights::Write).await {
            Err(FenceError::NotMigrated { .. }) => Err(error),
            checked => checked,
        },
        applied => applied,
    }
}

/// Whether our schemas can be trusted, all migrations were applied, and the role has these rights.
/// If it may not read whether they were applied, the rights say why.
pub(crate) async fn check<DB: Installation>(
    pool: &Pool<DB>,
    rights: Rights,
) -> Result<(), FenceError> {
    DB::check_owner(pool).await?;
    let checked = DB::check_migrations(pool).await;
    if checked.as_ref().err().is_none_or(is_denied::<DB>) {
        DB::check_rights(pool, rights).await?;
    }
    checked
}

/// Fails if the database takes no writes: a standby, one that is switched to read only, a file that
/// can only be read. Changes nothing.
pub(crate) async fn check_writable<DB: Installation>(pool: &Pool<DB>) -> Result<(), FenceError> {
    let mut connection = to_read(pool).await?;
    if DB::NAME == "PostgreSQL" {
        // A role need not have any right on the tables, so that it could not try.
        let refusal = DB::look(&mut connection, POSTGRES_IS_READ_ONLY, &[]).await?;
        return match refusal.first().map(|row| DB::text(row, 0)).transpose()? {
            Some(reason) => Err(NotReady::ReadOnly { reason }.into()),
            None => Ok(()),
        };
    }
    let nothing = "DELETE FROM fenced_open_transaction WHERE 1 = 0";
    match DB::look(&mut connection, nothing, &[]).await {
        // Another one writes.
        Err(FenceError::Busy { .. }) => Ok(()),
        Err(FenceError::Db { source }) if DB::is_read_only(&source) => {
            let reason = match source.as_database_error() {
                Some(error) => error.message().to_owned(),
                None => source.to_string(),
            };
            Err(NotReady::ReadOnly { reason }.into())
        }
        done => done.map(drop),
    }
}

const POSTGRES_IS_READ_ONLY: &str = "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() \
    THEN 'this server is a standby' ELSE 'default_transaction_read_only is on' END \
    WHERE pg_catalog.current_setting('transaction_read_only') OPERATOR(pg_catalog.=) 'on'";

/// Whether the database said to one of these calls that the role lacks a right.
fn is_denied<DB: Installation>(error: &FenceError) -> bool {
    match error {
        FenceError::NotReady(NotReady::SchemaNotOurs { .. }) => true,
        FenceError::Db { source }
        | FenceError::Migration {
            source: MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _),
        } => DB::is_denied(source),
        _ => false,
    }
}
