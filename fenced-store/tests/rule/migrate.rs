//! The tables of fenced-store live beside the application's.

use sqlx::migrate::MigrateError;
use tokio::task::JoinSet;

use super::{Harness, app_migrator, fenced_add, grant};

pub(crate) async fn migrations_run_again_and_at_once<H: Harness>() {
    let world = H::unmigrated().await;
    let mut runs = JoinSet::new();
    for _ in 0..6 {
        let store = world.to_migrate().clone();
        runs.spawn(async move { store.migrate().await });
    }
    for run in runs.join_all().await {
        run.unwrap();
    }
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    world.to_migrate().migrate().await.unwrap();
    fenced_add(&world, &grant).await.unwrap();
}

/// sqlx's default table is the application's. The control at the end: a library that used it, too,
/// would clash with the application's first migration.
pub(crate) async fn migrations_of_the_application_are_its_own<H: Harness>() {
    let world = H::unmigrated().await;
    world.run_migrator(app_migrator()).await.unwrap();
    world.to_migrate().migrate().await.unwrap();
    world.run_migrator(app_migrator()).await.unwrap();
    world.to_migrate().migrate().await.unwrap();

    let naive = world.run_migrator(library_migrator()).await;
    assert!(
        matches!(naive, Err(MigrateError::VersionMismatch(1))),
        "{naive:?}"
    );
}

/// Another first migration, of a library that knows nothing of the application.
fn library_migrator() -> sqlx::migrate::Migrator {
    let mut migrator = app_migrator();
    let first = &mut migrator.migrations.to_mut()[0];
    first.checksum.to_mut()[0] ^= 1;
    migrator
}
