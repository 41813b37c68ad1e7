//! Connections that hang, vanish, or lead to a server that cannot serve.

use std::{future::IntoFuture, time::Duration};

use e2e::{
    idle::nothing_is_noticed,
    observer::{Observer, until},
    proxy::{Fault, Proxy},
    servers::Redis,
    waits::ends_when_it_says,
    wakes::a_lost_wake_up_is_made_up_for,
};
use lock_core::{Attempt, ErrorKind, ForceReleased, Outcome, Ttl};
use redis::{AsyncCommands, Client, aio::MultiplexedConnection};

use crate::faults::world::{impatient, is_free};

pub(crate) async fn commands(server: &Redis) -> MultiplexedConnection {
    Client::open(server.url())
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap()
}

#[tokio::test]
async fn a_request_that_arrives_after_its_acquire_got_held_makes_no_ghost_hold() {
    let server = Redis::start().await;
    let rival = palisade::connect(server.url()).await.unwrap();
    let proxy = Proxy::start(server.url()).await;
    let locks = impatient(&proxy.url("redis")).await;
    // The first request is still under way while the second, on a new connection, is answered.
    proxy.inflict(Fault::HoldRequests);
    let held = rival.acquire("r").await.unwrap();
    let answer = locks
        .acquire("r")
        .wait(Duration::from_secs(2))
        .detached()
        .await
        .unwrap();
    assert!(matches!(answer, Attempt::Held { .. }), "{answer:?}");
    held.release().await.unwrap();
    assert!(proxy.connections() > 1, "there was no second connection");

    let observer = Observer::of(server.url()).await;
    let before = observer.scripts_called().await;
    proxy.let_go();
    until("the late request has arrived", async || {
        observer.scripts_called().await > before
    })
    .await;
    assert!(is_free(&rival, "r").await, "a ghost holds it");
}

#[tokio::test]
async fn a_connection_whose_other_end_vanished_is_replaced() {
    let server = Redis::start().await;
    let proxy = Proxy::start(server.url()).await;
    let locks = impatient(&proxy.url("redis")).await;
    let guard = locks.acquire("held").ttl(Ttl::secs(3)).await.unwrap();
    proxy.inflict(Fault::BlackHole);
    let attempt = locks.try_acquire("r").await.unwrap();
    assert!(matches!(attempt, Attempt::Granted(_)));
    assert!(proxy.connections() > 1, "over the connection that is dead");
    // The watchdog also renews on the new connection.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert!(guard.remaining().is_ok(), "{:?}", guard.remaining());
}

#[tokio::test]
async fn leases_are_kept_and_given_back_when_the_server_is_out_of_memory() {
    let server = Redis::start().await;
    let mut commands = commands(&server).await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let kept = locks.acquire("kept").ttl(Ttl::secs(3)).await.unwrap();
    let dropped = locks.acquire("dropped").await.unwrap();
    let released = locks.acquire("released").await.unwrap();
    let _: () = redis::cmd("CONFIG")
        .arg("SET")
        .arg("maxmemory")
        .arg("1")
        .query_async(&mut commands)
        .await
        .unwrap();
    let refused: redis::RedisResult<()> = commands.set("more", 1).await;
    assert!(refused.is_err(), "there is memory left");

    let error = locks.try_acquire("new").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(error.outcome(), Outcome::NotApplied, "{error}");
    assert!(is_free(&locks, "new").await);
    released.release().await.unwrap();
    drop(dropped);
    until("released", async || is_free(&locks, "dropped").await).await;
    let before = locks.stats().renewals;
    until("renewed", async || locks.stats().renewals >= before + 2).await;
    assert!(kept.remaining().is_ok(), "it was not renewed");
}

#[tokio::test]
async fn the_secret_never_reaches_the_server() {
    let server = Redis::start().await;
    let mut commands = commands(&server).await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let released = locks.acquire("released").await.unwrap();
    let held = locks.acquire("held").await.unwrap();
    let secrets = [&released, &held].map(|guard| guard.sequencer().holder().expose());
    released.release().await.unwrap();
    let mut seen = String::new();
    let keys: Vec<String> = commands.keys("*").await.unwrap();
    for key in keys {
        let value: String = commands.get(&key).await.unwrap();
        seen.push_str(&format!("{key} {value}\n"));
    }
    assert!(seen.contains(&held.sequencer().holder().digest()), "{seen}");
    for secret in secrets {
        assert!(!seen.contains(&secret), "{seen}");
    }
}

