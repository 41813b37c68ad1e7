//! The push with the grant of a waiter is lost or comes too late, or its connection breaks.

use std::time::Duration;

use e2e::{observer::until, proxy::Fault};
use lock_core::{
    LeaseGuard, LockManager, Released, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};
use tokio::task::JoinHandle;

use crate::faults::{
    connections::commands,
    world::{World, is_free},
};

/// A pushed grant is provisional. For this time no other client can have the resource.
pub(crate) const PROVISIONAL: Duration = Duration::from_secs(1);

/// Far longer than a test.
const LONG: Ttl = Ttl::secs(600);

/// A client that joins the queue, so that there are this many waiters.
async fn waiter(world: &World, locks: &LockManager, waiters: u64) -> JoinHandle<LeaseGuard> {
    let waiting = locks.clone();
    let task = tokio::spawn(async move { waiting.acquire("r").ttl(LONG).await.unwrap() });
    until_in_line(world, "r", waiters).await;
    task
}

async fn until_in_line(world: &World, resource: &str, waiters: u64) {
    let resource = ResourceName::new(resource).unwrap();
    until("in line", async || {
        let seen = world.rival.inspect(&resource).await.unwrap();
        seen.waiters == Some(waiters)
    })
    .await;
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
        let released = TokioRuntime.now();
        let guard = waiting.await.unwrap();
        let took = TokioRuntime.now().since(released);
        assert!(lost.has_sprung(), "{way:?} did not happen");
        assert!(took < 5 * PROVISIONAL, "{way:?}: {took:?}");
        assert!(guard.token() > token);
        guard.release().await.unwrap();
        assert!(is_free(&world.rival, "r").await);
    }
}

#[tokio::test]
async fn a_push_that_comes_after_its_lease_has_ended_is_no_grant() {
    let world = World::new().await;
    let held = world.rival.acquire("r").await.unwrap();
    let waiting = waiter(&world, &world.locks, 1).await;
    let next = waiter(&world, &world.rival, 2).await;
    let held_up = world.proxy.at_push(":r", Fault::Nothing);
    world.proxy.inflict(Fault::BlackHole);
    world.proxy.inflict_on_new(Fault::BlackHole);
    held.release().await.unwrap();
    // The first waiter gets no push, and the second is served.
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

/// The state of a holder that got its grant by the answer to a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    /// Its grant is still provisional when the push arrives.
    Unconfirmed,
    Confirmed,
    /// Its grant is not renewed. It was confirmed before the answer.
    Unattended,
}

#[tokio::test]
async fn a_push_that_is_overtaken_by_a_poll_ends_nothing() {
    for holding in [
        Holding::Unconfirmed,
        Holding::Confirmed,
        Holding::Unattended,
    ] {
        let world = World::new().await;
        let held = world.rival.acquire("r").await.unwrap();
        let locks = world.locks.clone();
        let waiting = tokio::spawn(async move {
            let acquire = locks.acquire("r").ttl(LONG);
            let acquire = acquire.renew(holding != Holding::Unattended);
            acquire.await.unwrap()
        });
        until_in_line(&world, "r", 1).await;
        let other = world.rival.acquire("other").await.unwrap();
        let locks = world.locks.clone();
        let behind = tokio::spawn(async move { locks.acquire("other").ttl(LONG).await.unwrap() });
        until_in_line(&world, "other", 1).await;
        let late = world.proxy.at_push(":r", Fault::HoldReplies);
        held.release().await.unwrap();
        let guard = waiting.await.unwrap();
        assert!(late.has_sprung(), "{holding:?}");
        if holding != Holding::Unconfirmed {
            until("confirmed", async || left(&world).await > Some(PROVISIONAL)).await;
            // The attempt forgets a provisional lease when the lease must have ended.
            tokio::time::sleep(PROVISIONAL).await;
            let same_shard = world.locks.acquire("{r}").await.unwrap();
            same_shard.release().await.unwrap();
        }
        world.proxy.let_go();
        // The answer behind the push shows that the push has arrived.
        other.release().await.unwrap();
        behind.await.unwrap().release().await.unwrap();
        tokio::time::sleep(PROVISIONAL / 4).await;
        assert!(left(&world).await.is_some(), "{holding:?}");
        until("confirmed", async || left(&world).await > Some(PROVISIONAL)).await;
        assert_eq!(
            guard.release().await.unwrap(),
            Released::Released,
            "{holding:?}"
        );
    }
}

/// How long the lease lasts, if there is one.
async fn left(world: &World) -> Option<Duration> {
    let resource = ResourceName::new("r").unwrap();
    let seen = world.rival.inspect(&resource).await.unwrap();
    seen.holder.map(|holder| holder.remaining)
}

#[tokio::test]
async fn the_first_renewal_of_a_pushed_lease_does_not_stand_behind_commands() {
    let world = World::new().await;
    let held = world.rival.acquire("r").await.unwrap();
    // An acquire has the text of a full lease, and a confirm the ttl as an argument of its own.
    let ttl = LONG.as_millis().to_string();
    let alone = format!("\r\n${}\r\n{ttl}\r\n", ttl.len());
    let asked = world
        .proxy
        .at_request(&format!(":f:{ttl}:"), Fault::Nothing);
    let confirmed = world.proxy.at_request(&alone, Fault::Nothing);
    let waiting = waiter(&world, &world.locks, 1).await;
    held.release().await.unwrap();
    let guard = waiting.await.unwrap();
    until("confirmed", async || confirmed.has_sprung()).await;
    assert!(asked.has_sprung());
    assert_ne!(asked.connection(), confirmed.connection());
    guard.release().await.unwrap();
}

/// Catches: after one refusal a client gets no more pushes.
#[tokio::test]
async fn a_subscription_that_is_refused_for_a_moment_is_asked_for_again() {
    let world = World::new().await;
    let held = world.rival.acquire("r").await.unwrap();
    let asked = world.proxy.at_request("SSUBSCRIBE", Fault::HoldRequests);
    let waiting = world.locks.clone();
    let waiting = tokio::spawn(async move { waiting.acquire("r").await.unwrap() });
    until("asked", async || asked.has_sprung()).await;
    // The script of another client keeps the server busy.
    let mut others = commands(&world.server).await;
    let mut command = redis::cmd("CONFIG");
    command.arg("SET").arg("busy-reply-threshold").arg(1);
    command.exec_async(&mut others).await.unwrap();
    let mut hog = commands(&world.server).await;
    let hog = tokio::spawn(async move {
        let mut command = redis::cmd("EVAL");
        command.arg("while true do end").arg(0);
        command.exec_async(&mut hog).await
    });
    until("busy", async || {
        redis::cmd("PING")
            .exec_async(&mut others.clone())
            .await
            .is_err()
    })
    .await;
    let again = world.proxy.at_request("SSUBSCRIBE", Fault::Nothing);
    world.proxy.let_go();
    until("asked again", async || again.has_sprung()).await;
    let mut kill = redis::cmd("SCRIPT");
    kill.arg("KILL").exec_async(&mut others).await.unwrap();
    hog.await.unwrap().expect_err("it was killed");
    until("subscribed", async || {
        !world.observer.channels().await.is_empty()
    })
    .await;
    held.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
}
