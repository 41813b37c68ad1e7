use sqlx::migrate::{Migrate, MigrateError, Migrator};

use crate::FenceError;

/// Applies the migrations that are missing and checks those that are there.
///
/// The caller keeps others out meanwhile. What `Migrator::run` does, without its lock, which
/// outlives a failure on a pooled connection, and with a future that is `Send`. `table` is ours: in
/// the application's own, the numbers would clash.
pub(crate) async fn apply<C: Migrate>(
    migrator: &Migrator,
    table: &str,
    connection: &mut C,
) -> Result<(), FenceError> {
    apply_missing(migrator, table, connection)
        .await
        .map_err(|source| FenceError::Migration { source })
}

async fn apply_missing<C: Migrate>(
    migrator: &Migrator,
    table: &str,
    connection: &mut C,
) -> Result<(), MigrateError> {
    connection.ensure_migrations_table(table).await?;
    if let Some(version) = connection.dirty_version(table).await? {
        return Err(MigrateError::Dirty(version));
    }
    let applied = connection.list_applied_migrations(table).await?;
    if let Some(newer) = applied
        .iter()
        .find(|done| !migrator.version_exists(done.version))
    {
        return Err(MigrateError::VersionMissing(newer.version));
    }
    for migration in migrator.iter() {
        match applied
            .iter()
            .find(|done| done.version == migration.version)
        {
            Some(done) if done.checksum == migration.checksum => {}
            Some(done) => return Err(MigrateError::VersionMismatch(done.version)),
            None => {
                connection.apply(table, migration).await?;
            }
        }
    }
    Ok(())
}
