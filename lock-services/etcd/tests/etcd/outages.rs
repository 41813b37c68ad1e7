//! Nodes that die, stand still and come back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::{
    idle::nothing_is_noticed,
    proxy::{Fault as Way, Proxy},
    servers::{Etcd, etcd, until},
    waits::ends_when_it_says,
    wakes::a_lost_wake_up_is_made_up_for,
};
use futures_util::future::join_all;
use lock_core::{
    Attempt, ErrorKind, LockManager, Outcome, Released, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::{net::TcpListener, time::timeout};

use crate::world::{Load, PATIENCE, keys, manager, prefix, sections};

const MANAGERS: u64 = 3;
const TASKS_EACH: u64 = 2;
const TTL: Ttl = Ttl::secs(2);
/// The number of grants that there have to be between two faults.
const BETWEEN_FAULTS: usize = 25;

/// The fault of a leader.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Killed,
    Stopped,
}

/// The leader fails three times, under load, and comes back.
async fn leaders_fail(fault: Fault) {
    let (server, prefix) = (Etcd::start_cluster().await, prefix());
    let (load, stop) = (Arc::new(Load::default()), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for number in 0..MANAGERS {
        let locks = manager(&server.url(), &prefix).await;
        for task in 0..TASKS_EACH {
            let first = 1 + (number * TASKS_EACH + task) * 100_000;
            tasks.push(sections(&load, &locks, first, TTL, &stop));
        }
    }
    let until_more = async |least: usize| {
        let before = load.history.grants();
        until("grants go on", || async {
            load.history.grants() >= before + least
        })
        .await;
    };
    for _ in 0..3 {
        until_more(BETWEEN_FAULTS).await;
        let leader = server.leader().await;
        match fault {
            Fault::Killed => server.kill(leader).await,
            Fault::Stopped => server.pause(leader).await,
        }
        // The other two go on without it.
        until_more(1).await;
        match fault {
            Fault::Killed => server.start_again(leader).await,
            Fault::Stopped => server.resume(leader).await,
        }
    }
    until_more(BETWEEN_FAULTS).await;
    stop.store(true, Ordering::Relaxed);
    for task in timeout(PATIENCE, join_all(tasks)).await.expect("stuck") {
        task.unwrap();
    }
    load.assert_sound();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_killed_leaders_break_no_order_and_lose_no_update() {
    leaders_fail(Fault::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_stopped_leaders_break_no_order_and_lose_no_update() {
    leaders_fail(Fault::Stopped).await;
}

#[tokio::test]
async fn when_all_nodes_are_gone_it_says_so_and_goes_on_when_they_are_back() {
    let (server, prefix) = (Etcd::start().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let before = locks.acquire("r").await.unwrap();
    let token = before.token();
    before.release().await.unwrap();
    server.kill(0).await;
    let asked = TokioRuntime.now();
    let error = locks.acquire("r").await.unwrap_err();
    // It depends on the moment how far the last request came, so the outcome may be unknown.
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let took = TokioRuntime.now().since(asked);
    assert!(took < Duration::from_secs(30), "{took:?}");
    let error = palisade::connect(server.url()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    server.start_again(0).await;
    let after = locks.acquire("r").await.unwrap();
    assert!(after.token() > token);
}

#[tokio::test]
async fn a_node_that_stands_still_is_left_for_another_one() {
    let (server, prefix) = (Etcd::start_cluster().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let guard = locks.acquire("r").ttl(Ttl::secs(30)).await.unwrap();
    // The first node is the node that is asked. It does not refuse, but it never answers.
    server.pause(0).await;
    let waiter = {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("r").ttl(Ttl::secs(30)).await.unwrap() })
    };
    let token = guard.token();
    guard.release().await.unwrap();
    let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    assert!(next.token() > token);
    server.resume(0).await;
    next.release().await.unwrap();
}

/// Catches: each client waits the whole timeout of its connection for one silent node of several.
#[tokio::test]
async fn a_silent_node_is_left_after_the_response_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = etcd().await;
    let hosts = server.url().replace("etcd://", "");
    let url = format!("etcd://{},{hosts}", silent.local_addr().unwrap());
    let asked = TokioRuntime.now();
    palisade::connect(url)
        .prefix(prefix())
        .response_timeout(Duration::from_millis(100))
        .await
        .unwrap();
    let took = TokioRuntime.now().since(asked);
    // Less than the usual response timeout.
    assert!(took < Duration::from_millis(1900), "{took:?}");
}

/// Two proxies in front of one node. The client asks through the first, which passes no answers
/// from now on.
async fn with_a_silent_way(fault: Way) -> (Proxy, LockManager, String) {
    let (server, prefix) = (etcd().await, prefix());
    let proxy = Proxy::start(&server.url()).await;
    let both = format!("{},{}", proxy.url("etcd"), server.addresses()[0]);
    let locks = manager(&both, &prefix).await;
    proxy.inflict(fault);
    (proxy, locks, prefix)
}

/// Catches: a look that ends before its client has asked the second node, so that the next look
/// asks the first node again.
#[tokio::test]
async fn a_look_that_does_not_wait_asks_the_next_node() {
    for fault in [Way::HoldRequests, Way::DropReplies] {
        let (_proxy, locks, prefix) = with_a_silent_way(fault).await;
        let granted = locks.try_acquire("r").await.unwrap();
        assert!(matches!(granted, Attempt::Granted(_)), "{granted:?}");
        let guard = granted.granted().unwrap();
        assert_eq!(guard.release().await.unwrap(), Released::Released);
        let line = keys(etcd().await, &format!("{prefix}/lock/")).await;
        assert!(line.is_empty(), "{line:?}");
    }
}

/// The first node deletes the entry, and its answer is lost. The second node finds nothing.
/// Catches: a client that reports the loss of a lease which a copy of its own request has released,
/// or that reports a release although its guard knows that the lease is lost.
#[tokio::test]
async fn a_release_that_goes_on_at_the_next_node_counts_if_the_lease_was_held() {
    for is_lost in [false, true] {
        let (server, prefix) = (etcd().await, prefix());
        let proxy = Proxy::start(&server.url()).await;
        let both = format!("{},{}", proxy.url("etcd"), server.addresses()[0]);
        let locks = manager(&both, &prefix).await;
        let guard = locks.acquire("r").ttl(Ttl::secs(3)).await.unwrap();
        if is_lost {
            locks.force_release("r").await.unwrap();
            timeout(PATIENCE, guard.lost()).await.expect("it renews");
        }
        proxy.inflict(Way::DropReplies);
        let released = guard.release().await.unwrap();
        let expected = match is_lost {
            true => Released::NotHolder,
            false => Released::Released,
        };
        assert_eq!(released, expected, "lost: {is_lost}");
        assert!(keys(server, &format!("{prefix}/lock/")).await.is_empty());
    }
}

#[tokio::test]
async fn after_a_wait_of_any_length_on_a_silent_node_the_outcome_is_unknown() {
    let server = Etcd::start().await;
    let locks = manager(&server.url(), &prefix()).await;
    server.pause(0).await;
    let waits = [0, 1, 1_000].map(Duration::from_millis);
    let waits = waits.into_iter().chain([Duration::MAX]).map(|wait| {
        let locks = locks.clone();
        async move {
            let error = locks.acquire("r").wait(wait).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{wait:?}: {error}");
            assert_eq!(error.outcome(), Outcome::Unknown, "{wait:?}: {error}");
        }
    });
    let ended = timeout(PATIENCE, join_all(waits)).await;
    ended.expect("the waits end");
    server.resume(0).await;
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_noticed() {
    let server = etcd().await;
    let proxy = Proxy::start(&server.url()).await;
    let locks = manager(&proxy.url("etcd"), &prefix()).await;
    nothing_is_noticed(&locks, async || proxy.inflict(Way::Cut))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wake_up_that_is_lost_with_its_connection_is_made_up_for() {
    let server = etcd().await;
    let (proxy, prefix) = (Proxy::start(&server.url()).await, prefix());
    let rival = manager(&server.url(), &prefix).await;
    let locks = manager(&proxy.url("etcd"), &prefix).await;
    a_lost_wake_up_is_made_up_for(&locks, &rival, &proxy)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_wait_ends_when_it_says_although_the_node_is_silent_or_down() {
    let server = Etcd::start().await;
    let locks = manager(&server.url(), &prefix()).await;
    server.pause(0).await;
    ends_when_it_says(&locks).await;
    server.resume(0).await;
    server.kill(0).await;
    ends_when_it_says(&locks).await;
}
