//! Connections that the application left inside a transaction: in sqlx 0.9.0 a dropped `begin`
//! forgets the one it has opened.

use std::{future::poll_fn, pin::pin, task::Poll};

use fenced_store::{FenceError, FencedStore};
use lock_core::Sequencer;
use sqlx::{Executor, PgPool};

use crate::{
    rule::{Harness, balance, fenced_add, fresh, grant, high_water},
    server::PostgresServer,
};

/// Polls a future that often and drops it. Whether it came to its end.
async fn poll_and_drop(future: impl Future, polls: usize) -> bool {
    let mut left = polls;
    let mut future = pin!(future);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// The only connection of the pool, inside a transaction that nobody will end.
async fn stray(world: &PostgresServer) -> PgPool {
    let pool = world.pool_of_one().await;
    let finished = poll_and_drop(pool.begin(), 2).await;
    assert!(
        !finished,
        "the begin waits for its answer at its second poll"
    );
    pool
}

async fn claimed() -> (PostgresServer, Sequencer) {
    let world: PostgresServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    (world, grant)
}

/// The control: the claim joins the transaction that was left open, and ends with it.
#[tokio::test]
async fn naive_claim_on_a_stray_is_lost() {
    let (world, old) = claimed().await;
    let pool = stray(&world).await;
    pool.execute("SELECT fenced.claim('account:42', 34, 'somebody', 'redis')")
        .await
        .unwrap();
    pool.close().await;
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    fenced_add(&world, &old).await.unwrap();
}

#[tokio::test]
async fn claim_on_a_stray_shuts_the_older_holder_out() {
    let (world, old) = claimed().await;
    let pool = stray(&world).await;
    FencedStore::new(pool.clone())
        .claim(&grant("account:42", 34))
        .await
        .unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(34));
    let error = fenced_add(&world, &old).await.unwrap_err();
    assert!(matches!(error, FenceError::Stale { .. }), "{error:?}");
    pool.close().await;
    assert_eq!(high_water(&world, "account:42").await, Some(34));
    assert_eq!(balance(&world).await, 100);
}

/// Its commit would store what somebody else left behind.
#[tokio::test]
async fn begin_on_a_stray_stores_nothing_of_others() {
    let (world, grant) = claimed().await;
    let pool = stray(&world).await;
    pool.execute("UPDATE accounts SET balance = balance + 1000")
        .await
        .unwrap();
    let store = FencedStore::new(pool);
    let mut tx = store.begin(&grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// A stray that a failed statement has aborted already.
#[tokio::test]
async fn an_aborted_stray_is_replaced() {
    let (world, old) = claimed().await;
    let pool = stray(&world).await;
    assert!(pool.execute("SELECT 1 / 0").await.is_err());
    let store = FencedStore::new(pool);
    fenced_add_by(&store, &old).await;
    store.claim(&grant("account:42", 34)).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

#[tokio::test]
async fn migrate_on_a_stray_is_not_lost() {
    let world = PostgresServer::unmigrated().await;
    let pool = stray(&world).await;
    FencedStore::new(pool.clone()).migrate().await.unwrap();
    pool.close().await;
    assert_eq!(high_water(&world, "account:42").await, None);
}

async fn fenced_add_by(store: &fenced_store::PgFencedStore, grant: &Sequencer) {
    let mut tx = store.begin(grant).await.unwrap();
    PostgresServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}
