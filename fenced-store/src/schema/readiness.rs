//! What a database has to have before it is used.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use sqlx::Connection;
use sqlx::{Pool, migrate::MigrateError};

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use crate::transaction::leaked::{to_read, unless_read_only};
use crate::{FenceError, NotReady, Rights, dialect::Installation};

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

/// Whether our schemas can be trusted, all migrations were applied, the role has these rights, and
/// the database takes writes.
/// If it may not read whether they were applied, the rights say why.
pub(crate) async fn check<DB: Installation>(
    pool: &Pool<DB>,
    rights: Rights,
) -> Result<(), FenceError> {
    DB::check_owner(pool).await?;
    let checked = DB::check_migrations(pool).await;
    if checked.as_ref().err().is_none_or(is_denied::<DB>) {
        told_read_only::<DB>(DB::check_rights(pool, rights).await)?;
    }
    checked?;
    check_writable(pool).await
}

/// Fails if the database takes no writes: a standby, one that is switched to read only, a file that
/// can only be read, a full disk. Leaves nothing behind.
pub(crate) async fn check_writable<DB: Installation>(pool: &Pool<DB>) -> Result<(), FenceError> {
    told_read_only::<DB>(DB::try_to_write(pool).await)
}

fn told_read_only<DB: Installation>(done: Result<(), FenceError>) -> Result<(), FenceError> {
    match done {
        Err(FenceError::Db { source } | FenceError::Busy { source })
            if DB::is_read_only(&source) =>
        {
            let reason = match source.as_database_error() {
                Some(error) => error.message().to_owned(),
                None => source.to_string(),
            };
            Err(NotReady::ReadOnly { reason }.into())
        }
        done => done,
    }
}

/// Commits a row that the same transaction has deleted.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(crate) async fn commit_nothing<DB: Installation>(
    pool: &Pool<DB>,
    changes: [&str; 2],
) -> Result<(), FenceError> {
    let mut connection = to_read(pool).await?;
    let committed = async {
        let mut tx = connection.begin_with(DB::begin_unfenced()).await?;
        for change in changes {
            DB::rows(&mut tx, change, &[]).await?;
        }
        tx.commit().await
    }
    .await;
    unless_read_only(&mut connection, committed).map_err(DB::of_our_call)
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
