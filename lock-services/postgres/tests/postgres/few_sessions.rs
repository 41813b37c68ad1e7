//! A PgBouncer with fewer sessions than waiting clients. It is replaced during the test.

use std::time::Duration;

use e2e::servers::{PgBouncer, PoolMode, until};
use lock_core::{FencingToken, LockManager, Ttl};
use sqlx::PgPool;
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use crate::world::{count, database, manager};

const PATIENCE: Duration = Duration::from_secs(20);

/// There are so few sessions that the requests of the waiters have to wait for each other. A waiter
/// uses no session while it waits, so it takes none from the holder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_clients_wait_than_the_pooler_has_sessions_and_a_new_pooler_loses_no_turn() {
    const SESSIONS: &str = "default_pool_size = 2";
    const WAITERS: i64 = 8;
    let database = database().await;
    let settings = [SESSIONS];
    let pooler = PgBouncer::start_with(&database, PoolMode::Transaction, &settings).await;
    let url = pooler.url(&database);
    let pool = PgPool::connect(database.url()).await.unwrap();
    let waiting = "select count(*) from fenced.waiter";
    let first = manager(&url)
        .await
        .acquire("r")
        .ttl(Ttl::secs(60))
        .await
        .unwrap();
    let (told, mut turns) = mpsc::unbounded_channel();
    let mut waiters = JoinSet::new();
    for number in 0..WAITERS {
        // Each waiter has a client of its own, which looks for this waiter only.
        let (locks, told) = (manager(&url).await, told.clone());
        waiters.spawn(async move { told.send((number, has_a_turn(&locks).await)).unwrap() });
        until("it waits", async || {
            count(&pool, waiting).await == number + 1
        })
        .await;
    }
    let mut last = first.token();
    first.release().await.unwrap();
    let mut order = Vec::new();
    for turn in 0..WAITERS {
        let next = timeout(PATIENCE, turns.recv()).await;
        let (number, token) = next.expect("no waiter has a turn").unwrap();
        assert!(token > last, "{token} after {last}");
        last = token;
        order.push(number);
        if turn == WAITERS / 2 {
            pooler.restart().await;
        }
    }
    waiters.join_all().await;
    println!("{order:?}");
    // A busy machine may keep a waiter silent for too long while there is no pooler.
    let before = usize::try_from(WAITERS / 2).unwrap();
    assert!(order[..=before].is_sorted(), "{order:?}");
    order.sort_unstable();
    assert_eq!(order, (0..WAITERS).collect::<Vec<_>>());
}

async fn has_a_turn(locks: &LockManager) -> FencingToken {
    let guard = locks.acquire("r").ttl(Ttl::secs(2)).await.unwrap();
    let token = guard.token();
    // If there is no answer, the release may be lost. Then the lease ends by its ttl.
    drop(guard.release().await);
    token
}
