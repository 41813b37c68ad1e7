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
    proxy::{self, Proxy},
    servers::{Etcd, etcd, until},
    waits::ends_when_it_says,
};
use futures_util::future::join_all;
use lock_core::{
    ErrorKind, Ttl,
    backend::{Clock, SystemClock},
};
use tokio::{net::TcpListener, time::timeout};

use crate::world::{Load, PATIENCE, manager, prefix, sections};

const MANAGERS: u64 = 3;
const TASKS_EACH: u64 = 2;
const TTL: Ttl = Ttl::secs(2);
/// How many grants there have to be between two faults.
const BETWEEN_FAULTS: usize = 25;

/// Which fault a leader suffers.
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
    let asked = SystemClock.now();
    let error = locks.acquire("r").await.unwrap_err();
    // How far its last request came is a matter of the moment: the outcome may be unknown.
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let took = SystemClock.now().since(asked);
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
    // The first is the one that is asked. It does not refuse, it just never answers.
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

/// Catches: one silent node of several costs each client the whole timeout of its connection.
#[tokio::test]
async fn a_silent_node_is_left_after_the_response_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = etcd().await;
    let hosts = server.url().replace("etcd://", "");
    let url = format!("etcd://{},{hosts}", silent.local_addr().unwrap());
    let asked = SystemClock.now();
    palisade::connect(url)
        .prefix(prefix())
        .response_timeout(Duration::from_millis(100))
        .await
        .unwrap();
    let took = SystemClock.now().since(asked);
    assert!(took < Duration::from_millis(1500), "{took:?}");
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_is_not_noticed() {
    let server = etcd().await;
    let proxy = Proxy::start(&server.url()).await;
    let locks = manager(&proxy.url("etcd"), &prefix()).await;
    nothing_is_noticed(&locks, async || proxy.inflict(proxy::Fault::Cut))
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