/// Catches: the fitness of a server is not checked when a client connects.
#[tokio::test]
async fn a_server_that_could_lose_its_counters_is_refused() {
    let primary = Redis::start().await;
    let unfit = Redis::start().await;
    let address = primary.url().rsplit_once('/').unwrap().1;
    let (host, port) = address.split_once(':').unwrap();
    let mut evicting = redis::cmd("CONFIG");
    evicting
        .arg("SET")
        .arg("maxmemory-policy")
        .arg("allkeys-lru");
    let mut replica = redis::cmd("REPLICAOF");
    replica.arg(host).arg(port);
    let mut commands = commands(&unfit).await;
    let refusals = [
        (evicting, "allkeys-lru", ErrorKind::Refused),
        // The replica may be promoted soon.
        (replica, "replica", ErrorKind::Unavailable),
    ];
    for (command, says, kind) in refusals {
        let () = command.query_async(&mut commands).await.unwrap();
        let error = palisade::connect(unfit.url()).await.unwrap_err();
        assert_eq!((error.kind(), error.outcome()), (kind, Outcome::NotApplied));
        assert!(error.to_string().contains(says), "{error}");
        let mut calm = redis::cmd("CONFIG");
        calm.arg("SET").arg("maxmemory-policy").arg("noeviction");
        let () = calm.query_async(&mut commands).await.unwrap();
    }
}

/// A balancer closes idle connections, Redis closes them after its `timeout`, and `CLIENT KILL`
/// closes them, too.
#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_noticed() {
    let server = Redis::start().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    let killer = commands(&server).await;
    nothing_is_noticed(&locks, async || {
        for kind in ["normal", "pubsub"] {
            let mut kill = redis::cmd("CLIENT");
            kill.arg(&["KILL", "TYPE", kind]);
            kill.exec_async(&mut killer.clone()).await.unwrap();
        }
    })
    .await
    .unwrap();
}

/// The answer to a release by force is lost. The request is sent again, and gets the same answer.
#[tokio::test]
async fn a_release_by_force_that_is_sent_again_names_the_same_revocation() {
    let server = Redis::start().await;
    let proxy = Proxy::start(server.url()).await;
    let locks = impatient(&proxy.url("redis")).await;
    let rival = palisade::connect(server.url()).await.unwrap();
    let guard = rival.acquire("r").await.unwrap();
    // The repeated request must not end the lease of the next holder.
    let mut next = rival.acquire("r").into_future();
    tokio::select! {
        _ = &mut next => panic!("it is held"),
        () = until("somebody waits", async || {
            locks.inspect("r").await.unwrap().waiters == Some(1)
        }) => {}
    }
    let trap = proxy.at_reply_to(&guard.token().to_string(), Fault::Cut);
    let forced = locks.force_release("r").await.unwrap();
    assert!(trap.has_sprung(), "no answer was lost");
    let ForceReleased::Ended { holder, revocation } = forced else {
        panic!("it was held")
    };
    assert_eq!(holder.token, guard.token());
    let next = next.await.unwrap();
    assert!(guard.token() < revocation && revocation < next.token());
}

#[tokio::test]
async fn a_wake_up_that_is_lost_with_its_connection_is_made_up_for() {
    let server = Redis::start().await;
    let rival = palisade::connect(server.url()).await.unwrap();
    let proxy = Proxy::start(server.url()).await;
    let locks = impatient(&proxy.url("redis")).await;
    a_lost_wake_up_is_made_up_for(&locks, &rival, &proxy)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wait_ends_when_it_says_although_the_server_is_silent_or_down() {
    let server = Redis::start().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    server.pause().await;
    ends_when_it_says(&locks).await;
    server.resume().await;
    server.kill().await;
    ends_when_it_says(&locks).await;
}

#[tokio::test]
async fn a_server_that_is_back_before_the_wait_is_over_is_found() {
    let server = Redis::start().await;
    let locks = palisade::connect(server.url()).await.unwrap();
    server.kill().await;
    let (acquired, ()) = tokio::join!(
        locks
            .acquire("r")
            .wait(Duration::from_secs(20))
            .into_future(),
        server.restart()
    );
    acquired.unwrap().release().await.unwrap();
}
