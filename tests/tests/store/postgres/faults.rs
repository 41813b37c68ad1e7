//! A database that refuses, that gives up, or that has lost data.

use std::time::Duration;

use fenced_store::{FenceError, FencedLocks, FencedStore, PgIsolation, PgTxOptions};
use sqlx::{AssertSqlSafe, Executor, postgres::PgPoolOptions};

use crate::{
    postgres::server::PostgresServer,
    rule::{
        Harness, SqlHarness, assert_kind, balance, claimed, fenced_add, fresh, grant, high_water,
    },
};

/// The server is a primary that was made read-only, or a standby: no grant is refused permanently,
/// and no write is accepted.
#[tokio::test]
async fn a_read_only_server_accepts_nothing() {
    let (world, old) = claimed::<PostgresServer>().await;
    let new = grant("account:42", 34);
    let settings = [("default_transaction_read_only", "on")];
    let read_only = world.store_with(&settings).await;
    for error in [
        read_only.claim(&new).await.unwrap_err(),
        read_only.begin(&old).await.unwrap_err(),
        read_only.settle(&old).await.unwrap_err(),
    ] {
        // The name of this server may soon lead to another server.
        match error {
            FenceError::Busy { source } => {
                assert!(source.to_string().contains("read-only"), "{source}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    fenced_add(&world, &old).await.unwrap();
}

#[tokio::test]
async fn a_statement_that_takes_too_long_ends_the_transaction() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    let options = PgTxOptions::default().statement_timeout(Some(Duration::from_millis(100)));
    let store = world.store().clone().with_options(options);
    store.claim(&grant).await.unwrap();
    let mut tx = store.begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    let error: FenceError = tx.execute("SELECT pg_sleep(60)").await.unwrap_err().into();
    assert_kind!(error, Terminated);
    let error = tx.commit().await.unwrap_err();
    assert_kind!(error, Aborted);
    assert_eq!(balance(&world).await, 100);
}

/// All connections are taken, for example by the holder's own transactions.
#[tokio::test]
async fn an_exhausted_pool_is_busy() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(3)); // to connect, too
    let store = FencedStore::new(pool.connect(world.url()).await.unwrap());
    store.claim(&grant).await.unwrap();
    let open = store.begin(&grant).await.unwrap();
    let (claimed, begun, settled, looked) = tokio::join!(
        store.claim(&grant),
        store.begin(&grant),
        store.settle(&grant),
        store.high_water(grant.resource()),
    );
    for error in [
        claimed.unwrap_err(),
        begun.unwrap_err(),
        settled.unwrap_err(),
        looked.unwrap_err(),
    ] {
        assert_kind!(error, Busy);
        assert!(error.is_retryable());
    }
    open.commit().await.unwrap();
    store.begin(&grant).await.unwrap().commit().await.unwrap();
}

/// At this isolation level the fence works, and so does the level itself: of two transactions that
/// change one row, one fails.
#[tokio::test]
async fn a_clash_of_two_transactions_of_one_holder_is_retryable() {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    let options = PgTxOptions::default().isolation(PgIsolation::RepeatableRead);
    let store = world.store().clone().with_options(options);
    store.claim(&grant).await.unwrap();
    let mut late = store.begin(&grant).await.unwrap();
    fenced_add(&world, &grant).await.unwrap();
    let error: FenceError = PostgresServer::add(&mut late, 1).await.unwrap_err();
    assert_kind!(error, Serialization);
    assert!(error.is_retryable() && !error.is_fenced());
    late.rollback().await.unwrap();

    let mut again = store.begin(&grant).await.unwrap();
    PostgresServer::add(&mut again, 1).await.unwrap();
    again.commit().await.unwrap();
    assert_eq!(balance(&world).await, 102);
}

/// This is the state after a failover that lost the claim, or after a restore from a backup. If
/// `begin` claimed again, a holder could write although later holders may have followed.
#[tokio::test]
async fn a_mark_that_is_gone_or_was_set_back_shuts_its_holder_out() {
    for damage in [
        "DELETE FROM fenced.high_water_mark",
        "UPDATE fenced.high_water_mark SET token = 1",
        "UPDATE fenced.high_water_mark SET token = token - 1, holder = repeat('a', 64)",
    ] {
        let world: PostgresServer = fresh().await;
        let locks = palisade::connect("memory:").await.unwrap();
        let accounts = FencedLocks::new(locks, world.store().clone());
        let guard = accounts.acquire("account:42").await.unwrap();
        guard.begin().await.unwrap().rollback().await.unwrap();
        let pool = world.store().pool();
        pool.execute(AssertSqlSafe(damage)).await.unwrap();
        let before = world.dump().await;
        for _ in 0..2 {
            let error = guard.begin().await.unwrap_err();
            assert_kind!(error, MarkLost, "{damage}");
            assert!(error.is_fenced());
        }
        assert_eq!(world.dump().await, before, "{damage}: nothing was claimed");
    }
}
