//! The tables of this crate: bringing them up to date, and whether they are.

mod history;
mod script;
pub(crate) mod wording;

use sqlx::{
    Pool, SqlSafeStr,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};

pub(crate) use self::script::script;
use self::wording::Migrations;
use crate::{FenceError, NotReady, dialect::sealed::Installation, leaked::to_read};

/// The migrations of a dialect by the names of their files, in order: `0001_marks` is number 1.
///
/// Not by the macro of sqlx: for that all drivers would be compiled a second time.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
macro_rules! migrations {
    ($dialect:literal: $($file:literal),+) => {
        $crate::migrations::of(&[$((
            $file,
            include_str!(concat!("../../migrations/", $dialect, "/", $file, ".sql")),
        )),+])
    };
}
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use migrations;

/// See the macro `migrations!`.
pub(crate) fn of(files: &[(&'static str, &'static str)]) -> Migrator {
    let migration = |&(file, text): &(&'static str, &'static str)| {
        let (number, name) = file.split_once('_')?;
        let number = number.parse().ok()?;
        let (kind, text) = (MigrationType::Simple, text.into_sql_str());
        Some(Migration::new(number, name.into(), kind, text, false))
    };
    Migrator::with_migrations(files.iter().filter_map(migration).collect())
}

/// Applies the missing migrations and checks those that were applied before.
///
/// The caller must keep others out meanwhile. This does the same as `Migrator::run`, but without
/// its lock, which outlives a failure on a pooled connection, and with a future that is `Send`.
pub(crate) async fn apply<DB>(connection: &mut DB::Connection) -> Result<(), FenceError>
where
    DB: Installation<Connection: Migrate>,
{
    let Migrations {
        migrator, table, ..
    } = DB::migrations();
    let ensured = connection.ensure_migrations_table(table).await;
    ensured.map_err(failed)?;
    let applied = history::read::<DB>(table, connection).await;
    let applied = applied.map_err(|source| failed(source.into()))?;
    match history::compare(migrator, table, &applied) {
        Err(NotReady::Missing { .. }) => {}
        compared => return Ok(compared?),
    }
    for migration in history::missing(migrator, &applied) {
        connection.apply(table, migration).await.map_err(failed)?;
    }
    Ok(())
}

const fn failed(source: MigrateError) -> FenceError {
    FenceError::Migration { source }
}

/// Fails unless exactly these migrations have been applied. It needs no right but to read the
/// migrations table.
pub(crate) async fn check<DB: Installation>(pool: &Pool<DB>) -> Result<(), FenceError> {
    let mut connection = to_read(pool).await?;
    check_on::<DB>(&mut connection).await
}

/// The same, on a connection.
pub(crate) async fn check_on<DB: Installation>(
    connection: &mut DB::Connection,
) -> Result<(), FenceError> {
    let Migrations {
        migrator, table, ..
    } = DB::migrations();
    let applied = history::read::<DB>(table, connection).await;
    Ok(history::compare(
        migrator,
        table,
        &applied.map_err(DB::of_our_call)?,
    )?)
}
