//! An acquire that is dropped at any await, or gets no lease, leaves no lease on any node.

use std::time::Duration;

use e2e::{
    observer::{Observer, until},
    proxy::{Fault, Proxy, Trap},
    servers::RedlockServers,
};
use lock_core::{Attempt, LeaseGuard, LockManager, Ttl};
use lock_testing::DropAt;

use crate::{
    restarts::logging,
    world::{connect, provisioned},
};

/// A ttl that is longer than any test here. A lease that is gone during a test was given back.
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

/// Polls an acquire up to this await. Returns the guard, if it was granted by then.
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
        // On a busy machine all answers may have arrived at the first await.
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

/// A client that reaches the last node through this proxy.
async fn through(proxy: &Proxy, servers: &RedlockServers) -> LockManager {
    let [one, other, _] = servers.nodes() else {
        unreachable!("three were started")
    };
    let (one, other, port) = (one.address(), other.address(), proxy.port());
    let url = format!("redlock+redis://{one},{other},127.0.0.1:{port}");
    palisade::connect(&url).await.unwrap()
}

/// Runs an acquire up to this moment: another client has the first two nodes, and the last node has
/// run the request. The fault holds back the answer of the last node, and all later requests to it,
/// until the node is started again, with its data. In the end no node has a lease.
async fn the_last_node_is_restarted_after(
    fault: Fault,
    acquire: impl AsyncFnOnce(LockManager, Trap),
) {
    let servers = logging("always", LONG).await;
    let last = &servers.nodes()[2];
    let (absent, proxy) = (
        Proxy::start(last.url()).await,
        Proxy::start(last.url()).await,
    );
    absent.inflict_on_new(Fault::BlackHole);
    let rival = through(&absent, &servers).await;
    let locks = through(&proxy, &servers).await;
    // The client is connected to all nodes.
    let guard = locks.acquire("other").await.unwrap();
    guard.release().await.unwrap();
    let guard = rival.acquire("r").ttl(LONG).await.unwrap();
    proxy.inflict_on_new(fault);
    let lost = proxy.at_reply_to("lease:r", fault);
    acquire(locks.clone(), lost).await;
    let observer = Observer::of(last.url()).await;
    let lease = async || observer.text("palisade:redlock:lease:r").await;
    until("its lease", async || lease().await.is_some()).await;
    last.restart().await;
    proxy.inflict(Fault::Cut);
    proxy.let_go();
    guard.release().await.unwrap();
    no_node_has_a_lease(&servers).await;
}

async fn held(locks: LockManager, lost: Trap) {
    let told = locks.acquire("r").ttl(LONG).try_acquire().await.unwrap();
    assert!(matches!(told, Attempt::Held { .. }), "{told:?}");
    assert!(lost.has_sprung());
}

/// Catches: the end of an attempt is sent only once, to a node that is just started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_gets_held_leaves_no_lease_on_a_node_that_was_restarted_with_its_data() {
    the_last_node_is_restarted_after(Fault::BlackHole, held).await;
}

/// Catches: a node that cannot be reached counts as a node without a lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_gets_held_leaves_no_lease_on_a_node_that_was_out_of_reach() {
    the_last_node_is_restarted_after(Fault::Reset, held).await;
}

/// Catches: the end of an attempt that was dropped is sent only once, to a node that is just
/// started again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_that_is_dropped_leaves_no_lease_on_a_node_that_was_restarted_with_its_data() {
    the_last_node_is_restarted_after(Fault::BlackHole, async |locks, lost: Trap| {
        let acquire = locks.acquire("r").ttl(LONG).into_future();
        let sent = until("its request has run", async || lost.has_sprung());
        tokio::select! {
            biased;
            acquired = acquire => panic!("{acquired:?}"),
            () = sent => {}
        }
    })
    .await;
}
