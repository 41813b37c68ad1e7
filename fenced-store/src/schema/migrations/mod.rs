//! The tables of this crate. `apply` brings them up to date and `check` only looks; both read
//! `history.rs`, the list of the migrations that were applied. `script.rs` writes all of them as
//! one script, to be applied by hand.

mod history;
mod script;

use sqlx::{
    Pool, SqlSafeStr,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};

pub(crate) use self::script::script;
use crate::{FenceError, NotReady, dialect::Installation, transaction::leaked::to_read};

/// The migrations of a database, and the words of its SQL for the script.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Migrations {
    pub(crate) migrator: &'static Migrator,
    /// The migrations table, and the types of two of its columns. The table is our own, because our
    /// numbers would clash with those of the application.
    pub(crate) table: &'static str,
    pub(crate) time: &'static str,
    pub(crate) bytes: &'static str,
    /// The first and the last statements of the script.
    pub(crate) first: String,
    pub(crate) last: &'static str,
    /// The words before and after a migration in the script, because a client cuts a script at each
    /// semicolon.
    pub(crate) uncut: (&'static str, &'static str),
    /// Whether a migration is recorded before it is applied, because a change of the schema
    /// commits.
    pub(crate) is_recorded_first: bool,
}

/// The migrations of a dialect by the names of their files, in order: `0001_marks` is number 1.
///
/// The macro of sqlx is not used, because it would compile all drivers a second time.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
macro_rules! migrations {
    ($dialect:literal: $($file:literal),+) => {
        $crate::schema::migrations::of(&[$((
            $file,
            include_str!(concat!("../../migrations/", $dialect, "/", $file, ".sql")),
        )),+])
    };
}
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use migrations;

/// The migrations in these files: pairs of name and text. The macro `migrations` calls it.
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
/// The caller has to keep other callers out meanwhile. This does the same as `Migrator::run`, with
/// two differences: the future is `Send`, and there is no lock of sqlx, which outlives a failure on
/// a pooled connection.
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

/// Fails unless exactly these migrations were applied. The role only needs the right to read the
/// migrations table.
pub(crate) async fn check<DB: Installation>(pool: &Pool<DB>) -> Result<(), FenceError> {
    let mut connection = to_read(pool).await?;
    check_on::<DB>(&mut connection).await
}

/// Does the same as [`check`], on a connection.
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
