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
    rule::{Harness, SqlHarness, assert_kind, balance, claimed, grant as other_grant},
};

/// The placeholders of the statement keep their numbers, and its comments and clauses do no harm.
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

/// A part of a statement is refused, and two statements are refused.
#[tokio::test]
async fn what_is_not_one_statement_is_an_error() {
    let (world, grant) = claimed::<PostgresServer>().await;
    for statement in [
        "UPDATE accounts SET balance = 0) SELECT 1 --",
        "UPDATE accounts SET balance = 0; UPDATE accounts SET balance = 1",
        "UPDATE accounts SET balance = 0 /*",
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

/// Catches: a statement that ends the transaction in which its grant was checked, and is stored in
/// another one.
#[tokio::test]
async fn a_statement_that_ends_its_transaction_has_no_receipt() {
    let (world, grant) = claimed::<PostgresServer>().await;
    for end in ["COMMIT", "ROLLBACK", "-- a write\nCOMMIT"] {
        let error = world.store().begin(&grant).execute(end).await.unwrap_err();
        assert_kind!(error, Aborted, "{end}");
    }
    let emptied = world.store().begin(&grant).execute("TRUNCATE accounts");
    emptied.await.unwrap();
    let stale = other_grant("account:42", 32);
    let stale = world.store().begin(&stale).execute("TRUNCATE accounts");
    let refused = stale.await.unwrap_err();
    assert!(refused.is_fenced(), "{refused:?}");
}

/// sqlx keeps prepared statements by their text. The test has one connection.
/// Catches: a fence that is missing because the text was prepared without it.
#[tokio::test]
async fn the_same_statement_with_and_without_a_fence_does_not_mix() {
    let (world, grant) = claimed::<PostgresServer>().await;
    let pool = world.pool_of_one().await;
    let store = FencedStore::new(pool.clone());
    let stale = other_grant("account:42", 32);
    let add =
        || sqlx::query("UPDATE accounts SET balance = balance + $1 WHERE id = 42").bind(1_i64);
    for _ in 0..3 {
        assert_eq!(add().execute(&pool).await.unwrap().rows_affected(), 1);
        let done = store.begin(&grant).execute(add()).await.unwrap();
        assert_eq!(done.rows_affected(), 1);
        let refused = store.begin(&stale).execute(add()).await.unwrap_err();
        assert!(refused.is_fenced(), "{refused:?}");
    }
    assert_eq!(balance(&world).await, 106);
}

/// To the planner, reading the whole table seems cheaper if the table has few pages.
/// Catches: a check whose cost grows with the number of marks.
#[tokio::test]
async fn a_mark_is_found_by_its_index_among_a_few() {
    let (world, grant) = claimed::<PostgresServer>().await;
    for other in 1..=9 {
        let other = other_grant(&format!("account:{other}"), 33);
        world.store().claim(&other).await.unwrap();
    }
    let pool = world.store().pool();
    pool.execute("ANALYZE fenced.high_water_mark")
        .await
        .unwrap();
    // The counts of a session, before it has reported any.
    let store = FencedStore::new(world.pool_of_one().await);
    let mut tx = store.begin(&grant).await.unwrap();
    let scans: (i64, i64) = sqlx::query_as(
        "SELECT seq_scan, idx_scan FROM pg_stat_xact_all_tables
         WHERE relid = 'fenced.high_water_mark'::regclass",
    )
    .fetch_one(&mut *tx)
    .await
    .unwrap();
    assert_eq!(scans, (0, 1));
    tx.commit().await.unwrap();
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

/// The statement has succeeded, but its commit fails. The same happens in a transaction.
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

/// The connection breaks while the statement waits for a row. The statement is executed later
/// nevertheless.
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
    // Waits until the work under way has ended.
    world.store().claim(&grant).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// Two round trips would take 4 s. The three steps of a transaction are the control.
#[tokio::test]
async fn a_single_write_takes_one_round_trip() {
    const ONE_WAY: Duration = Duration::from_secs(1);
    let (world, grant) = claimed::<PostgresServer>().await;
    let (proxy, store) = world.behind_a_proxy().await;
    PostgresServer::add_at_once(&store, &grant, 42, 1)
        .await
        .unwrap();
    // The pool checks a connection before it takes it back.
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

/// Catches: a single write that forgets the isolation level.
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
