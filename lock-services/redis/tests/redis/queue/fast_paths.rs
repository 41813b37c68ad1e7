//! Releases that take a fast path, and releases that must not take it.

use e2e::servers::redis;
use lock_core::{
    Holder, Released,
    backend::{AcquireRequest, AttemptRef, LockBackend, TokioRuntime},
};
use redis::AsyncCommands;

use crate::queue::world::{LONG, World, granted, request, sequencer, waiting};

/// Catches: a release takes the fast path, which leaves no tombstone.
#[tokio::test]
async fn each_of_several_releases_is_remembered_although_others_wait() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let one = Holder::random();
    let requests = ["a", "b"].map(|resource| {
        let resource = request(resource).attempt.resource;
        AcquireRequest::new(AttemptRef::new(&TokioRuntime, resource, one), LONG)
    });
    let grants = holder.0.acquire_together(&requests).await.unwrap();
    let grants = grants.granted().unwrap();
    let waiters = ["a", "b"].map(|resource| client.waits(&waiting(resource)));
    for resource in ["a", "b"] {
        holder.until_waiting(resource, 1).await;
    }
    for (request, grant) in requests.iter().zip(&grants) {
        holder.release(request, *grant).await;
    }
    for waiter in waiters {
        granted(waiter).await;
    }
    for (request, grant) in requests.iter().zip(&grants) {
        let again = holder.0.release(&sequencer(request, *grant), true).await;
        assert_eq!(again.unwrap(), Released::Released);
    }
}

/// Catches: a client that gets all grants by push never draws a token, and so never lifts an old
/// counter.
#[tokio::test]
async fn a_release_lifts_the_counter_if_its_connection_has_not_done_so_yet() {
    let world = World::new().await;
    let holder = world.client().await;
    let client = world.listening_client().await;
    let (held, first) = holder.holds("r").await;
    let request = waiting("r");
    let (waiter, behind) = (client.waits(&request), waiting("r"));
    holder.until_waiting("r", 1).await;
    let behind = client.waits(&behind);
    holder.until_waiting("r", 2).await;
    holder.release(&held, first).await;
    let pushed = granted(waiter).await;

    // A counter as on a server that has lost its last writes.
    let server = redis::Client::open(redis().await.url()).unwrap();
    let mut commands = server.get_multiplexed_async_connection().await.unwrap();
    let old = first.token.get() - 1_000_000;
    let () = commands.set(world.key("counter"), old).await.unwrap();
    client.release(&request, pushed).await;
    assert!(granted(behind).await.token > pushed.token);
}

/// Catches: the fast path of an acquire counts from one when only the counter is gone.
#[tokio::test]
async fn a_counter_that_is_lost_starts_at_the_clock_though_nothing_else_is_in_the_way() {
    let world = World::new().await;
    let client = world.client().await;
    let (held, first) = client.holds("r").await;
    client.release(&held, first).await;
    world.lose_counter().await;
    let (_, second) = client.holds("r").await;
    assert!(second.token > first.token, "{second:?} after {first:?}");
    let (_, third) = client.holds("s").await;
    assert!(third.token > second.token, "{third:?} after {second:?}");
}
