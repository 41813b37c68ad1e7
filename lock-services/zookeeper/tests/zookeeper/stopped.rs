//! Processes that are killed or stopped while they hold.

use std::time::Duration;

use e2e::{process::Process, servers::zookeeper};
use lock_core::{
    LockManager, Released, Ttl,
    backend::{AttemptRef, LockBackend, Runtime, TokioRuntime, Wait},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{Namespace, granted, request, until_waiting};

const PATIENCE: Duration = Duration::from_secs(30);

impl Namespace<'_> {
    /// A process that holds until the test sends "release".
    pub(crate) fn holder(&self, ttl: Ttl, session_ms: u32) -> Process {
        let url = format!("{}&prefix={}", self.url(session_ms), self.prefix);
        let (lock, ttl_ms) = (["hold", "--lock", &url], ttl.as_millis().to_string());
        let resource = ["--resource", "r", "--ttl-ms", &ttl_ms];
        Process::spawn("e2e-worker", [&lock[..], &resource[..]].concat())
    }
}

fn token(held: &Value) -> u64 {
    held["acquired"].as_u64().unwrap()
}

/// The holder's session would last for 100 s more, so the next in the queue has to act.
#[tokio::test]
async fn a_holder_that_fails_costs_the_next_in_line_its_ttl_and_not_its_session() {
    let ttl = Ttl::secs(1);
    for stop in [true, false] {
        let namespace = Namespace::fresh(zookeeper().await);
        let locks = namespace.connect().await;
        let mut worker = namespace.holder(ttl, 100_000);
        let held: Value = worker.event().await;
        let waiter = tokio::spawn(next(locks.clone()));
        until_waiting(&locks, "r", 1).await;
        if stop {
            worker.pause().await;
        } else {
            worker.kill().await;
        }
        let failed = TokioRuntime.now();
        let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
        let took = TokioRuntime.now().since(failed);
        println!("stopped {stop}: {took:?}");
        assert!(took < 10 * ttl.get(), "{took:?}");
        assert!(next.token().get() > token(&held));
        if stop {
            worker.resume();
            worker.send(&"release").await;
            let told: Value = worker.event().await;
            assert_eq!(told, json!({ "lost": true, "released": "NotHolder" }));
        }
        assert_eq!(next.release().await.unwrap(), Released::Released);
    }
}

/// The next in the queue is woken in between, as it is every 15 s. The time that it has already
/// waited counts.
#[tokio::test]
async fn a_holder_of_a_long_lease_that_fails_costs_the_next_in_line_its_ttl() {
    let ttl = Ttl::secs(17);
    let namespace = Namespace::fresh(zookeeper().await);
    let locks = namespace.connect().await;
    let mut worker = namespace.holder(ttl, 100_000);
    let _held: Value = worker.event().await;
    let waiter = tokio::spawn(next(locks.clone()));
    until_waiting(&locks, "r", 1).await;
    worker.kill().await;
    let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    assert_eq!(next.release().await.unwrap(), Released::Released);
}

/// The process of the waiter has other attempts that share a lease. Each grant to them wakes all
/// waiters of that process.
#[tokio::test]
async fn a_holder_that_fails_costs_its_ttl_in_a_busy_process() {
    let ttl = Ttl::secs(2);
    let namespace = Namespace::fresh(zookeeper().await);
    let (locks, backend) = (namespace.connect().await, namespace.backend().await);
    let mut worker = namespace.holder(ttl, 100_000);
    let _held: Value = worker.event().await;
    let waiter = request("r", Wait::Forever);
    let busy = async {
        until_waiting(&locks, "r", 1).await;
        worker.kill().await;
        loop {
            let first = request("other", Wait::Forever);
            let mut second = first.clone();
            second.attempt = AttemptRef::new(
                &TokioRuntime,
                "other".try_into().unwrap(),
                first.attempt.holder,
            );
            let (lease, _) = tokio::join!(granted(&backend, &first), granted(&backend, &second));
            backend.release(&lease, true).await.unwrap();
            tokio::time::sleep(ttl.get() / 8).await;
        }
    };
    tokio::select! {
        answer = timeout(PATIENCE, granted(&backend, &waiter)) => {
            let lease = answer.expect("its turn");
            assert_eq!(backend.release(&lease, true).await.unwrap(), Released::Released);
        }
        () = busy => {}
    }
}

/// A process that stands still while it waits becomes the first, but its node does not show that.
/// The waiter behind it must not depend on chance to find this out.
#[tokio::test]
async fn a_waiter_that_fails_costs_the_next_in_line_its_ttl() {
    let ttl = Ttl::secs(1);
    let namespace = Namespace::fresh(zookeeper().await);
    let locks = namespace.connect().await;
    let holder = next(locks.clone()).await;
    let mut worker = namespace.holder(ttl, 100_000);
    until_waiting(&locks, "r", 1).await;
    let waiter = tokio::spawn(next(locks.clone()));
    until_waiting(&locks, "r", 2).await;
    worker.pause().await;
    holder.release().await.unwrap();
    let failed = TokioRuntime.now();
    let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    let took = TokioRuntime.now().since(failed);
    println!("{took:?}");
    assert!(took < 5 * ttl.get(), "{took:?}");
    assert_eq!(next.release().await.unwrap(), Released::Released);
    // The process goes to the end of the queue, which is empty.
    worker.resume();
    let held: Value = worker.event().await;
    worker.send(&"release").await;
    let told: Value = worker.event().await;
    assert_eq!(told["released"], "Released", "{held}");
}

/// There is no waiter in the queue who could act. A client that comes after the end of the session
/// finds the resource free.
#[tokio::test]
async fn a_session_that_ends_takes_the_leases_of_a_stopped_process_with_it() {
    let namespace = Namespace::fresh(zookeeper().await);
    let locks = namespace.connect().await;
    let mut worker = namespace.holder(Ttl::secs(1), 2_000);
    let held: Value = worker.event().await;
    worker.pause().await;
    e2e::servers::until("the session has ended", || async {
        locks.inspect("r").await.unwrap().holder.is_none()
    })
    .await;
    let next = next(locks).await;
    assert!(next.token().get() > token(&held));
    worker.resume();
    worker.send(&"release").await;
    let told: Value = worker.event().await;
    assert_eq!(told, json!({ "lost": true, "released": "NotHolder" }));
    // The next acquisition of the stopped process is in a new session, and has to wait.
    assert_eq!(next.release().await.unwrap(), Released::Released);
}

/// A lease lives for as long as it is renewed, and the next in the queue leaves it alone.
#[tokio::test]
async fn a_lease_that_is_renewed_outlives_its_ttl_with_others_in_line() {
    let namespace = Namespace::fresh(zookeeper().await);
    let (locks, others) = (namespace.connect().await, namespace.connect().await);
    let ttl = Ttl::secs(3);
    let guard = locks.acquire("r").ttl(ttl).await.unwrap();
    let waiter = tokio::spawn(next(others));
    until_waiting(&locks, "r", 1).await;
    tokio::time::sleep(3 * ttl.get()).await;
    assert!(guard.remaining().is_ok() && !waiter.is_finished());
    let last = guard.token();
    guard.release().await.unwrap();
    let next = timeout(PATIENCE, waiter).await.expect("its turn").unwrap();
    assert!(next.token() > last);
}

async fn next(locks: LockManager) -> lock_core::LeaseGuard {
    locks.acquire("r").ttl(Ttl::secs(15)).await.unwrap()
}
