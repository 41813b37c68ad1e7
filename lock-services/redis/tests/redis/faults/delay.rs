//! A network that is slow and loses nothing.

use std::time::Duration;

use e2e::{observer::until, proxy::Fault};
use lock_core::{
    Attempt, LockManager, ResourceName, Ttl,
    backend::{Runtime, TokioRuntime},
};

use crate::faults::{pushes::PROVISIONAL, world::World};

/// In each direction: once around the world.
const DELAY: Duration = Duration::from_millis(100);

/// The same. A connection takes several round trips, more than fit into a pushed lease.
const ACROSS_AN_OCEAN: Duration = Duration::from_millis(60);

/// A manager behind such a network, which waits for answers as long as it is usual.
async fn slow(world: &World) -> LockManager {
    delayed(world, DELAY).await
}

async fn delayed(world: &World, delay: Duration) -> LockManager {
    let locks = palisade::connect(world.proxy.url("redis")).await.unwrap();
    world.proxy.inflict(Fault::Delay(delay));
    world.proxy.inflict_on_new(Fault::Delay(delay));
    locks
}

#[tokio::test]
async fn a_holder_behind_a_slow_network_believes_no_longer_than_the_server_does() {
    const TTL: Ttl = Ttl::millis(900);
    let world = World::new().await;
    let locks = slow(&world).await;
    for _ in 0..3 {
        let asked = TokioRuntime.now();
        let acquire = locks.acquire("r").ttl(TTL).renew(false);
        let guard = acquire.await.unwrap();
        let took = TokioRuntime.now().since(asked);
        assert!(took >= 2 * DELAY, "there was no delay: {took:?}");
        let left = guard.remaining().unwrap();
        assert!(
            left <= TTL.get() - 2 * DELAY,
            "counted from the answer: {left:?}"
        );
        // A client with a better network does not get in as long as the holder counts on its lease.
        let rival = loop {
            let believed = guard.remaining().is_ok();
            match world.rival.try_acquire("r").await.unwrap() {
                // It was asked for before, and granted after, the holder had still believed.
                Attempt::Granted(rival) => {
                    assert!(guard.remaining().is_err(), "believed before: {believed}");
                    break rival;
                }
                Attempt::Held { .. } => tokio::task::yield_now().await,
            }
        };
        assert!(rival.token() > guard.token());
        rival.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_first_lease_of_a_process_is_kept_over_a_slow_network_although_it_was_waited_for() {
    // A machine that stands still for 300 ms costs it, too.
    for _ in 0..5 {
        if is_first_lease_kept().await {
            return;
        }
    }
    panic!("it is lost each time");
}

/// Whether the first renewal of a new process is in time.
async fn is_first_lease_kept() -> bool {
    let world = World::new().await;
    let held = world.rival.acquire("r").await.unwrap();
    let slow = delayed(&world, ACROSS_AN_OCEAN).await;
    let waiting = tokio::spawn(async move { slow.acquire("r").await.unwrap() });
    until("reachable", async || {
        !world.observer.channels().await.is_empty()
    })
    .await;
    let resource = ResourceName::new("r").unwrap();
    until("in line", async || {
        world.rival.inspect(&resource).await.unwrap().waiters == Some(1)
    })
    .await;
    held.release().await.unwrap();
    let guard = waiting.await.unwrap();
    until("renewed or lost", async || {
        guard.remaining().map_or(true, |left| left > PROVISIONAL)
    })
    .await;
    guard.remaining().is_ok()
}
