//! An acquire that is dropped at any await leaves no lease on any node.

use std::time::Duration;

use e2e::{
    observer::{Observer, until},
    servers::RedlockServers,
};
use lock_core::{Attempt, LeaseGuard, LockManager, Ttl};
use lock_testing::DropAt;

use crate::world::{connect, provisioned};

/// Longer than any test waits here: a lease that is gone by then was given back.
const LONG: Ttl = Ttl::secs(60);

async fn no_node_has_a_lease(servers: &RedlockServers) {
    for node in servers.nodes() {
        let observer = Observer::of(node.url()).await;
        until("no lease on any node", async || {
            observer.keys("palisade:redlock:lease:*").await.is_empty()
        })
        .await;
    }
}

/// Polls an acquire up to that await. The guard, if it got that far.
async fn polled(locks: &LockManager, number: usize) -> Option<LeaseGuard> {
    let acquire = locks.acquire("r").ttl(LONG);
    DropAt::waiting(number)
        .poll(acquire)
        .await
        .map(Result::unwrap)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_is_dropped_at_any_await_leaves_no_lease_on_any_node() {
    for count in [3, 5] {
        let servers = provisioned(count).await;
        let locks = connect(&servers).await;
        let mut most = 1;
        // On a busy machine all answers may be there at the first await.
        for _ in 0..5 {
            let mut times = 1;
            while polled(&locks, times).await.is_none() {
                no_node_has_a_lease(&servers).await;
                times += 1;
                assert!(times < 1000, "it never completes");
            }
            no_node_has_a_lease(&servers).await;
            most = std::cmp::max(most, times);
        }
        assert!(most > 2, "it has more than one await");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_gets_held_or_gives_up_leaves_no_lease_on_any_node() {
    let servers = provisioned(3).await;
    let (locks, rival) = (connect(&servers).await, connect(&servers).await);
    let guard = locks.acquire("r").ttl(LONG).await.unwrap();
    let told = rival.try_acquire("r").await.unwrap();
    assert!(matches!(told, Attempt::Held { .. }), "{told:?}");
    let late = rival.acquire("r").wait(Duration::from_millis(300)).await;
    assert!(late.is_err());
    guard.release().await.unwrap();
    no_node_has_a_lease(&servers).await;
}
