//! The least rights that a user of Redis needs, and the behaviour of the lock service with fewer
//! rights.

use std::{collections::BTreeSet, time::Duration};

use e2e::{
    project::files_in,
    servers::{Redis, RedisCluster, documented_rights, until},
};
use lock_core::{ErrorKind, LockManager, ResourceName};

/// Commands that clients send outside of scripts. The last line has the commands that may be
/// denied, except those for clusters.
const SENT: [&str; 11] = [
    "evalsha",
    "script|load",
    "get",
    "set",
    "scan",
    "ssubscribe", // always
    "cluster|slots",
    "cluster|info",
    "asking", // to clusters
    "info",
    "role", // to know the server
];

#[test]
fn the_documented_rights_are_those_that_are_used() {
    let mut used: BTreeSet<String> = SENT.iter().map(|&command| command.to_owned()).collect();
    for script in files_in("lock-services/redis/src/lua", "lua") {
        for call in ["redis.call(\"", "redis.pcall(\""] {
            let calls = script.text.split(call).skip(1);
            let commands = calls.filter_map(|rest| rest.split('"').next());
            used.extend(commands.map(str::to_lowercase));
        }
    }
    let documented = documented_rights();
    let allowed = documented.iter().filter_map(|word| word.strip_prefix('+'));
    let allowed: BTreeSet<String> = allowed.map(String::from).collect();
    assert_eq!(used, allowed);
}

#[tokio::test]
async fn the_documented_rights_are_enough_in_a_cluster() {
    let cluster = RedisCluster::start().await;
    for node in cluster.primaries() {
        node.allow_documented("").await;
    }
    let url = cluster.url().replace("://", "://locks:sesame@");
    hand_over(&url).await;
    // Without this right the view of the node that answers first counts.
    for node in cluster.primaries() {
        node.allow_documented("-cluster|info").await;
    }
    hand_over(&url).await;
}

#[tokio::test]
async fn a_server_that_may_not_be_asked_what_it_is_is_used_all_the_same() {
    let server = Redis::start().await;
    for denied in ["-info", "-info -role"] {
        let url = server.allow_documented(denied).await;
        hand_over(&url).await;
    }
}

#[tokio::test]
async fn a_replica_is_refused_by_its_role_if_nothing_else_may_be_asked() {
    let (primary, replica) = (Redis::start().await, Redis::start().await);
    let () = replica
        .command(&["REPLICAOF", "127.0.0.1", primary.port()])
        .await;
    let url = replica.allow_documented("-info").await;
    let error = palisade::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("replica"), "{error}");
}

#[tokio::test]
async fn waiters_poll_where_grants_may_not_be_pushed() {
    let server = Redis::start().await;
    for denied in ["resetchannels", "-ssubscribe", "-spublish"] {
        let url = server.allow_documented(denied).await;
        hand_over(&url).await;
    }
}

#[tokio::test]
async fn a_right_that_is_needed_is_named() {
    let server = Redis::start().await;
    let url = server.allow_documented("-scan").await;
    let error = connect(&url, &prefix()).await.list().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    let url = server.allow_documented("-evalsha").await;
    let error = connect(&url, &prefix())
        .await
        .acquire("r")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    assert!(error.to_string().contains("NOPERM"), "{error}");
}

fn prefix() -> String {
    format!("palisade:{:016x}", rand::random::<u64>())
}

async fn connect(url: &str, prefix: &str) -> LockManager {
    palisade::connect(url).prefix(prefix).await.unwrap()
}

/// One client acquires, and another waits for the resource and gets it.
async fn hand_over(url: &str) {
    let prefix = prefix();
    let (holder, waiter) = (connect(url, &prefix).await, connect(url, &prefix).await);
    let held = holder.acquire("r").await.unwrap();
    let waiting = tokio::spawn(async move { waiter.acquire("r").await.unwrap() });
    let resource = ResourceName::new("r").unwrap();
    until("in line", || async {
        holder.inspect(&resource).await.unwrap().waiters == Some(1)
    })
    .await;
    held.release().await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    next.unwrap().unwrap().release().await.unwrap();
}
