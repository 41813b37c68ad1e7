//! One server takes the place of another in an orderly way. Nothing is lost, and no acquire fails.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    observer::until,
    servers::{RedisCluster, RedisWithSentinels},
};
use lock_core::{Holder, Released, Ttl};
use redis::RedisError;

use crate::topologies::{
    history::Turns,
    world::{Namespace, RESOURCE, Servers},
};

/// The time for which a slot stays half moved, if the machine is quick. Clients wait for the slot
/// for the response timeout. Here that is so long that the slot is moved by then on a slow machine,
/// too.
const HALF_MOVED: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(30);

/// The number of clients that take turns. Each has one request under way. In a failover this may be
/// a release, which may get no answer. An acquire is repeated.
const CLIENTS: usize = 3;

#[tokio::test]
async fn a_planned_sentinel_failover_keeps_the_order() {
    let sentinel = RedisWithSentinels::start().await;
    let servers = Servers::Sentinel(sentinel);
    let counting = servers.counting();
    let turns = start(&counting).await;
    let Servers::Sentinel(sentinel) = &servers else {
        unreachable!()
    };
    sentinel.fail_over_as_planned().await;
    turns.until_granted(100).await;
    let unknown = turns.stop().await;
    assert!(unknown <= CLIENTS, "{unknown} releases were unknown");
    let counter = counting.counter([sentinel.servers().primary()]).await;
    let old: u64 = sentinel
        .servers()
        .primary()
        .command(&["GET", &counter])
        .await;
    let new: u64 = sentinel.primary().await.command(&["GET", &counter]).await;
    assert!(new >= old + 100, "{new} there, {old} here");
}

#[tokio::test]
async fn a_planned_cluster_failover_keeps_the_order() {
    let servers = Servers::Cluster(RedisCluster::start_with_replicas(&[]).await);
    let counting = servers.counting();
    let turns = start(&counting).await;
    let group = servers.of_resource(&counting).await;
    let () = group.replicas()[0].command(&["CLUSTER", "FAILOVER"]).await;
    group.until_taken_over().await;
    turns.until_granted(100).await;
    let unknown = turns.stop().await;
    assert!(unknown <= CLIENTS, "{unknown} releases were unknown");
    assert!(!group.primary().is_primary().await);
}

/// While a slot moves, the keys of a script are on two servers, and no server runs it. Clients
/// wait, and follow the slot.
#[tokio::test]
async fn a_slot_that_moves_under_load_costs_no_token_and_no_error() {
    let cluster = RedisCluster::start().await;
    let url = cluster.url();
    let servers = Servers::Cluster(cluster);
    let counting = servers.counting().patient(PATIENCE);
    let turns = start(&counting).await;
    let Servers::Cluster(cluster) = &servers else {
        unreachable!()
    };
    let counter = counting.counter(cluster.primaries()).await;
    let (owner, group) = cluster.owner(&counter).await;
    let successor = &cluster.primaries()[(owner + 1) % 3];
    let naive = tokio::spawn(naive(group.primary().url().to_owned(), counter.clone()));

    let slot = cluster.move_slot(&counter, successor, HALF_MOVED).await;

    turns.until_granted(100).await;
    let unknown = turns.stop().await;
    assert_eq!(unknown, 0);
    let left: u32 = group
        .primary()
        .command(&["CLUSTER", "COUNTKEYSINSLOT", &slot])
        .await;
    assert_eq!(left, 0);
    // The control: a client that does not wait and follow gets errors.
    let met = naive.await.unwrap();
    assert!(
        met.contains("TRYAGAIN") && met.contains("MOVED"),
        "{met:?} at {url}"
    );
}

/// All keys are still on the node that the slot is leaving. But on that node a key that a script
/// deletes counts as moved, so the script would fail half way.
#[tokio::test]
async fn a_node_that_a_slot_is_leaving_runs_no_script_half_way() {
    let servers = Servers::Cluster(RedisCluster::start().await);
    let namespace = servers.by_the_clock().patient(PATIENCE);
    let locks = namespace.connect().await;
    // All keys exist: the lease, the queue, its waiter, and a tombstone.
    let given = locks.acquire(RESOURCE).holder(Holder::random());
    given.await.unwrap().release().await.unwrap();
    let guard = locks.acquire(RESOURCE).await.unwrap();
    let rival = locks.clone();
    let waiting = tokio::spawn(async move { rival.acquire(RESOURCE).await.unwrap() });
    let resource = guard.resource().clone();
    until("somebody waits", async || {
        locks.inspect(&resource).await.unwrap().waiters == Some(1)
    })
    .await;

    let Servers::Cluster(cluster) = &servers else {
        unreachable!()
    };
    let counter = namespace.counter(cluster.primaries()).await;
    let (owner, group) = cluster.owner(&counter).await;
    let successor = &cluster.primaries()[(owner + 1) % 3];
    let slot = cluster.begin_to_move_slot(&counter, successor).await;
    let release = tokio::spawn(guard.release());
    until("the release was refused", async || {
        let seen: String = group.primary().command(&["INFO", "errorstats"]).await;
        seen.contains("TRYAGAIN")
    })
    .await;
    for node in [group.primary(), successor] {
        let () = node.command(&["CLUSTER", "SETSLOT", &slot, "STABLE"]).await;
    }
    assert_eq!(release.await.unwrap().unwrap(), Released::Released);
    waiting.await.unwrap().release().await.unwrap();
}

/// Leases are renewed one by one while the leases of a batch are on two servers.
#[tokio::test]
async fn leases_outlive_a_slot_that_stays_half_moved() {
    let ttl = Ttl::secs(2);
    let servers = Servers::Cluster(RedisCluster::start().await);
    let namespace = servers.by_the_clock();
    let locks = namespace.connect().await;
    let mut held = Vec::new();
    for number in 0..20 {
        let name = format!("{{user:1}}:{number}");
        held.push(locks.acquire(name).ttl(ttl).await.unwrap());
    }
    let control = locks.acquire("{user:1}:control").ttl(ttl).renew(false);
    let control = control.await.unwrap();
    let Servers::Cluster(cluster) = &servers else {
        unreachable!()
    };
    let counter = namespace.counter(cluster.primaries()).await;
    let (owner, _) = cluster.owner(&counter).await;
    let successor = &cluster.primaries()[(owner + 1) % 3];
    cluster.move_slot(&counter, successor, ttl.get() * 2).await;
    assert!(control.remaining().is_err(), "it was not long enough");
    for guard in held {
        guard.remaining().unwrap();
        guard.release().await.unwrap();
    }
}

async fn start(namespace: &Namespace) -> Turns {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(namespace.connect().await);
    }
    let turns = Turns::start(clients);
    turns.until_granted(100).await;
    turns
}

/// Asks only the server that has a key, until the key has moved. Returns all errors.
async fn naive(url: String, key: String) -> BTreeSet<String> {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let script = "return redis.call('EXISTS', KEYS[1], KEYS[2])";
    let mut eval = redis::cmd("EVAL");
    eval.arg(script).arg(2).arg(&key).arg(format!("{key}:none"));
    let mut met = BTreeSet::new();
    while !met.contains("MOVED") {
        let answer: Result<u32, RedisError> = eval.query_async(&mut connection).await;
        met.extend(
            answer
                .err()
                .and_then(|error| error.code().map(String::from)),
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    met
}
