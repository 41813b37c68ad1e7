//! Migrations that fail half way.

use fenced_store::{FenceError, PgFencedStore, Rights};
use sqlx::{
    Executor, PgPool,
    migrate::{Migration, MigrationType, Migrator},
};

use crate::{postgres::server::PostgresServer, rule::Harness};

/// A table of ours that is there already makes the first migration fail.
async fn in_the_way() -> PostgresServer {
    let world = PostgresServer::unmigrated().await;
    let pool = world.store().pool();
    pool.execute("CREATE SCHEMA fenced; CREATE TABLE fenced.high_water_mark (id int)")
        .await
        .unwrap();
    world
}

#[tokio::test]
async fn a_failed_migration_leaves_no_lock_and_nothing_half_done() {
    let world = in_the_way().await;
    for _ in 0..3 {
        let error = world.store().migrate().await.unwrap_err();
        assert!(matches!(error, FenceError::Migration { .. }), "{error:?}");
    }
    world.until_unlocked().await;
    let half_done: bool = sqlx::query_scalar(
        "SELECT to_regclass('fenced._migrations') IS NOT NULL
         OR to_regclass('fenced.lock_service') IS NOT NULL",
    )
    .fetch_one(world.store().pool())
    .await
    .unwrap();
    assert!(!half_done);

    world
        .store()
        .pool()
        .execute("DROP TABLE fenced.high_water_mark")
        .await
        .unwrap();
    world.store().migrate().await.unwrap();
}

/// A database may be set to tell bytes in another way.
#[tokio::test]
async fn digests_of_migrations_are_read_whatever_bytes_look_like() {
    let world = PostgresServer::unmigrated().await;
    let options = world.store().pool().connect_options();
    let options = (*options).clone().options([("bytea_output", "escape")]);
    let store = PgFencedStore::new(PgPool::connect_with(options).await.unwrap());
    for _ in 0..2 {
        store.migrate().await.unwrap();
        store.check(Rights::ClaimAndWrite).await.unwrap();
    }
}

#[tokio::test]
async fn naive_migration_that_fails_keeps_its_lock() {
    let world = in_the_way().await;
    let sql = sqlx::SqlSafeStr::into_sql_str("CREATE TABLE fenced.high_water_mark (id int)");
    let kind = MigrationType::Simple;
    let first = Migration::new(1, "mark".into(), kind, sql, false);
    let naive = Migrator::with_migrations(vec![first]);
    assert!(naive.run(world.store().pool()).await.is_err());
    assert_eq!(
        world.advisory_locks(true).await,
        1,
        "the next run would wait for ever"
    );
}
