//! Migrations that fail half way.

use fenced_store::{PgFencedStore, Rights};
use sqlx::{Executor, PgPool};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, SqlHarness, assert_kind},
};

/// One of our tables exists already, so the first migration fails.
#[tokio::test]
async fn a_failed_migration_leaves_no_lock_and_nothing_half_done() {
    let world = PostgresServer::unmigrated().await;
    let pool = world.store().pool();
    pool.execute("CREATE SCHEMA fenced; CREATE TABLE fenced.high_water_mark (id int)")
        .await
        .unwrap();
    for _ in 0..3 {
        let error = world.store().migrate().await.unwrap_err();
        assert_kind!(error, Migration);
    }
    world.until_unlocked().await;
    let half_done: bool = sqlx::query_scalar(
        "SELECT to_regclass('fenced._migrations') IS NOT NULL
         OR to_regclass('fenced.lock_service') IS NOT NULL",
    )
    .fetch_one(pool)
    .await
    .unwrap();
    assert!(!half_done);

    pool.execute("DROP TABLE fenced.high_water_mark")
        .await
        .unwrap();
    world.store().migrate().await.unwrap();
}

/// A database may have a setting that shows bytes in another form.
/// Catches: digests that are read as the text of one setting.
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
