//! The push that tells a waiter of its grant is lost, comes too late, or breaks its connection.

use std::time::Duration;

use e2e::{observer::until, proxy::Fault};
use lock_core::{Clock, LeaseGuard, LockManager, ResourceName, SystemClock, Ttl};
use tokio::task::JoinHandle;

use crate::world::{World, is_free};

/// A pushed grant is provisional: this long nobody else can have it.
const PROVISIONAL: Duration = Duration::from_secs(1);

/// Far longer than a test.
const LONG: Ttl = Ttl::secs(600);

/// Somebody who joins the line, as the last of that many.
async fn waiter(world: &World, locks: &LockManager, waiters: u64) -> JoinHandle<LeaseGuard> {
    let waiting = locks.clone();
    let task = tokio::spawn(async move { waiting.acquire("r").ttl(LONG).await.unwrap() });
    until_in_line(world, waiters).await;
    task
}

async fn until_in_line(world: &World, waiters: u64) {
    let resource = ResourceName::new("r").unwrap();
    until("in line", async || {
        let seen = world.rival.inspect(&resource).await.unwrap();
        seen.waiters == Some(waiters)
    })
    .await;
}

#[tokio::test]
async fn whoever_is_served_leaves_the_line_and_no_one_else_does() {
    let world = World::new().await;
    let mut guard = world.rival.acquire("r").ttl(LONG).await.unwrap();
    let mut line = Vec::new();
    for waiters in 1..=3 {
        line.push(waiter(&world, &world.locks, waiters).await);
    }
    for (left, next) in [2, 1, 0].into_iter().zip(line) {
        guard.release().await.unwrap();
        guard = next.await.unwrap();
        until_in_line(&world, left).await;
    }
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_lost_push_costs_its_waiter_a_pause_and_not_its_turn() {
    for way in [
        Fault::DropPushes,
        Fault::DropReplies,
        Fault::Cut,
        Fault::Reset,
    ] {
        let world = World::new().await;
        let held = world.rival.acquire("r").await.unwrap();
        let waiting = waiter(&world, &world.locks, 1).await;
        let lost = world.proxy.at_push(":r", way);
        let token = held.token();
        held.release().await.unwrap();
        let released = SystemClock.now();
        let guard = waiting.await.unwrap();
        let took = SystemClock.now().since(released);
        assert!(lost.has_sprung(), "{way:?} did not happen");
        assert!(took < 5 * PROVISIONAL, "{way:?}: {took:?}");
        assert!(guard.token() > token);
        guard.release().await.unwrap();
        assert!(is_free(&world.rival, "r").await);
    }
}

#[tokio::test]
async fn a_push_that_comes_after_its_lease_has_ended_is_nobodys_grant() {
    let world = World::new().await;
    let held = world.rival.acquire("r").await.unwrap();
    let waiting = waiter(&world, &world.locks, 1).await;
    let next = waiter(&world, &world.rival, 2).await;
    let held_up = world.proxy.at_push(":r", Fault::Nothing);
    world.proxy.inflict(Fault::BlackHole);
    world.proxy.inflict_on_new(Fault::BlackHole);
    held.release().await.unwrap();
    // The first in line hears nothing, and the second is served.
    let next = next.await.unwrap();
    assert!(held_up.has_sprung());
    world.proxy.let_go();
    tokio::time::sleep(PROVISIONAL / 2).await;
    assert!(
        !waiting.is_finished(),
        "it has taken what was another's by then"
    );
    assert!(next.remaining().is_ok());
    let token = next.token();
    next.release().await.unwrap();
    let guard = waiting.await.unwrap();
    assert!(guard.token() > token);
    guard.release().await.unwrap();
    assert!(is_free(&world.rival, "r").await);
}
