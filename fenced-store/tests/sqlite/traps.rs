//! Traps of SQLite and of sqlx 0.9.0, some with the naive form as their control.

use fenced_store::{FenceError, FencedStore};
use lock_core::Sequencer;
use sqlx::{Executor, SqliteConnection};

use crate::{
    file::SqliteFile,
    rule::{Harness, balance, fenced_add, fresh, grant},
};

async fn claimed() -> (SqliteFile, Sequencer) {
    let world: SqliteFile = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    (world, grant)
}

/// A conflict that makes SQLite roll back the whole transaction, and an error that nobody looks at.
async fn conflict_and_ignore(connection: &mut SqliteConnection) {
    let conflict = "INSERT OR ROLLBACK INTO accounts VALUES (42, 0)";
    assert!(connection.execute(conflict).await.is_err());
}

#[tokio::test]
async fn commit_after_a_rollback_inside_is_an_error_and_the_connection_goes_on() {
    let (world, grant) = claimed().await;
    let store = FencedStore::new(world.pool_of_one().await);
    for _ in 0..3 {
        let mut tx = store.begin(&grant).await.unwrap();
        SqliteFile::add(&mut tx, 1).await.unwrap();
        conflict_and_ignore(&mut tx).await;
        let error = tx.commit().await.unwrap_err();
        assert!(matches!(error, FenceError::Aborted), "{error:?}");
    }
    assert_eq!(balance(&world).await, 100);
    let mut tx = store.begin(&grant).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// The control: sqlx goes on counting a transaction that is over, and the pooled connection can
/// never begin another one of this kind.
#[tokio::test]
async fn naive_commit_after_a_rollback_inside_breaks_the_connection() {
    let (world, _) = claimed().await;
    let pool = world.pool_of_one().await;
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    conflict_and_ignore(&mut tx).await;
    assert!(tx.commit().await.is_err());
    for _ in 0..3 {
        let next = pool.begin_with("BEGIN IMMEDIATE").await.unwrap_err();
        assert!(matches!(next, sqlx::Error::InvalidSavePointStatement));
    }
}

/// Connections that somebody left inside a transaction. However many there are, a call meets all of
/// them at most.
#[tokio::test]
async fn a_pool_full_of_strays_is_cleared() {
    let (world, old) = claimed().await;
    let pool = world.store().pool();
    let mut strays = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        let mut connection = pool.acquire().await.unwrap();
        connection.execute("BEGIN").await.unwrap();
        strays.push(connection);
    }
    drop(strays);
    fenced_add(&world, &old).await.unwrap();
    world.store().claim(&grant("account:42", 34)).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

#[tokio::test]
async fn a_refused_begin_leaves_the_file_free() {
    let (world, old) = claimed().await;
    let new = grant("account:42", 34);
    world.store().claim(&new).await.unwrap();
    let store = FencedStore::new(world.pool_of_one().await);
    for _ in 0..3 {
        assert!(store.begin(&old).await.unwrap_err().is_fenced());
    }
    // Another connection gets the write lock at once.
    let store = world.impatient().await;
    store.begin(&new).await.unwrap().commit().await.unwrap();
    fenced_add(&world, &new).await.unwrap();
}

/// The one writer of the file keeps out writers of all resources; readers go on.
#[tokio::test]
async fn an_open_transaction_makes_every_other_writer_busy() {
    let (world, grant) = claimed().await;
    let other = crate::rule::grant("account:43", 1);
    let mut tx = world.store().begin(&grant).await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    let busy = world.impatient().await.claim(&other).await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    assert_eq!(balance(&world).await, 100);
    tx.commit().await.unwrap();
    world.impatient().await.claim(&other).await.unwrap();
}

/// A migration that fails leaves nothing behind, and the next one is not kept out.
#[tokio::test]
async fn a_failed_migration_leaves_nothing_half_done() {
    let world = SqliteFile::unmigrated().await;
    let pool = world.store().pool();
    pool.execute("CREATE TABLE fenced_high_water_mark (id INTEGER)")
        .await
        .unwrap();
    for _ in 0..3 {
        let error = world.store().migrate().await.unwrap_err();
        assert!(matches!(error, FenceError::Migration { .. }), "{error:?}");
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
