//! The tables of this crate: bringing them up to date, and whether they are.

mod books;
mod script;

use sqlx::{
    Executor, FromRow,
    migrate::{Migrate, MigrateError, Migrator},
};

pub(crate) use self::script::{Words, script};
use crate::{FenceError, NotReady};

/// Applies the missing migrations and checks those that were applied before.
///
/// The caller must keep others out meanwhile. This does the same as `Migrator::run`, but without
/// its lock, which outlives a failure on a pooled connection, and with a future that is `Send`.
/// `table` is our own: in the application's migrations table the numbers would clash.
pub(crate) async fn apply<DB>(
    migrator: &Migrator,
    table: &'static str,
    connection: &mut DB::Connection,
) -> Result<(), FenceError>
where
    DB: sqlx::Database,
    DB::Connection: Migrate,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> books::Row: FromRow<'r, DB::Row>,
{
    let ensured = connection.ensure_migrations_table(table).await;
    ensured.map_err(failed)?;
    let applied = books::read::<DB>(table, connection).await;
    let applied = applied.map_err(|source| failed(source.into()))?;
    match books::compare(migrator, table, &applied) {
        Err(NotReady::Missing { .. }) => {}
        compared => return Ok(compared?),
    }
    for migration in books::missing(migrator, &applied) {
        connection.apply(table, migration).await.map_err(failed)?;
    }
    Ok(())
}

const fn failed(source: MigrateError) -> FenceError {
    FenceError::Migration { source }
}

/// Fails unless exactly these migrations have been applied. It needs no right but to read the
/// migrations table.
pub(crate) async fn check<DB>(
    migrator: &Migrator,
    table: &'static str,
    connection: &mut DB::Connection,
    of_our_call: fn(sqlx::Error) -> FenceError,
) -> Result<(), FenceError>
where
    DB: sqlx::Database,
    for<'c> &'c mut DB::Connection: Executor<'c, Database = DB>,
    for<'r> books::Row: FromRow<'r, DB::Row>,
{
    let applied = books::read::<DB>(table, connection).await;
    let applied = applied.map_err(of_our_call)?;
    Ok(books::compare(migrator, table, &applied)?)
}
