//! Writes of one statement, in one round trip.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use e2e::proxy::Fault;
use fenced_store::{FenceError, FencedStore, PgIsolation, PgTxOptions};
use sqlx::{Executor, PgPool};

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, claimed},
};

/// Placeholders keep their numbers, comments and clauses of their own do no harm.
#[tokio::test]
async fn a_statement_keeps_its_own_placeholders_and_clauses() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let store = world.store();
    let plain = store
        .begin(&grant)
        .execute("UPDATE accounts SET balance = 0 -- done");
    assert_eq!(plain.await.unwrap().rows_affected(), 1);
    let many = sqlx::query(
        "WITH amounts AS (SELECT $11::bigint - $2 AS amount)
         UPDATE accounts SET balance = amount + $1 * 0 FROM amounts WHERE id = $3 AND $3 > 0",
    );
    let many = (4..=10).fold(
        many.bind(9_i64).bind(1_i64).bind(42_i32),
        |query, number| query.bind(i64::from(number)),
    );
    let many = store.begin(&grant).execute(many.bind(8_i64)).await.unwrap();
    assert_eq!(many.rows_affected(), 1);
    assert_eq!(balance(&world).await, 7);
    let upsert = sqlx::query(
        "INSERT INTO accounts SELECT id, 1 FROM generate_series(40, $1) AS ids (id)
         ON CONFLICT (id) DO UPDATE SET balance = accounts.balance + 1",
    );
    let upserted = store.begin(&grant).execute(upsert.bind(44)).await.unwrap();
    assert_eq!(upserted.rows_affected(), 5);
    assert_eq!(balance(&world).await, 8);
    let deleted = store
        .begin(&grant)
        .execute("DELETE FROM accounts")
        .await
        .unwrap();
    assert_eq!(deleted.rows_affected(), 5);
}

/// A statement that cannot be part of a larger one is an error, not a write without a check.
#[tokio::test]
async fn a_statement_that_does_not_fit_is_an_error() {
    let (world, grant) = claimed::<PostgresServer>().await;
    for statement in [
        "UPDATE accounts SET balance = 0;",
        "UPDATE accounts SET balance = 0) SELECT 1 --",
        "UPDATE accounts SET balance = 0 RETURNING id",
        "SELECT 1",
        "TRUNCATE accounts",
    ] {
        let error = world
            .store()
            .begin(&grant)
            .execute(statement)
            .await
            .unwrap_err();
        assert_kind!(error, Db, "{statement}");
        assert_eq!(balance(&world).await, 100, "{statement}");
    }
}

/// The claim is committed while the statement waits for it.
#[tokio::test]
async fn a_single_write_that_waited_for_a_claim_is_refused() {
    let (world, old) = claimed::<PostgresServer>().await;
    let mut claim = world.store().pool().begin().await.unwrap();
    claim
        .execute("SELECT fenced.claim('account:42', 34, 'somebody', 'redis')")
        .await
        .unwrap();
    let write = pin!(PostgresServer::add_at_once(world.store(), &old, 42, 1));
    let committed = async {
        world.until_queued(1).await;
        claim.commit().await.unwrap();
    };
    let (refused, ()) = tokio::join!(write, committed);
    assert!(
        matches!(refused, Err(FenceError::Stale { .. })),
        "{refused:?}"
    );
    assert_eq!(balance(&world).await, 100);
}

/// A connection that was left inside a transaction, as its pool would hand it out.
async fn stray(world: &PostgresServer) -> PgPool {
    let pool = world.pool_of_one().await;
    pool.execute(sqlx::raw_sql("BEGIN")).await.unwrap();
    pool
}

#[tokio::test]
async fn a_single_write_on_a_stray_is_not_lost() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let pool = stray(&world).await;
    let store = FencedStore::new(pool.clone());
    PostgresServer::add_at_once(&store, &grant, 42, 1)
        .await
        .unwrap();
    pool.execute("BEGIN").await.unwrap();
    pool.execute("SELECT 1 / 0").await.unwrap_err();
    PostgresServer::add_at_once(&store, &grant, 42, 1)
        .await
        .unwrap();
    pool.close().await;
    assert_eq!(balance(&world).await, 102);
}

