//! What a database has to have before it is used.

use sqlx::{Pool, migrate::MigrateError};

use crate::{FenceError, NotReady, Rights, dialect::sealed::Installation};

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

/// Whether all migrations were applied, and the role has these rights. If it may not read the
/// former, the latter say why.
pub(crate) async fn check<DB: Installation>(
    pool: &Pool<DB>,
    rights: Rights,
) -> Result<(), FenceError> {
    let checked = DB::check_migrations(pool).await;
    if checked.as_ref().err().is_none_or(is_denied::<DB>) {
        DB::check_rights(pool, rights).await?;
    }
    checked
}

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
