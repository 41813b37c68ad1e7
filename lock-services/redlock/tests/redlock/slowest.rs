//! A node is slower than the others, so that clients do not wait for its last answers.

use std::time::Duration;

use e2e::{
    observer::{Observer, until},
    proxy::{Fault, Proxy},
    servers::RedlockServers,
};
use lock_core::{
    LockManager, Released, Ttl,
    backend::{Runtime, TokioRuntime},
};

use crate::world::provisioned;

/// The delay of its answers. It is less than an acquire waits for the node.
const LATER: Duration = Duration::from_millis(4);

/// Three new nodes, a proxy that makes the last one the slowest, and a client of them.
async fn with_a_slow_node() -> (RedlockServers, Proxy, LockManager) {
    let servers = provisioned(3).await;
    let [one, other, last] = servers.nodes() else {
        unreachable!("three were started")
    };
    let proxy = Proxy::start(last.url()).await;
    let slow = proxy.url("redis");
    let slow = slow.trim_start_matches("redis://");
    let url = format!(
        "redlock+redis://{},{},{slow}",
        one.address(),
        other.address()
    );
    let locks = palisade::connect(&url).await.unwrap();
    proxy.inflict_on_new(Fault::Delay(LATER / 2));
    proxy.inflict(Fault::Delay(LATER / 2));
    (servers, proxy, locks)
}

/// Waits until the last node takes part in a lease, which means that its lease was raised.
async fn the_last_one_has_part(proxy: &Proxy, locks: &LockManager) {
    // The observer uses the same proxy as the requests, so it comes behind those that were sent
    // before.
    let behind = Observer::of(&proxy.url("redis")).await;
    until("a lease that the slowest node has raised", async || {
        let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
        let lease = behind.text("palisade:redlock:lease:r").await;
        guard.release().await.unwrap();
        let token = lease.as_deref().and_then(|lease| lease.split(':').nth(2));
        token.is_some_and(|token| token != "0")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_slowest_node_is_raised_and_released_although_it_is_not_waited_for() {
    let (servers, proxy, locks) = with_a_slow_node().await;
    for _ in 0..3 {
        the_last_one_has_part(&proxy, &locks).await;
    }
    let slowest = Observer::of(servers.nodes()[2].url()).await;
    until("no lease on the slowest node", async || {
        slowest.keys("palisade:redlock:lease:*").await.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_does_not_wait_for_the_slowest_node() {
    let (_servers, proxy, locks) = with_a_slow_node().await;
    the_last_one_has_part(&proxy, &locks).await;
    let mut least = Duration::MAX;
    for _ in 0..50 {
        let guard = locks.acquire("r").await.unwrap();
        let asked = TokioRuntime.now();
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        least = std::cmp::min(least, TokioRuntime.now().since(asked));
    }
    // Whatever else the machine does, the slow node has not delayed the quickest release.
    assert!(least < LATER, "{least:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_node_that_was_given_up_is_waited_for_again() {
    let (_servers, proxy, locks) = with_a_slow_node().await;
    proxy.inflict(Fault::HoldRequests);
    let guard = locks.acquire("r").await.unwrap();
    guard.release().await.unwrap();
    proxy.let_go();
    proxy.inflict_on_new(Fault::Delay(LATER / 2));
    proxy.inflict(Fault::Delay(LATER / 2));
    the_last_one_has_part(&proxy, &locks).await;
}
