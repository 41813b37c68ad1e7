//! A node loses its state, and is taken in again.

use std::sync::Arc;

use e2e::{
    observer::Observer,
    servers::{RedlockServers, until},
};
use lock_core::{Attempt, ErrorKind, LeaseGuard, Ttl, backend::TokioRuntime};
use palisade_redlock::{NodeState, RedlockNodes};

use crate::world::{
    SHORT, connect, cycle, heal, heal_until_it_waits, in_service, provisioned, states,
};

const COUNTERS: &str = "palisade:redlock:counter:*";
const LEASES: &str = "palisade:redlock:lease:*";

async fn keys(servers: &RedlockServers, node: usize, pattern: &str) -> usize {
    let observer = Observer::of(servers.nodes()[node].url()).await;
    observer.keys(pattern).await.len()
}

/// A lease on "r" that only node 1 knows. Node 2 never got it, and node 0 has forgotten it.
async fn forgotten_by_all_but_node_1(longest: Ttl) -> (RedlockServers, LeaseGuard) {
    let servers = in_service(RedlockServers::start(3).await, longest).await;
    servers.nodes()[2].pause().await;
    // A client without a connection to node 2, so no request of its acquire is under way to that
    // node.
    let locks = connect(&servers).await;
    let acquire = locks.acquire("r").ttl(longest).renew(false);
    let guard = acquire.await.unwrap();
    servers.nodes()[2].resume().await;
    servers.nodes()[0].restart_empty().await;
    heal_until_it_waits(&servers, 0).await;
    for (node, leases) in [0, 1, 0].into_iter().enumerate() {
        assert_eq!(keys(&servers, node, LEASES).await, leases, "node {node}");
    }
    (servers, guard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_forgot_a_lease_grants_none_before_the_longest_one_is_over() {
    let (servers, guard) = forgotten_by_all_but_node_1(Ttl::secs(60)).await;
    let rival = connect(&servers).await;
    let assert_held = async || {
        let told = rival.try_acquire("r").await.unwrap();
        assert!(matches!(told, Attempt::Held { .. }), "{told:?}");
    };
    assert_eq!(keys(&servers, 0, COUNTERS).await, 1);
    // Only the wait for a lease from before its loss keeps node 0 from granting "r".
    for _ in 0..5 {
        assert_held().await;
    }
    servers.nodes()[1].kill().await;
    let told = rival.try_acquire("r").await.unwrap_err().to_string();
    assert!(told.contains("being healed"), "{told}");
    assert!(guard.remaining().is_ok());
}

/// The control: if leases are short, the same two nodes soon grant it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_forgot_a_lease_grants_again_after_the_longest_one() {
    let (servers, guard) = forgotten_by_all_but_node_1(Ttl::secs(6)).await;
    let rival = connect(&servers).await;
    let look = async || rival.acquire("r").ttl(SHORT).try_acquire().await;
    assert!(heal(&servers, 0).await.unwrap());
    servers.nodes()[1].kill().await;
    until("granted by nodes 0 and 2", async || {
        let granted = look().await.ok();
        let granted = granted.and_then(Attempt::granted);
        granted.is_some_and(|next| next.token() > guard.token())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_few_nodes_that_know_the_issued_tokens_heal_no_other() {
    let servers = provisioned(3).await;
    cycle(&connect(&servers).await, "r").await;
    for node in &servers.nodes()[..2] {
        node.restart_empty().await;
    }
    let error = heal(&servers, 0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(states(&servers).await[0], NodeState::Uninitialised);
}

async fn assert_started_again(servers: &RedlockServers) {
    let refused = match palisade::connect(servers.url()).await {
        Ok(locks) => locks.try_acquire("r2").await.unwrap_err(),
        Err(error) => error,
    };
    assert!(refused.to_string().contains("started again"), "{refused}");
}

/// The run of the server is not the run in the marker, as if its log had lost its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_started_again_serves_only_if_it_loses_nothing() {
    const MARKER: &str = "palisade:redlock:node";
    let servers = provisioned(3).await;
    cycle(&connect(&servers).await, "r").await;
    let node = &servers.nodes()[0];
    let marker: String = node.command(&["GET", MARKER]).await;
    let (incarnation, _) = marker.rsplit_once(':').unwrap();
    let of_another_run = format!("{incarnation}:0123456789");
    drop::<String>(node.command(&["SET", MARKER, &of_another_run]).await);

    // Without this node there is no majority.
    servers.nodes()[1].kill().await;
    assert_started_again(&servers).await;
    assert_eq!(states(&servers).await[0], NodeState::Restarted);

    for (name, value) in [("appendonly", "yes"), ("appendfsync", "always")] {
        drop::<String>(node.command(&["CONFIG", "SET", name, value]).await);
    }
    // The server writes its log before it answers only now. Its last run, which may have lost its
    // end, did not.
    assert_started_again(&servers).await;

    let of_a_durable_run = format!("{of_another_run}+");
    drop::<String>(node.command(&["SET", MARKER, &of_a_durable_run]).await);
    let locks = connect(&servers).await;
    cycle(&locks, "r2").await;
    assert_eq!(states(&servers).await[0], NodeState::Serving);
    let marker: String = node.command(&["GET", MARKER]).await;
    assert!(
        marker.ends_with('+') && marker != of_a_durable_run,
        "{marker}"
    );

    drop::<String>(
        node.command(&["CONFIG", "SET", "appendfsync", "everysec"])
            .await,
    );
    cycle(&connect(&servers).await, "r2").await;
    let marker: String = node.command(&["GET", MARKER]).await;
    assert!(
        !marker.ends_with('+'),
        "the promise is taken back: {marker}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_replaced_and_tokens_rise() {
    let servers = in_service(RedlockServers::start(3).await, SHORT).await;
    let new = e2e::servers::Redis::start().await;
    let locks = connect(&servers).await;
    let token = cycle(&locks, "r").await;

    let old = servers.operated();
    old.retire(servers.nodes()[0].address()).await.unwrap();
    assert_eq!(states(&servers).await[0], NodeState::Retired);
    let error = heal(&servers, 0).await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Refused,
        "retired is for good: {error}"
    );

    let others = [
        new.address(),
        servers.nodes()[1].address(),
        servers.nodes()[2].address(),
    ];
    let url = format!("redlock+redis://{}", others.join(","));
    let nodes = RedlockNodes::new(&url, Arc::new(TokioRuntime));
    let healed = nodes.unwrap().heal(new.address(), |_| {}).await;
    assert!(healed.unwrap());
    let replaced = palisade::connect(&url).await.unwrap();
    servers.nodes()[1].kill().await;
    let after = cycle(&replaced, "r").await;
    assert!(after > token, "{after} and {token}");
}
