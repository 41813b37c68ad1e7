//! A client at a node that is far from its leader.

use std::time::Duration;

use e2e::{proxy::Fault, servers::Etcd};
use lock_core::backend::{LockBackend, Renewed, Runtime, TokioRuntime};

use crate::{
    remembered::acquired,
    world::{backend, prefix},
};

/// The delay on the way from one node to another. A node forwards the keep-alives of a stream one
/// after the other, and waits for each answer: fifty of them take 5 s, more than the response
/// timeout.
const AWAY: Duration = Duration::from_millis(50);

/// Catches: keep-alives that wait for each other at a node that is not the leader.
#[tokio::test]
async fn a_node_far_from_its_leader_renews_many_leases_in_time() {
    let (server, proxies) = Etcd::start_cluster_behind_proxies().await;
    let leader = server.leader().await;
    let follower = server.addresses()[(leader + 1) % proxies.len()];
    let backend = backend(&format!("etcd://{follower}"), &prefix()).await;
    let leases = acquired(&backend).await;
    for proxy in &proxies {
        proxy.inflict(Fault::Delay(AWAY));
        proxy.inflict_on_new(Fault::Delay(AWAY));
    }
    let asked = TokioRuntime.now();
    let renewed = backend.renew(&leases).await;
    let took = TokioRuntime.now().since(asked);
    assert_eq!(server.leader().await, leader, "another node leads");

    for renewed in renewed {
        assert!(matches!(renewed, Ok(Renewed::Renewed(_))), "{renewed:?}");
    }
    assert!(took > 4 * AWAY, "the nodes are not far from each other");
}
