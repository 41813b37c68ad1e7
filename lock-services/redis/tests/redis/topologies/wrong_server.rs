//! Servers that are not what the URL says, and services with a part that is down.

use std::time::Duration;

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Redis, RedisCluster, RedisWithSentinels, until},
};
use lock_core::{Error, ErrorKind, Outcome};
use tokio::time::timeout;

use crate::topologies::world::turn;

#[tokio::test]
async fn a_url_of_another_topology_names_the_right_one() {
    let server = Redis::start().await;
    let node = Redis::start_with(&["--cluster-enabled", "yes"]).await;
    for (url, says) in [
        (format!("redis://{}", node.address()), "redis+cluster://"),
        (format!("redis+cluster://{}", server.address()), "redis://"),
    ] {
        let error = palisade::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
        assert!(error.to_string().contains(says), "{error}");
    }
    // The slots of this node have no owners.
    let url = format!("redis+cluster://{}", node.address());
    let error = palisade::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error:?}");
}

#[tokio::test]
async fn most_sentinels_decide_and_one_is_enough() {
    let servers = RedisWithSentinels::start().await;
    let [gone, paused, third] = servers.sentinels() else {
        unreachable!()
    };
    // A server of its own stands for a primary that was cut off and never heard of the others.
    let stranger = Redis::start().await;
    let () = third.command(&["SENTINEL", "REMOVE", "locks"]).await;
    let () = third
        .command(&[
            "SENTINEL",
            "MONITOR",
            "locks",
            "127.0.0.1",
            stranger.port(),
            "2",
        ])
        .await;
    turn(&palisade::connect(servers.url()).await.unwrap()).await;
    let keys: u32 = stranger.command(&["DBSIZE"]).await;
    assert_eq!(keys, 0, "one sentinel overruled two");

    gone.kill().await;
    paused.pause().await;
    turn(&palisade::connect(servers.url()).await.unwrap()).await;
    let keys: u32 = stranger.command(&["DBSIZE"]).await;
    assert!(keys > 0, "the last sentinel that answers is believed");

    third.kill().await;
    let error = palisade::connect(servers.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("none of 3 sentinels"), "{error}");
    let other_name = servers.url().replace("/locks", "/lokcs");
    paused.resume().await;
    let error = palisade::connect(&other_name).await.unwrap_err();
    assert!(error.to_string().contains("lokcs"), "{error}");
}

/// Sentinels may name a server a moment before it is promoted.
#[tokio::test]
async fn a_replica_that_sentinels_name_is_waited_for() {
    let primary = Redis::start().await;
    let replica = Redis::start().await;
    let () = replica
        .command(&["REPLICAOF", "127.0.0.1", primary.port()])
        .await;
    let sentinel = Redis::start_sentinel(&[]).await;
    let monitor = [
        "SENTINEL",
        "MONITOR",
        "locks",
        "127.0.0.1",
        replica.port(),
        "1",
    ];
    let () = sentinel.command(&monitor).await;
    let url = format!("redis+sentinel://{}/locks", sentinel.address());
    let error = palisade::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("replica"), "{error}");
}

#[tokio::test]
async fn any_node_that_answers_tells_of_the_whole_cluster() {
    let cluster = RedisCluster::start_with_replicas(&[]).await;
    let locks = palisade::connect(cluster.url()).await.unwrap();
    for number in 0..50 {
        let guard = locks.acquire(format!("r{number}")).await.unwrap();
        guard.release().await.unwrap();
    }
    let one = format!("redis+cluster://{}", cluster.primaries()[2].address());
    let locks = palisade::connect(&one).await.unwrap();
    for number in 0..50 {
        let guard = locks.acquire(format!("r{number}")).await.unwrap();
        guard.release().await.unwrap();
    }
    for node in cluster.primaries() {
        let keys: u32 = node.command(&["DBSIZE"]).await;
        assert!(keys > 0, "{} has nothing", node.url());
    }
}

/// A name leads to a replica for a while, as during a failover.
/// Catches: a candidacy that ends because of a failure that passes by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_meets_a_replica_leads_when_it_is_over() {
    let (primary, replica) = (Redis::start().await, Redis::start().await);
    let () = replica
        .command(&["REPLICAOF", "127.0.0.1", primary.port()])
        .await;
    let name = Proxy::start(primary.url()).await;
    let locks = palisade::connect(name.url("redis")).await.unwrap();
    name.point_to(replica.url());
    name.inflict(Fault::Cut);
    locks.try_acquire("r").await.unwrap_err();
    let error = locks.try_acquire("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("replica"), "{error}");

    let lead = locks.lead("a").run(async |_| Ok::<_, Error>(()));
    let over = async {
        let before = name.connections();
        until("it asks", async || name.connections() > before + 3).await;
        name.point_to(primary.url());
        name.inflict(Fault::Cut);
    };
    let both = async { tokio::join!(lead, over) };
    let (led, ()) = timeout(Duration::from_secs(60), both)
        .await
        .expect("it goes on");
    led.unwrap();
}

/// A hosted server may have renamed commands.
/// Catches: a message of the server that repeats its arguments: a script, or a holder.
#[tokio::test]
async fn a_command_that_the_server_lacks_is_named_in_one_line_without_what_it_was_sent() {
    for command in ["SCRIPT", "EVALSHA"] {
        let server = Redis::start_with(&["--rename-command", command, ""]).await;
        let refused = async {
            let locks = palisade::connect(server.url()).await?;
            locks.acquire("account:42").await
        };
        let error = refused.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let said = format!("the server says ERR: unknown command '{command}'");
        assert!(error.to_string().contains(&said), "{error}");
        assert!(!format!("{error} {error:?}").contains("args"), "{error:?}");
    }
}
