//! A future that is dropped leaves nothing in the database: no lease, and no waiter.

use std::{future::IntoFuture, time::Duration};

use e2e::servers::until;
use lock_core::{LockManager, Ttl};
use lock_testing::DropAt;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::world::{count, database, manager};

const TTL: Ttl = Ttl::secs(600);
const PATIENCE: Duration = Duration::from_secs(20);

/// Polls an acquire up to this await and drops it. Returns true if it completed.
async fn is_granted_before(locks: &LockManager, number: usize) -> bool {
    let acquire = locks.acquire("r").ttl(TTL);
    let guard = DropAt::waiting(number).poll(acquire).await;
    guard.map(Result::unwrap).is_some()
}

#[tokio::test]
async fn an_acquire_dropped_at_any_await_leaves_nothing_in_postgres() {
    const LEFT: &str = "select (select count(*) from fenced.lease where holder <> '')
        + (select count(*) from fenced.waiter)";
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let locks = manager(database.url()).await;
    for contended in [false, true] {
        let mut times = 1;
        loop {
            let holder = if contended {
                Some(locks.acquire("r").ttl(TTL).await.unwrap())
            } else {
                None
            };
            // A waiter does not complete. It is dropped after this number of wake-ups, or after the
            // time is over.
            let polled = timeout(Duration::from_secs(2), is_granted_before(&locks, times)).await;
            let at = format!("contended: {contended}, dropped at poll {times}");
            let left = i64::from(contended);
            until(&at, async || count(&pool, LEFT).await == left).await;
            if let Some(holder) = holder {
                holder.release().await.unwrap();
            }
            let next = timeout(PATIENCE, locks.acquire("r").ttl(TTL).into_future()).await;
            let next = next.expect("somebody is in the way").unwrap();
            next.release().await.unwrap();
            if polled != Ok(false) {
                break;
            }
            times += 1;
        }
        assert!(times > 1, "it had hardly begun");
    }
}
