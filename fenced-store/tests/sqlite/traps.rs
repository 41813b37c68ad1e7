//! Traps of SQLite and of sqlx 0.9.0. For some of them the control is the naive form.

use fenced_store::FencedStore;
use sqlx::{Executor, SqliteConnection};

use crate::{
    file::SqliteFile,
    rule::{Harness, SqlHarness, assert_kind, balance, claimed},
};

/// A conflict that makes SQLite roll back the whole transaction, and an error that is ignored.
async fn conflict_and_ignore(connection: &mut SqliteConnection) {
    let conflict = "INSERT OR ROLLBACK INTO accounts VALUES (42, 0)";
    assert!(connection.execute(conflict).await.is_err());
}

#[tokio::test]
async fn commit_after_a_rollback_inside_is_an_error_and_the_connection_goes_on() {
    let (world, grant) = claimed::<SqliteFile>().await;
    let store = FencedStore::new(world.pool_of_one().await);
    for _ in 0..3 {
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1).await.unwrap();
        conflict_and_ignore(&mut tx).await;
        let error = tx.commit().await.unwrap_err();
        assert_kind!(error, Aborted);
    }
    assert_eq!(balance(&world).await, 100);
    let mut tx = store.begin(&grant).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

#[tokio::test]
async fn a_pool_full_of_strays_is_cleared() {
    crate::rule::a_pool_full_of_strays_is_cleared::<SqliteFile>().await;
}

/// A migration that fails leaves nothing behind, and the next one can run.
/// Catches: a migration that is not one transaction.
#[tokio::test]
async fn a_failed_migration_leaves_nothing_half_done() {
    let world = SqliteFile::unmigrated().await;
    let pool = world.store().pool();
    pool.execute("CREATE TABLE fenced_high_water_mark (id INTEGER)")
        .await
        .unwrap();
    for _ in 0..3 {
        let error = world.store().migrate().await.unwrap_err();
        assert_kind!(error, Migration);
    }
    let tables: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM sqlite_schema
         WHERE name IN ('fenced_lock_service', '_fenced_migrations')",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    assert_eq!(tables, 0);
    pool.execute("DROP TABLE fenced_high_water_mark")
        .await
        .unwrap();
    world.store().migrate().await.unwrap();
}
