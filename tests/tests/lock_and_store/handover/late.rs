//! A request to retire the old service, or to reinstate it, is held up by the network and arrives
//! when somebody has turned back.

use e2e::{
    proxy::{Fault, Proxy, Trap},
    servers::until,
};
use fenced_store::admin::{Handover, HandoverError, HandoverPhase, Reason};
use lock_core::{Attempt, ErrorKind, LockManager};

use crate::handover::{
    command::migrated,
    tally::RESOURCE,
    world::{Service, World},
};

fn order(old: &LockManager, new: &LockManager) -> Handover {
    Handover::new(old, new, Reason::new("a slow network").unwrap()).unwrap()
}

/// One grant that was claimed.
async fn in_use(world: &World, service: &Service) {
    let protected = world.protected(service).await;
    let guard = protected.acquire(RESOURCE).await.unwrap();
    guard.begin().await.unwrap().commit().await.unwrap();
    guard.release().await.unwrap();
}

/// The error of a handover whose request to one of the services never arrives while it waits.
async fn cut_off(world: &World, old: &LockManager, new: &LockManager) -> HandoverError {
    let (admin, order) = (world.store.admin(), order(old, new));
    admin.hand_over(&order, |_| ()).await.unwrap_err()
}

/// What was held arrives, and its connection comes to its end.
async fn arrives(proxy: &Proxy, held: &Trap) {
    let connection = held.connection().expect("it was held");
    proxy.let_go();
    until("it has arrived", async || proxy.has_ended(connection)).await;
}

/// `mark` is what the request has and no other.
async fn a_late_request_to_retire(old: Service, mark: &str) {
    let world = World::between(old, Service::redis("new").await).await;
    in_use(&world, &world.old).await;
    let proxy = world.old.behind_a_proxy().await;
    let held = proxy.at_request(mark, Fault::HoldRequests);
    let behind = world.old.locks_at(&proxy).await;
    match cut_off(&world, &behind, &world.new.locks().await).await {
        HandoverError::Old { phase, source, .. } => {
            assert_eq!(phase, HandoverPhase::Retiring);
            assert_eq!(source.kind(), ErrorKind::Unavailable, "{source}");
        }
        other => panic!("{other}"),
    }
    behind.shutdown().await;
    drop(behind);
    let back = migrated(&world, &world.new, &world.old).await;
    assert_eq!(back["retired"], true);
    in_use(&world, &world.old).await;
    arrives(&proxy, &held).await;
    in_use(&world, &world.old).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_request_to_retire_a_redis_that_was_reinstated_does_nothing() {
    a_late_request_to_retire(Service::redis("old").await, "raise\r\n$1\r\n0\r\n").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_request_to_retire_an_etcd_that_was_reinstated_does_nothing() {
    a_late_request_to_retire(Service::etcd("old").await, "retired ").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_request_to_retire_a_zookeeper_that_was_reinstated_does_nothing() {
    a_late_request_to_retire(Service::zookeeper("old").await, " retired").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_request_to_reinstate_a_redis_that_is_retired_does_nothing() {
    let world = World::start().await;
    let (old, new) = (&world.old, &world.new);
    in_use(&world, old).await;
    migrated(&world, old, new).await;
    let proxy = old.behind_a_proxy().await;
    let held = proxy.at_request("raise\r\n$1\r\n1\r\n", Fault::HoldRequests);
    let behind = old.locks_at(&proxy).await;
    match cut_off(&world, &new.locks().await, &behind).await {
        HandoverError::New { phase, .. } => assert_eq!(phase, HandoverPhase::Retired),
        other => panic!("{other}"),
    }
    behind.shutdown().await;
    drop(behind);
    migrated(&world, old, new).await;
    arrives(&proxy, &held).await;
    let refused: Result<Attempt<_>, _> = old.locks().await.try_acquire(RESOURCE).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Retired);
    in_use(&world, new).await;
}
