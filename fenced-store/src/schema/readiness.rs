//! The checks of a database before it is used.

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use sqlx::Connection;
use sqlx::{Pool, migrate::MigrateError};

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use crate::transaction::leaked::{to_read, unless_read_only};
use crate::{FenceError, NotReady, Rights, dialect::Installation};

/// Applies the missing migrations. If none is missing, the role only needs the right to read the
/// migrations table. If the role may not apply a missing migration, the error names that migration,
/// unless another caller has applied it meanwhile.
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

/// Fails unless our schemas can be trusted, all migrations were applied, the role has these rights,
/// and the database takes writes. If the role may not read the migrations table, the check of the
/// rights gives the error.
pub(crate) async fn check<DB: Installation>(
    pool: &Pool<DB>,
    rights: Rights,
) -> Result<(), FenceError> {
    DB::check_owner(pool).await?;
    let checked = DB::check_migrations(pool).await;
    if checked.as_ref().err().is_none_or(is_denied::<DB>) {
        or_read_only::<DB>(DB::check_rights(pool, rights).await)?;
    }
    checked?;
    check_writable(pool).await
}

/// Fails if the database takes no writes: because it is a standby or was switched to read only, its
/// file is read only, or the disk is full. Leaves nothing behind.
pub(crate) async fn check_writable<DB: Installation>(pool: &Pool<DB>) -> Result<(), FenceError> {
    or_read_only::<DB>(DB::try_to_write(pool).await)
}

fn or_read_only<DB: Installation>(done: Result<(), FenceError>) -> Result<(), FenceError> {
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

/// Commits a transaction that inserts a row and deletes it again.
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

/// Whether one of these calls failed because the role lacks a right.
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
