//! Futures that are dropped. Each time the pool has one connection, whose next user finds what was
//! left behind.

use fenced_store::{FencedStore, MySqlFencedStore};
use lock_core::Sequencer;
use sqlx::{Connection, Executor, MySqlPool};

use crate::{
    rule::{Harness, balance, fresh, grant, poll_and_drop},
    server::MariaDbServer,
};

/// How often to try at most: an answer that is there at once leaves no await to be dropped at.
const TRIES: i64 = 100;

async fn claimed() -> (MariaDbServer, MySqlFencedStore, Sequencer) {
    let world: MariaDbServer = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
    let store = FencedStore::new(world.pool_of_one().await);
    (world, store, grant)
}

async fn add_unfenced(pool: &MySqlPool) {
    MariaDbServer::add(&mut pool.acquire().await.unwrap(), 1)
        .await
        .unwrap();
}

async fn add_fenced(store: &MySqlFencedStore, grant: &Sequencer) {
    let mut tx = store.begin(grant).await.unwrap();
    MariaDbServer::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
}

/// The control. sqlx forgets the transaction that it has begun, and what comes next is lost when
/// its session ends.
#[tokio::test]
async fn naive_begin_that_is_dropped_loses_the_next_write() {
    let (world, store, _) = claimed().await;
    let pool = store.pool();
    let mut connection = pool.acquire().await.unwrap();
    while poll_and_drop(connection.begin(), 1).await {
        // It was begun, and is rolled back here.
        connection.ping().await.unwrap();
    }
    drop(connection);
    add_unfenced(pool).await;
    let connection = pool.acquire().await.unwrap();
    assert!(!connection.is_in_transaction(), "as far as sqlx knows");
    connection.detach().close_hard().await.unwrap();
    assert_eq!(balance(&world).await, 100, "the update said Ok and is gone");
}

#[tokio::test]
async fn begin_can_be_dropped_at_every_await() {
    let (world, store, grant) = claimed().await;
    let mut polls = 0;
    for round in 1..=TRIES {
        let finished = poll_and_drop(async { store.begin(&grant).await }, polls).await;
        add_unfenced(store.pool()).await;
        add_fenced(&store, &grant).await;
        assert_eq!(balance(&world).await, 100 + 2 * round);
        if !finished {
            polls += 1;
        } else if polls > 1 {
            break;
        }
    }
    assert!(polls > 1, "it has an await at which it can be dropped");
    // Nobody holds a lock.
    world
        .impatient()
        .await
        .claim(&crate::rule::grant("account:42", 34))
        .await
        .unwrap();
}

#[tokio::test]
async fn commit_can_be_dropped_at_every_await() {
    let (world, store, grant) = claimed().await;
    let mut polls = 0;
    for _ in 0..TRIES {
        let mut tx = store.begin(&grant).await.unwrap();
        MariaDbServer::add(&mut tx, 1).await.unwrap();
        let finished = poll_and_drop(tx.commit(), polls).await;
        let connection = store.pool().acquire().await.unwrap();
        assert!(
            !connection.is_in_transaction(),
            "dropped after {polls} polls"
        );
        drop(connection);
        let before = balance(&world).await;
        add_unfenced(store.pool()).await;
        add_fenced(&store, &grant).await;
        assert_eq!(balance(&world).await, before + 2);
        if !finished {
            polls += 1;
        } else if polls > 1 {
            break;
        }
    }
    assert!(polls > 1, "it has an await at which it can be dropped");
}

/// It is finished, or was never sent: claimed again, it is claimed.
#[tokio::test]
async fn claim_can_be_dropped_at_every_await() {
    let (world, store, _) = claimed().await;
    let mut polls = 0;
    for round in 1..=TRIES {
        let grant = grant("account:42", 33 + round.unsigned_abs());
        let finished = poll_and_drop(store.claim(&grant), polls).await;
        store.claim(&grant).await.unwrap();
        add_fenced(&store, &grant).await;
        add_unfenced(store.pool()).await;
        assert_eq!(balance(&world).await, 100 + 2 * round);
        if !finished {
            polls += 1;
        } else if polls > 1 {
            break;
        }
    }
    assert!(polls > 1, "it has an await at which it can be dropped");
}

#[tokio::test]
async fn migrate_can_be_dropped_at_every_await() {
    let world = MariaDbServer::unmigrated().await;
    let mut polls = 0;
    while !poll_and_drop(world.store().migrate(), polls).await {
        polls += 1;
    }
    world.store().migrate().await.unwrap();
    let notes = "SELECT * FROM fenced_entered";
    assert!(world.store().pool().execute(notes).await.is_ok());
}
