//! The server that has the shard now pushes grants to waiters.

use std::time::Duration;

use e2e::servers::{RedisCluster, RedisWithSentinels, until};
use lock_core::{
    LockManager, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};

use crate::topologies::world::{RESOURCE, Servers};

const HANDOFFS: u32 = 20;

/// The longest average hand-off with pushes. Waiters that only poll look every 300 ms, which takes
/// twice as long on average.
const BY_PUSH: Duration = Duration::from_millis(75);

#[tokio::test]
async fn waiters_are_pushed_to_before_and_after_a_sentinel_failover() {
    let servers = Servers::Sentinel(RedisWithSentinels::start().await);
    let (holder, waiter) = clients(&servers).await;
    until_pushed(&holder, &waiter).await;
    let Servers::Sentinel(sentinel) = &servers else {
        unreachable!()
    };
    sentinel.fail_over_as_planned().await;
    until_pushed(&holder, &waiter).await;
}

#[tokio::test]
async fn waiters_are_pushed_to_before_and_after_a_cluster_failover() {
    let servers = Servers::Cluster(RedisCluster::start_with_replicas(&[]).await);
    let (holder, waiter) = clients(&servers).await;
    until_pushed(&holder, &waiter).await;
    let Servers::Cluster(cluster) = &servers else {
        unreachable!()
    };
    for replica in cluster.replicas() {
        let () = replica.command(&["CLUSTER", "FAILOVER"]).await;
        until("the replica takes over", || replica.is_primary()).await;
    }
    until_pushed(&holder, &waiter).await;
}

#[tokio::test]
async fn waiters_are_pushed_to_before_and_after_a_slot_has_moved() {
    let servers = Servers::Cluster(RedisCluster::start().await);
    let (holder, waiter) = clients(&servers).await;
    until_pushed(&holder, &waiter).await;
    let Servers::Cluster(cluster) = &servers else {
        unreachable!()
    };
    let mut keys = Vec::new();
    for node in cluster.primaries() {
        let here: Vec<String> = node.command(&["KEYS", "*:counter"]).await;
        keys.extend(here);
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
    let (owner, _) = cluster.owner(&keys[0]).await;
    let successor = &cluster.primaries()[(owner + 1) % 3];
    cluster.move_slot(&keys[0], successor, Duration::ZERO).await;
    until_pushed(&holder, &waiter).await;
}

/// The connections of the paused server stay open, and nothing shows that it is not the primary any
/// more.
#[tokio::test]
async fn waiters_are_pushed_to_by_the_successor_of_a_paused_primary() {
    let pushed_by_the_successor = async |servers: Servers| {
        let namespace = servers.by_the_clock();
        let (holder, waiter) = (namespace.connect().await, namespace.connect().await);
        until_pushed(&holder, &waiter).await;
        let group = servers.of_resource(&namespace).await;
        group.until_in_step().await;
        group.primary().pause().await;
        until_pushed(&holder, &waiter).await;
    };
    let sentinel = Servers::Sentinel(RedisWithSentinels::start().await);
    let cluster = Servers::Cluster(RedisCluster::start_with_replicas(&[]).await);
    tokio::join!(
        pushed_by_the_successor(sentinel),
        pushed_by_the_successor(cluster),
    );
}

async fn clients(servers: &Servers) -> (LockManager, LockManager) {
    let namespace = servers.by_the_clock();
    (namespace.connect().await, namespace.connect().await)
}

async fn until_pushed(holder: &LockManager, waiter: &LockManager) {
    until("grants are pushed", || async {
        hand_offs(holder, waiter).await < BY_PUSH * HANDOFFS
    })
    .await;
}

/// The time that a hand-off takes, with a waiter in the queue each time.
async fn hand_offs(holder: &LockManager, waiter: &LockManager) -> Duration {
    let mut took = Duration::ZERO;
    let resource = ResourceName::new(RESOURCE).unwrap();
    for _ in 0..HANDOFFS {
        let held = holder.acquire(RESOURCE).ttl(Ttl::secs(60)).await.unwrap();
        let waiting = waiter.clone();
        let waiting = tokio::spawn(async move { waiting.acquire(RESOURCE).await.unwrap() });
        until("in line", || async {
            holder.inspect(&resource).await.unwrap().waiters == Some(1)
        })
        .await;
        let released = TokioRuntime.now();
        held.release().await.unwrap();
        let next = waiting.await.unwrap();
        took += TokioRuntime.now().since(released);
        next.release().await.unwrap();
    }
    took
}
