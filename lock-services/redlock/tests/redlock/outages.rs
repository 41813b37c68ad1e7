//! Nodes that are down or do not answer.

use std::time::Duration;

use e2e::{idle::nothing_is_noticed, waits::ends_when_it_says};
use lock_core::{
    ErrorKind, Outcome, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::time::timeout;

use crate::world::{Clients, PATIENCE, connect, cycle, provisioned};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_minority_down_or_silent_it_goes_on() {
    let servers = provisioned(5).await;
    let clients = Clients::start(&servers.url(), 4).await;
    clients.go_on(30).await;
    servers.nodes()[1].pause().await;
    clients.go_on(30).await;
    servers.nodes()[3].kill().await;
    clients.go_on(30).await;
    servers.nodes()[1].resume().await;
    clients.go_on(30).await;
    clients.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_comes_while_a_node_is_down_is_served() {
    let servers = provisioned(3).await;
    servers.nodes()[0].kill().await;
    let locks = connect(&servers).await;
    cycle(&locks, "r").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_hangs_costs_its_clients_a_moment_and_not_its_timeout_each_time() {
    const CYCLES: u32 = 40;
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    cycle(&locks, "warm-up").await;
    servers.nodes()[2].pause().await;
    let began = TokioRuntime.now();
    for _ in 0..CYCLES {
        cycle(&locks, "r").await;
    }
    let each = TokioRuntime.now().since(began) / CYCLES;
    // Nodes have 250 ms to answer, and a cycle asks them twice.
    assert!(each < Duration::from_millis(200), "{each:?}");
    servers.nodes()[2].resume().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_majority_silent_it_is_unavailable_and_recovers() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    let held = locks.acquire("held").ttl(Ttl::secs(2)).await.unwrap();
    for node in &servers.nodes()[1..] {
        node.pause().await;
    }
    let acquire = locks.acquire("r").wait(Duration::from_secs(1));
    let refused = timeout(PATIENCE, acquire).await.unwrap();
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    let text = error.to_string();
    assert!(text.contains("of 3 nodes"), "{text}");
    for silent in &servers.nodes()[1..] {
        assert!(text.contains(silent.address()), "{text}");
    }
    let refused = timeout(PATIENCE, locks.try_acquire("r")).await.unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
    // The lease cannot be renewed, and its holder learns that without the nodes.
    timeout(PATIENCE, held.lost()).await.unwrap();
    for node in &servers.nodes()[1..] {
        node.resume().await;
    }
    let guard = timeout(PATIENCE, locks.acquire("r"))
        .await
        .unwrap()
        .unwrap();
    assert!(guard.token() > held.token());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_majority_that_came_back_empty_grants_nothing_and_says_so() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    cycle(&locks, "r").await;
    for node in &servers.nodes()[..2] {
        node.restart_empty().await;
    }
    let refused = timeout(PATIENCE, locks.acquire("r")).await.unwrap();
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("uninitialised"), "{error}");
}

#[tokio::test]
async fn connections_that_were_closed_while_idle_are_not_noticed() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    nothing_is_noticed(&locks, async || {
        for node in servers.nodes() {
            let _killed: u64 = node.command(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_wait_ends_when_it_says_although_nodes_are_silent_or_down() {
    let servers = provisioned(3).await;
    let locks = connect(&servers).await;
    for node in servers.nodes() {
        node.pause().await;
    }
    ends_when_it_says(&locks).await;
    for node in servers.nodes() {
        node.resume().await;
        node.kill().await;
    }
    ends_when_it_says(&locks).await;
}
