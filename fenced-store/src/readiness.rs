//! What a database has to have before it is used.

use sqlx::Pool;

use crate::{FenceError, Rights, dialect::sealed::Operations};

/// Applies the migrations that are missing; if none is, it needs no right but to read that. A role
/// that may not apply them is told what is missing, unless somebody else has applied it meanwhile.
pub(crate) async fn migrate<DB: Operations>(pool: &Pool<DB>) -> Result<(), FenceError> {
    match DB::check_migrations(pool).await {
        Err(FenceError::NotMigrated { .. } | FenceError::NotReady(_)) => {}
        Err(error) if DB::is_denied(&error) => {}
        checked => return checked,
    }
    match DB::apply_migrations(pool).await {
        Err(error) if DB::is_denied(&error) => match check(pool, Rights::Write).await {
            Err(FenceError::NotMigrated { .. }) => Err(error),
            checked => checked,
        },
        applied => applied,
    }
}

/// Whether all migrations were applied, and the role has these rights. If it may not read the
/// former, the latter say why.
pub(crate) async fn check<DB: Operations>(
    pool: &Pool<DB>,
    rights: Rights,
) -> Result<(), FenceError> {
    let checked = DB::check_migrations(pool).await;
    if checked.as_ref().err().is_none_or(DB::is_denied) {
        DB::check_rights(pool, rights).await?;
    }
    checked
}

/// What the database said to one of these calls.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const fn of_database(error: &FenceError) -> Option<&sqlx::Error> {
    use sqlx::migrate::MigrateError;

    match error {
        FenceError::Db { source }
        | FenceError::Migration {
            source: MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _),
        } => Some(source),
        _ => None,
    }
}
