//! The rule of the store in plain `psql`, and protected tables in a dump. Both are clients that
//! know nothing of this crate.

use e2e::{
    database_client::{pg_dump, psql},
    documented::example_for,
    servers::postgres_database,
};
use fenced_store::{FenceError, FencedStore, PgFencedStore};
use sqlx::Executor;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, by_row, claimed, fenced_add, fresh, grant, high_water},
};

#[tokio::test]
async fn the_documented_example_runs_in_psql() {
    let world: PostgresServer = fresh().await;
    let (done, text) = psql(world.url(), &example_for("psql")).await;
    assert!(done, "{text}");
    assert_eq!(balance(&world).await, 90);
    assert_eq!(high_water(&world, "account:42").await, Some(34));
    // The claim from psql counts for a program, too.
    let error = world
        .store()
        .claim(&grant("account:42", 33))
        .await
        .unwrap_err();
    assert_kind!(error, Stale);
}

#[tokio::test]
async fn psql_without_a_fence_is_refused() {
    let world: PostgresServer = fresh().await;
    let update = "UPDATE accounts SET balance = 0 WHERE id = 42";
    // The control.
    let (done, text) = psql(world.url(), "UPDATE accounts SET balance = 100").await;
    assert!(done, "{text}");
    let (done, text) = psql(world.url(), &example_for("psql")).await;
    assert!(done, "{text}");

    let stale = "SELECT fenced.begin_fenced('account:42', 33, 'somebody', 'redis');";
    let enter = "SELECT fenced.begin_fenced('account:42', 34, 'night-batch-7f3a', 'redis');";
    for (script, code) in [
        (update.to_owned(), "FN010"),
        (format!("BEGIN; {update}; COMMIT;"), "FN010"),
        (format!("BEGIN; {stale} {update}; COMMIT;"), "FN001"),
        // The session has entered, and its transaction is over.
        (format!("BEGIN; {enter} COMMIT; {update};"), "FN010"),
        (format!("{enter} {update};"), "FN010"),
        (
            format!("BEGIN; {enter} INSERT INTO accounts VALUES (43, 0); COMMIT;"),
            "FN011",
        ),
        ("TRUNCATE accounts;".to_owned(), "FN010"),
    ] {
        let (done, text) = psql(world.url(), &script).await;
        assert!(
            !done && text.contains(&format!("ERROR:  {code}:")),
            "{script}: {text}"
        );
    }
    assert_eq!(balance(&world).await, 90);
}

#[tokio::test]
async fn the_documented_migration_writes_every_row_and_leaves_the_table_protected() {
    let world: PostgresServer = fresh().await;
    world.store().protect(&by_row()).await.unwrap();
    let update = "UPDATE accounts SET balance = balance * 100;";
    let migration = example_for("migration");
    assert!(migration.contains(update), "{migration}");
    // The control.
    let (done, text) = psql(world.url(), update).await;
    assert!(!done && text.contains("ERROR:  FN010:"), "{text}");

    let (done, text) = psql(world.url(), &migration).await;
    assert!(done, "{text}");
    assert_eq!(balance(&world).await, 10_000);
    let (done, text) = psql(world.url(), update).await;
    assert!(!done && text.contains("ERROR:  FN010:"), "{text}");
}

/// A whole dump can be restored, and its protected tables are protected then.
#[tokio::test]
async fn a_restored_dump_is_protected() {
    let (world, own) = claimed::<PostgresServer>().await;
    world.store().protect(&by_row()).await.unwrap();
    fenced_add(&world, &own).await.unwrap();

    let dump = pg_dump(world.url(), &[]).await;
    let restored = postgres_database().await;
    let (done, text) = psql(restored.url(), &dump).await;
    assert!(done, "{text}");

    let pool = sqlx::PgPool::connect(restored.url()).await.unwrap();
    let update = "UPDATE accounts SET balance = balance + 1";
    let error = FenceError::from(pool.execute(update).await.unwrap_err());
    assert_kind!(error, Unfenced);
    let store: PgFencedStore = FencedStore::new(pool);
    store.migrate().await.unwrap();
    let mut tx = store.begin(&own).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    assert_eq!(PostgresServer::balance(&mut tx).await, 102);
    tx.commit().await.unwrap();
    store.protect(&by_row()).await.unwrap();
    store.unprotect(&by_row()).await.unwrap();
    store.pool().execute(update).await.unwrap();
    store.pool().close().await;
}