/// The statement is complete by then, its commit is not; and the same in a transaction.
#[tokio::test]
async fn a_single_write_that_fails_at_its_commit_has_no_receipt() {
    const DANGLING: &str = "INSERT INTO entries VALUES (43)";
    let (world, grant) = claimed::<PostgresServer>().await;
    let pool = world.store().pool();
    pool.execute(
        "CREATE TABLE entries (account int REFERENCES accounts DEFERRABLE INITIALLY DEFERRED)",
    )
    .await
    .unwrap();
    let single = world.store().begin(&grant).execute(DANGLING).await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    tx.execute(DANGLING).await.unwrap();
    for error in [single.unwrap_err(), tx.commit().await.unwrap_err()] {
        let FenceError::Db { source } = &error else {
            panic!("{error:?}");
        };
        let error = source.as_database_error().unwrap();
        assert!(error.is_foreign_key_violation(), "{error}");
    }
}

/// Its connection breaks while it waits for a row, and it is executed nevertheless, later.
#[tokio::test]
async fn a_single_write_without_an_answer_is_unknown_and_may_come_later() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let (proxy, store) = world.behind_a_proxy().await;
    let mut row = world.store().pool().begin().await.unwrap();
    PostgresServer::add(&mut row, 0).await.unwrap();
    let write = pin!(PostgresServer::add_at_once(&store, &grant, 42, 1));
    let cut = async {
        world.until_waiting_for_a_row().await;
        proxy.inflict(Fault::Cut);
    };
    let (unknown, ()) = tokio::join!(write, cut);
    let error = unknown.unwrap_err();
    assert_kind!(error, CommitUnknown);
    assert!(!error.is_retryable(), "a blind retry could do it twice");
    assert_eq!(balance(&world).await, 100);
    row.rollback().await.unwrap();
    // Drains the work under way.
    world.store().claim(&grant).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// Two would take 0.8 s. The three steps of a transaction are the control.
#[tokio::test]
async fn a_single_write_takes_one_round_trip() {
    const ONE_WAY: Duration = Duration::from_millis(200);
    let (world, grant) = claimed::<PostgresServer>().await;
    let (proxy, store) = world.behind_a_proxy().await;
    PostgresServer::add_at_once(&store, &grant, 42, 1)
        .await
        .unwrap();
    // The pool looks after a connection before it takes it back.
    while store.pool().num_idle() == 0 {
        tokio::task::yield_now().await;
    }
    proxy.inflict(Fault::Delay(ONE_WAY));
    let started = Instant::now();
    PostgresServer::add_at_once(&store, &grant, 42, 1)
        .await
        .unwrap();
    let at_once = started.elapsed();
    assert!(at_once >= 2 * ONE_WAY, "{at_once:?}: the proxy delays");
    assert!(at_once < 4 * ONE_WAY, "{at_once:?}");
    let started = Instant::now();
    let mut tx = store.begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert!(started.elapsed() >= 6 * ONE_WAY);
    assert_eq!(balance(&world).await, 103);
}

/// Catches: a single write that forgets the level.
#[tokio::test]
async fn a_single_write_runs_at_the_isolation_level_of_the_store() {
    let (world, grant) = claimed::<PostgresServer>().await;
    world
        .store()
        .pool()
        .execute("CREATE TABLE levels (level text)")
        .await
        .unwrap();
    let options = PgTxOptions::default().isolation(PgIsolation::Serializable);
    let store = world.store().clone().with_options(options);
    let note = "INSERT INTO levels VALUES (current_setting('transaction_isolation'))";
    store.begin(&grant).execute(note).await.unwrap();
    let level: String = sqlx::query_scalar("SELECT level FROM levels")
        .fetch_one(world.store().pool())
        .await
        .unwrap();
    assert_eq!(level, "serializable");
}
