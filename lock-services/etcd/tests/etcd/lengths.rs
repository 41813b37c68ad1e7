//! Leases that are longer than requested.

use std::time::Duration;

use e2e::servers::etcd;
use lock_core::{
    Holder, Issuer, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, LockBackendExt, Runtime, StoreSide, TokioRuntime,
    },
};
use serde_json::Value;

use crate::world::{backend, keys, lease_of, manager, named, prefix};

/// The last renewal may be sent just before `max_hold` is over, and it renews for a whole second.
#[tokio::test]
async fn the_end_of_a_lease_is_counted_with_the_ttl_that_was_granted() {
    let (max_hold, granted) = (Duration::from_secs(10), Duration::from_secs(1));
    let locks = manager(&etcd().await.url(), &prefix()).await;
    let asked = TokioRuntime.now();
    let acquire = locks.acquire("r").ttl(Ttl::millis(100)).max_hold(max_hold);
    let guard = acquire.await.unwrap();
    let most = guard.ends_within().unwrap().expect("it has a bound");
    assert!(
        TokioRuntime.now() + most >= asked + max_hold + granted,
        "{most:?}"
    );
    guard.release().await.unwrap();
}

/// A lease is used again without a request while enough of its time is left. After that it is kept
/// alive first.
#[tokio::test]
async fn a_lease_that_is_used_again_lives_for_as_long_as_was_asked_for() {
    const TTL: Ttl = Ttl::secs(4);
    let (server, prefix) = (etcd().await, prefix());
    let backend = backend(&server.url(), &prefix).await;
    let mut leases = Vec::new();
    let end = TokioRuntime.now() + 2 * TTL.get();
    while TokioRuntime.now() < end {
        let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
        let request = AcquireRequest::new(attempt, TTL);
        let asked = TokioRuntime.now();
        let grant = backend.acquire(&request).await.unwrap().granted().unwrap();
        let deadline = grant.lease.deadline();
        assert!(deadline >= asked + TTL.get());
        let place = keys(server, &format!("{prefix}/lock/")).await.remove(0);
        let lease = lease_of(server, &place).await;
        let left = server
            .ctl(&["lease", "timetolive", "-w=json", &lease])
            .await;
        let left: Value = serde_json::from_str(&left).unwrap();
        // etcd rounds the time down.
        let most = Duration::from_secs(left["ttl"].as_u64().unwrap() + 1);
        assert!(
            TokioRuntime.now() + most >= deadline,
            "the lease ends before its deadline"
        );
        leases.push(lease);
        let issuer = Issuer::new("test").unwrap();
        let holder = request.attempt.holder;
        let lease = Sequencer::new(issuer, named("r"), grant.token, holder);
        backend.release(&lease, true).await.unwrap();
        // Some of the slack goes by, and sometimes all of it.
        tokio::time::sleep(TTL.get() / 8).await;
    }
    leases.dedup();
    assert_eq!(leases.len(), 1, "one is enough");
}
