//! A future that is dropped leaves nothing in etcd: no place in the queue, and no lease of a place.

use std::{future::IntoFuture, time::Duration};

use e2e::servers::{Etcd, etcd, until};
use lock_core::{
    Holder, LockManager, Released, Ttl,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, LockBackendExt, RenewRequest, Renewed,
        TokioRuntime,
    },
};
use lock_testing::DropAt;
use palisade_etcd::ENDED_TTL;
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, lease_of, manager, named, prefix};

const TTL: Ttl = Ttl::secs(600);

/// Polls an acquire up to this await and drops it. Returns true if it completed.
async fn is_granted_before(locks: &LockManager, number: usize) -> bool {
    let acquire = locks.acquire("r").ttl(TTL);
    let guard = DropAt::waiting(number).poll(acquire).await;
    guard.map(Result::unwrap).is_some()
}

#[tokio::test]
async fn an_acquire_dropped_at_any_await_leaves_no_place_in_etcd() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let line = format!("{prefix}/lock/");
    for contended in [false, true] {
        let mut times = 1;
        loop {
            let holder = if contended {
                Some(locks.acquire("r").ttl(TTL).await.unwrap())
            } else {
                None
            };
            // A waiter does not complete. It is dropped after this number of wake-ups, or after the
            // time is over.
            let polled = timeout(Duration::from_secs(2), is_granted_before(&locks, times)).await;
            let at = format!("contended: {contended}, dropped at poll {times}");
            let left = usize::from(contended);
            until(&at, || async { keys(server, &line).await.len() == left }).await;
            if let Some(holder) = holder {
                holder.release().await.unwrap();
            }
            let next = timeout(PATIENCE, locks.acquire("r").ttl(TTL).into_future()).await;
            next.expect("somebody is in the way")
                .unwrap()
                .release()
                .await
                .unwrap();
            if polled != Ok(false) {
                break;
            }
            times += 1;
        }
        assert!(times > 2, "it had hardly begun");
    }
}

/// The lease to which the only place in the queue is attached.
async fn lease_in_line(server: &Etcd, prefix: &str) -> String {
    let place = keys(server, &format!("{prefix}/lock/")).await.remove(0);
    lease_of(server, &place).await
}

async fn until_given_back(server: &Etcd, lease: &str) {
    until("the lease is given back", || async {
        let left = server.ctl(&["lease", "timetolive", lease]).await;
        left.contains("already expired")
    })
    .await;
}

#[tokio::test]
async fn leases_of_what_was_cancelled_are_given_back() {
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    let request = AcquireRequest::new(attempt, TTL);
    backend.acquire(&request).await.unwrap().granted().unwrap();
    let lease = lease_in_line(server, &prefix).await;
    let left = server.ctl(&["lease", "timetolive", &lease]).await;
    assert!(left.contains("remaining"), "it is there: {left}");
    backend.cancel(&request.attempt).await.unwrap();
    until_given_back(server, &lease).await;
}

/// The next acquisition uses a lease that was released, but not a lease that was ended by force.
#[tokio::test]
async fn a_lease_is_used_again_unless_it_was_ended_by_force() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let mut leases = Vec::new();
    for is_forced in [false, true, false] {
        let guard = locks.acquire("r").ttl(TTL).await.unwrap();
        leases.push(lease_in_line(server, &prefix).await);
        if is_forced {
            locks.force_release(&named("r")).await.unwrap();
        }
        guard.release().await.ok();
    }
    assert_eq!(leases[0], leases[1]);
    assert_ne!(leases[1], leases[2]);
    until_given_back(server, &leases[1]).await;
}

/// Leases are collected for a while before they are given back. A client that is dropped gives back
/// the rest of them, too.
#[tokio::test]
async fn leases_are_given_back_by_a_client_that_was_dropped() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let lease = lease_in_line(server, &prefix).await;
    guard.release().await.unwrap();
    drop(locks);
    until_given_back(server, &lease).await;
}

/// The tombstone outlasts the lease, even if another process renews it with a short ttl.
#[tokio::test]
async fn a_short_renewal_by_another_process_leaves_the_memory_as_long_as_the_lease() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let lease = locks.acquire("r").ttl(TTL).detached().await.unwrap();
    let lease = lease.granted().unwrap().sequencer;
    let other = backend(&server.url(), &prefix).await;
    let ttl = Ttl::secs(1);
    let renewal = RenewRequest::new(lease.clone(), ttl);
    let renewed = other.renew(&[renewal]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Renewed(_))), "{renewed:?}");
    let mark = format!("{prefix}/tombstone/");
    until("its mark was moved", || async {
        let mark = server.ctl(&["get", "--prefix", "-w=json", &mark]).await;
        mark.contains(r#""version":2"#)
    })
    .await;
    let mark = server.ctl(&["get", "--prefix", "-w=json", &mark]).await;
    let mark: serde_json::Value = serde_json::from_str(&mark).unwrap();
    let attached_to = format!("{:x}", mark["kvs"][0]["lease"].as_i64().unwrap());
    let left = server
        .ctl(&["lease", "timetolive", "-w=json", &attached_to])
        .await;
    let left: serde_json::Value = serde_json::from_str(&left).unwrap();
    let left = Duration::from_secs(left["ttl"].as_u64().unwrap());
    assert!(left > TTL.get() + ENDED_TTL, "{left:?}");
    assert_eq!(
        other.release(&lease, true).await.unwrap(),
        Released::Released
    );
}
