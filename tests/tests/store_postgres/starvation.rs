//! A claim while many connections of the older holder begin one transaction after the other, alive
//! and deposed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::servers::until;
use fenced_store::{PgFencedStore, PgTxOptions};
use sqlx::{Executor, PgPool};
use tokio::task::JoinSet;

use crate::{
    rule::{Harness, fresh, grant},
    server::PostgresServer,
};

const CONNECTIONS: u64 = 16;

/// How long each transaction of the older holder lasts.
const TRANSACTION: Duration = Duration::from_millis(20);

/// How many transactions may begin while a claim is under way: those that were about to when it was
/// sent, a few times over because the machine is busy with other tests.
const A_FEW: u64 = 4 * CONNECTIONS;

/// When the control gives up, after hundreds of transactions.
const PATIENCE: Duration = Duration::from_secs(3);

/// Counts the transactions that have begun.
type Begun = Arc<AtomicU64>;

/// Until all connections are at work.
async fn until_busy(begun: &Begun) {
    until("all connections have begun transactions", async || {
        begun.load(Ordering::Relaxed) > 2 * CONNECTIONS
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_connections_of_the_older_holder_do_not_hold_a_claim_up() {
    let world: PostgresServer = fresh().await;
    let (old, new) = (grant("account:42", 33), grant("account:42", 34));
    let patient = PgTxOptions::default()
        .lock_timeout(Some(Duration::from_secs(60)))
        .terminate_older(false);
    let store: PgFencedStore = world.store_of_many().await.with_options(patient);
    store.claim(&old).await.unwrap();

    let begun = Begun::default();
    let mut older = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (store, old, begun) = (store.clone(), old.clone(), Arc::clone(&begun));
        older.spawn(async move {
            // Until it is told that it is stale.
            while let Ok(tx) = store.begin(&old).await {
                begun.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(TRANSACTION).await;
                tx.commit().await.unwrap();
            }
        });
    }
    until_busy(&begun).await;
    let before = begun.load(Ordering::Relaxed);
    world.store().claim(&new).await.unwrap();
    let overtaken = begun.load(Ordering::Relaxed) - before;
    assert!(overtaken <= A_FEW, "{overtaken} transactions came first");
    assert_eq!(older.join_all().await.len() as u64, CONNECTIONS);
}

/// The control: with FOR SHARE alone, the row is never free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn naive_claim_of_a_row_that_is_share_locked_waits_for_ever() {
    let world: PostgresServer = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    let pool = world.store_of_many().await.pool().clone();
    let begun = Begun::default();
    let mut older = JoinSet::new();
    for _ in 0..CONNECTIONS {
        older.spawn(naive_holder(pool.clone(), Arc::clone(&begun)));
    }
    until_busy(&begun).await;
    let before = begun.load(Ordering::Relaxed);
    let naive = sqlx::raw_sql("UPDATE fenced.mark SET token = 34 WHERE token = 33");
    let claim = naive.execute(world.store().pool());
    // Whether it gets through after all is up to chance.
    drop(tokio::time::timeout(PATIENCE, claim).await);
    let overtaken = begun.load(Ordering::Relaxed) - before;
    older.shutdown().await;
    assert!(
        overtaken > A_FEW,
        "the trap is gone: {overtaken} came first"
    );
}

/// What `enter` would be without the turnstile.
async fn naive_holder(pool: PgPool, begun: Begun) {
    loop {
        let mut tx = pool.begin().await.unwrap();
        tx.execute("SELECT FROM fenced.mark WHERE token = 33 FOR SHARE")
            .await
            .unwrap();
        begun.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(TRANSACTION).await;
        tx.commit().await.unwrap();
    }
}
