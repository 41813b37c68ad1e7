//! One node of a cluster, or its replica, does not answer. Requests to other nodes do not wait.

use std::time::Duration;

use e2e::servers::{Redis, RedisCluster, until};
use lock_core::LockManager;
use tokio::time::timeout;

/// More acquires than may be under way at a node at once.
const ACQUIRES: usize = 100;

/// A time that is far less than the 2 s that an answer may take.
const AT_ONCE: Duration = Duration::from_millis(800);

#[tokio::test]
async fn a_node_that_hangs_delays_no_request_to_another() {
    let cluster = RedisCluster::start().await;
    be_patient(&cluster).await;
    let locks = palisade::connect(cluster.url()).await.unwrap();
    let [hung, fine] = of_two_nodes(&cluster, &locks).await;
    let node = &cluster.primaries()[0];
    node.pause().await;
    let acquires = (0..ACQUIRES).map(|number| {
        let (locks, resource) = (locks.clone(), format!("{{{hung}}}:{number}"));
        tokio::spawn(async move { locks.acquire(resource).await.unwrap() })
    });
    let acquires: Vec<_> = acquires.collect();
    // Waits until each acquire has been polled.
    for _ in 0..ACQUIRES {
        tokio::task::yield_now().await;
    }
    let guard = timeout(AT_ONCE, locks.acquire(fine)).await;
    let guard = guard.expect("it waits for a node that it does not ask");
    guard.unwrap().release().await.unwrap();
    node.resume().await;
    for acquire in acquires {
        acquire.await.unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn a_replica_that_hangs_delays_no_wait_for_another() {
    let cluster = RedisCluster::start_with_replicas(&[]).await;
    be_patient(&cluster).await;
    let url = format!("{}?replicas=1&replicas_ms=1900", cluster.url());
    let locks = palisade::connect(url).await.unwrap();
    let [hung, fine] = of_two_nodes(&cluster, &locks).await;
    let (primary, replica) = (&cluster.primaries()[0], &cluster.replicas()[0]);
    replica.pause().await;
    let waiter = locks.clone();
    let waits = tokio::spawn(async move { waiter.acquire(hung).await });
    until("it waits for its replica", || async {
        let info: String = primary.command(&["INFO", "clients"]).await;
        info.contains("blocked_clients:1")
    })
    .await;
    let guard = timeout(AT_ONCE, locks.acquire(fine)).await;
    let guard = guard.expect("it waits for a replica that is not its own");
    guard.unwrap().release().await.unwrap();
    waits.await.unwrap().unwrap_err();
    replica.resume().await;
}

/// Prevents a failover during a test.
async fn be_patient(cluster: &RedisCluster) {
    for node in cluster.primaries().iter().chain(cluster.replicas()) {
        let patient = ["CONFIG", "SET", "cluster-node-timeout", "60000"];
        let () = node.command(&patient).await;
    }
}

/// A resource of the first node, and a resource of another node. Both nodes have had requests
/// before.
async fn of_two_nodes(cluster: &RedisCluster, locks: &LockManager) -> [String; 2] {
    let (mut of_first, mut of_another) = (None, None);
    for number in 0.. {
        let resource = format!("r{number}");
        let guard = locks.acquire(resource.as_str()).await.unwrap();
        let is_there = has_lease(&cluster.primaries()[0], &resource).await;
        guard.release().await.unwrap();
        let place = if is_there {
            &mut of_first
        } else {
            &mut of_another
        };
        place.get_or_insert(resource);
        if let (Some(first), Some(another)) = (&of_first, &of_another) {
            return [first.clone(), another.clone()];
        }
    }
    unreachable!("some resource is of each node")
}

async fn has_lease(node: &Redis, resource: &str) -> bool {
    let pattern = format!("*:lease:{resource}");
    let leases: Vec<String> = node.command(&["KEYS", &pattern]).await;
    !leases.is_empty()
}
