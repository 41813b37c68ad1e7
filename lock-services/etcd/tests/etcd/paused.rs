//! Processes that stand still while they hold or wait.

use std::future::IntoFuture;

use e2e::{
    process::Process,
    servers::{Etcd, etcd, until},
};
use lock_core::{
    ErrorKind, Holder, LockManager, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackendExt, TokioRuntime, Upkeep, Wait},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{PATIENCE, backend, keys, lease_of, manager, named, prefix};

const TTL_MS: &str = "2000";

struct World {
    server: &'static Etcd,
    prefix: String,
    locks: LockManager,
}

impl World {
    async fn new() -> Self {
        let (server, prefix) = (etcd().await, prefix());
        let locks = manager(&server.url(), &prefix).await;
        Self {
            server,
            prefix,
            locks,
        }
    }

    fn worker(&self, mode: &str, more: &[&str]) -> Process {
        let url = format!("{}?prefix={}", self.server.url(), self.prefix);
        let lock = [mode, "--lock", &url];
        let resource = ["--resource", "r", "--ttl-ms", TTL_MS];
        Process::spawn("e2e-worker", [&lock[..], &resource, more].concat())
    }

    async fn until_in_line(&self, waiters: u64) {
        until("in line", || async {
            self.locks.inspect(&named("r")).await.unwrap().waiters == Some(waiters)
        })
        .await;
    }
}

#[tokio::test]
async fn a_holder_that_slept_past_its_lease_learns_of_it_and_releases_nothing() {
    let world = World::new().await;
    let mut worker = world.worker("hold", &[]);
    let held: Value = worker.event().await;
    worker.pause().await;
    let next = world.locks.acquire("r").ttl(Ttl::secs(60)).into_future();
    let next = timeout(PATIENCE, next).await.expect("its turn").unwrap();
    assert!(next.token().get() > held["acquired"].as_u64().unwrap());
    worker.resume();
    worker.send(&"release").await;
    let told: Value = worker.event().await;
    assert_eq!(told, json!({ "lost": true, "released": "NotHolder" }));
    next.release().await.unwrap();
}

/// A waiter whose lease ran out while it slept has no place any more. When it wakes up and sees no
/// place before its own, it has to notice that its own place is gone, and take a new place.
#[tokio::test]
async fn a_waiter_whose_lease_ran_out_is_not_granted_what_it_waited_for() {
    let world = World::new().await;
    let holder = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    let mut worker = world.worker("line", &["--hold-ms", "1"]);
    let _ready: Value = worker.event().await;
    worker.send(&0).await;
    world.until_in_line(1).await;
    let line = format!("{}/lock/", world.prefix);
    let places = keys(world.server, &line).await;
    worker.pause().await;
    world.until_in_line(0).await;
    // Another client holds the resource now, and there is no place before the old place of the
    // waiter.
    let first = holder.token();
    holder.release().await.unwrap();
    let rival = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    assert!(rival.token() > first);
    worker.resume();
    world.until_in_line(1).await;
    let now = keys(world.server, &line).await;
    assert!(
        !now.iter().any(|place| places.contains(place)),
        "its old place: {now:?}"
    );
    let before = rival.token();
    rival.release().await.unwrap();
    let turn: Value = worker.event().await;
    assert!(turn["token"].as_u64().unwrap() > before.get(), "{turn}");
    assert!(worker.finish().await.success());
}

/// The waiter's own clock says that its lease still lives. In this test an operator has revoked the
/// lease. With some versions of etcd a leader that was deposed may revoke it.
#[tokio::test]
async fn a_waiter_whose_lease_was_revoked_is_not_granted_what_it_waited_for() {
    let world = World::new().await;
    let ttl = Ttl::secs(600);
    let holder = world.locks.acquire("r").ttl(ttl).await.unwrap();
    let line = format!("{}/lock/", world.prefix);
    let held = keys(world.server, &line).await;
    let backend = backend(&world.server.url(), &world.prefix).await;
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    let mut request = AcquireRequest::new(attempt, ttl);
    request.wait = Wait::Forever;
    // Otherwise the lease would be kept alive once more before the grant, and that would also show
    // its end.
    request.upkeep = Upkeep::Watchdog;
    let end = async {
        world.until_in_line(1).await;
        let places = keys(world.server, &line).await;
        let place = places.iter().find(|place| !held.contains(place)).unwrap();
        let lease = lease_of(world.server, place).await;
        world.server.ctl(&["lease", "revoke", &lease]).await;
        holder.release().await.unwrap();
    };
    let (answer, ()) = tokio::join!(timeout(PATIENCE, backend.acquire(&request)), end);
    let error = answer.expect("it waits for nothing").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released, "{error}");
    assert_eq!(keys(world.server, &line).await, Vec::<String>::new());
}
