//! The holder of a lease of the old service, and its waiters.

use std::time::Duration;

use e2e::servers::until;
use fenced_store::{FenceError, FencedLockError};
use lock_core::Ttl;
use tokio::{task::JoinSet, time::timeout};

use crate::handover::{command::migrated, world::World};

/// Long enough for a waiter far back in the line to ask again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two thirds of it are more than a busy machine stands still.
const TTL: Ttl = Ttl::secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_of_the_old_service_are_refused_by_the_store_and_its_holders_shut_out() {
    let world = World::start().await;
    let holder = world.protected(&world.old).await;
    let acquire = holder.acquire("account:7");
    let guard = acquire.ttl(TTL).await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..5 {
        let old = world.protected(&world.old).await;
        waiters.spawn(async move { old.acquire("account:7").await.map(drop) });
    }
    let waiting = || async {
        let inspection = holder.locks().inspect(guard.resource()).await;
        inspection.unwrap().waiters == Some(5)
    };
    until("five wait", waiting).await;

    migrated(&world, &world.old, &world.new).await;
    let refused = guard.begin().await.unwrap_err();
    assert!(refused.is_fenced(), "{refused}");
    // The holder keeps its lease for as long as it likes, and the waiters still wait for it.
    tokio::time::sleep(TTL.get() * 3 / 2).await;
    assert!(guard.remaining().is_ok() && waiters.try_join_next().is_none());
    guard.release().await.unwrap();
    while let Some(answer) = timeout(PATIENCE, waiters.join_next()).await.unwrap() {
        match answer.unwrap().unwrap_err() {
            FencedLockError::Store(FenceError::WrongIssuer { .. }) => {}
            other => panic!("{other}"),
        }
    }
    let next = world.protected(&world.new).await;
    let guard = next.acquire("account:7").await.unwrap();
    guard.begin().await.unwrap().commit().await.unwrap();
}
