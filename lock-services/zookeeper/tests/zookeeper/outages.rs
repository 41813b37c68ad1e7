//! Servers that do not answer.

use std::time::Duration;

use e2e::{
    idle::nothing_is_noticed,
    proxy::{Fault, Proxy},
    servers::{ZooKeeper, zookeeper},
    waits::ends_with_a_look_of,
    wakes::a_lost_wake_up_is_made_up_for,
};
use futures_util::future::join_all;
use lock_core::{
    ErrorKind, LostReason, Operation, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::time::timeout;

use crate::world::Namespace;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn without_servers_everything_is_a_typed_error_and_a_lease_is_lost_in_time() {
    let servers = ZooKeeper::start_ensemble().await;
    let namespace = Namespace::fresh(&servers);
    let locks = namespace.connect().await;
    let guard = locks.acquire("r").ttl(Ttl::secs(3)).await.unwrap();
    for number in 0..3 {
        servers.kill(number).await;
    }
    let lost = timeout(PATIENCE, guard.lost()).await.expect("it is lost");
    assert_eq!(lost.reason(), LostReason::Expired);
    let error = timeout(PATIENCE, locks.try_acquire("other")).await;
    let error = error.expect("an answer").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let error = timeout(PATIENCE, guard.release()).await;
    assert!(
        error
            .expect("an answer")
            .is_ok_and(|released| { released == lock_core::Released::NotHolder })
    );

    let error = timeout(PATIENCE, palisade::connect(servers.url())).await;
    let error = error.expect("an answer").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(error.operation(), Operation::Connect);

    // All servers are restarted at once, because no server serves alone.
    let restarts = (0..3).map(|number| servers.restart(number));
    futures_util::future::join_all(restarts).await;
    servers.until_all_serve().await;
    let again = timeout(PATIENCE, locks.acquire("r").ttl(Ttl::secs(3))).await;
    again.expect("an answer").unwrap().release().await.unwrap();
}

/// If the requests were sent one after the other, each would take five seconds.
#[tokio::test]
async fn while_servers_do_not_answer_all_requests_fail_at_the_same_time() {
    const MANY: usize = 20;
    let servers = ZooKeeper::start().await;
    let namespace = Namespace::fresh(&servers);
    let locks = namespace.connect().await;
    servers.pause(0).await;
    let first = locks.try_acquire("r").await.unwrap_err();
    assert_eq!(first.kind(), ErrorKind::Unavailable, "{first}");
    let asked = TokioRuntime.now();
    let told = (0..MANY).map(async |number| {
        let acquire = locks.acquire(format!("r{number}"));
        acquire.wait(Duration::from_millis(500)).await.unwrap_err()
    });
    let told = timeout(PATIENCE, join_all(told)).await.expect("answers");
    let took = TokioRuntime.now().since(asked);
    println!("{took:?}");
    for error in told {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert!(took < Duration::from_secs(25), "{took:?}");
    servers.resume(0).await;
    let again = timeout(PATIENCE, locks.acquire("r")).await;
    again.expect("an answer").unwrap().release().await.unwrap();
}

/// The longest lease is two thirds of a session. A longer ttl is refused and not cut short.
#[tokio::test]
async fn a_ttl_that_is_too_long_for_the_session_is_refused() {
    let namespace = Namespace::fresh(e2e::servers::zookeeper().await);
    let locks = palisade::connect(namespace.url(9_000))
        .prefix(&namespace.prefix)
        .await
        .unwrap();
    let guard = locks.acquire("r").ttl(Ttl::secs(6)).await.unwrap();
    guard.release().await.unwrap();
    let error = locks
        .acquire("r")
        .ttl(Ttl::millis(6_001))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("session_ms"), "{error}");
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_noticed() {
    let server = zookeeper().await;
    let proxy = Proxy::start(&server.url()).await;
    let url = format!("{}?session_ms=30000", proxy.url("zookeeper"));
    let prefix = Namespace::fresh(server).prefix;
    let locks = palisade::connect(url).prefix(prefix).await.unwrap();
    nothing_is_noticed(&locks, async || proxy.inflict(Fault::Cut))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wake_up_that_is_lost_with_its_connection_is_made_up_for() {
    let server = zookeeper().await;
    let proxy = Proxy::start(&server.url()).await;
    let prefix = &Namespace::fresh(server).prefix;
    let rival = palisade::connect(server.url())
        .prefix(prefix)
        .await
        .unwrap();
    let url = proxy.url("zookeeper");
    let locks = palisade::connect(url).prefix(prefix).await.unwrap();
    a_lost_wake_up_is_made_up_for(&locks, &rival, &proxy)
        .await
        .unwrap();
}

/// Catches: a wait of no length, or without end, asks silent servers for ever.
#[tokio::test]
async fn a_wait_ends_when_it_says_although_the_server_is_silent_or_down() {
    let server = ZooKeeper::start().await;
    let locks = Namespace::fresh(&server).connect().await;
    server.pause(0).await;
    ends_with_a_look_of(Duration::from_secs(4), &locks).await;
    server.resume(0).await;
    server.kill(0).await;
    ends_with_a_look_of(Duration::from_secs(4), &locks).await;
}
