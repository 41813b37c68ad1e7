//! Wall clocks of nodes jump. Leases end early or late, but tokens stay right.

use std::time::Duration;

use e2e::{
    history::History,
    ledger::Ledger,
    servers::{ClockOffset, RedlockServers},
};
use lock_core::{LeaseGuard, LockManager, Ttl};
use tokio::time::timeout;

use crate::world::{Clients, PATIENCE, connect, in_service};

const HOUR: Duration = Duration::from_secs(3600);
const AHEAD: ClockOffset = ClockOffset::Ahead(HOUR);
const BEHIND: ClockOffset = ClockOffset::Behind(HOUR);
const RIGHT: ClockOffset = ClockOffset::Ahead(Duration::ZERO);

async fn servers() -> RedlockServers {
    in_service(
        RedlockServers::start_with_own_clocks(3).await,
        Ttl::secs(60),
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_and_no_client_is_stuck_while_the_clocks_of_two_nodes_jump() {
    let servers = servers().await;
    let clients = Clients::start(&servers.url(), 6).await;
    for jump in [AHEAD, RIGHT, BEHIND, RIGHT, AHEAD, BEHIND, RIGHT] {
        for node in &servers.nodes()[..2] {
            node.set_clock(jump);
        }
        clients.go_on(30).await;
    }
    clients.end().await;
}

/// A lease at all nodes. A lease at a majority is not enough here, and a node that answers late is
/// left out.
async fn held_at_all_nodes(servers: &RedlockServers, locks: &LockManager) -> LeaseGuard {
    for _ in 0..100 {
        let guard = locks.acquire("r").ttl(Ttl::secs(2)).await.unwrap();
        let token = guard.token().to_string();
        let mut nodes = 0;
        for node in servers.nodes() {
            let lease: Option<String> = node.command(&["GET", "palisade:redlock:lease:r"]).await;
            // holder:nonce:token:..
            let has_token = |lease: &String| lease.split(':').nth(2) == Some(&token);
            nodes += usize::from(lease.as_ref().is_some_and(has_token));
        }
        if nodes == servers.nodes().len() {
            return guard;
        }
        guard.release().await.unwrap();
    }
    panic!("some node is always late");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_clock_that_jumps_ends_no_lease() {
    let servers = servers().await;
    let (locks, rival) = (connect(&servers).await, connect(&servers).await);
    let guard = held_at_all_nodes(&servers, &locks).await;
    servers.nodes()[0].set_clock(AHEAD);
    let granted = rival.acquire("r").wait(Duration::from_millis(500)).await;
    assert!(granted.is_err(), "{granted:?}");
    // This is longer than the ttl, so the other two nodes have renewed the lease.
    assert!(timeout(Duration::from_secs(3), guard.lost()).await.is_err());
    guard.release().await.unwrap();
}

/// Redlock rests on clocks, but cannot promise that they are right. The store does not rest on
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clocks_that_jump_make_two_holders_and_the_first_cannot_write() {
    let servers = servers().await;
    let (locks, rival) = (connect(&servers).await, connect(&servers).await);
    let (ledger, history) = (Ledger::default(), History::default());
    let guard = locks
        .acquire("r")
        .ttl(Ttl::secs(30))
        .renew(false)
        .await
        .unwrap();
    let section = ledger.enter(&guard, &history).await;
    for node in &servers.nodes()[..2] {
        node.set_clock(AHEAD);
    }
    let next = timeout(PATIENCE, rival.acquire("r"))
        .await
        .unwrap()
        .unwrap();
    assert!(next.token() > guard.token());
    assert!(guard.remaining().is_ok(), "both believe that they hold it");
    assert!(ledger.enter(&next, &history).await.add(1).await);
    assert!(!section.add(2).await, "a stale write was accepted");
    assert_eq!((ledger.lost(), ledger.lost_from_twin()), (0, 1));
    history.assert_sound();
}
