//! One acquisition, several attempts: at two gateways, or one after the other.

use e2e::observer::until;
use lock_core::{
    Released,
    backend::{LockBackend, LockBackendExt, Runtime, TokioRuntime},
};

use crate::queue::world::{LONG, Unconfirmed, World, again, granted, sequencer, waiting};

/// Catches: the cancel of one gateway gives up the place of the same acquisition at another
/// gateway.
#[tokio::test]
async fn a_lease_that_one_gateway_gives_up_is_granted_to_the_other_one() {
    let world = World::new().await;
    let (holder, rival) = (world.client().await, world.client().await);
    let (first, second) = (
        world.listening_client().await,
        world.listening_client().await,
    );
    let (held, grant) = holder.holds("r").await;
    let request = waiting("r");
    let waiter = first.waits(&request);
    holder.until_waiting("r", 1).await;
    let behind = rival.waits(&waiting("r"));
    holder.until_waiting("r", 2).await;

    let given_up = again(&request);
    let there_too = second.waits(&given_up);
    world.until_in_details(&given_up).await;
    there_too.abort();
    second.0.cancel(&given_up.attempt).await.unwrap();
    holder.release(&held, grant).await;

    let grant = granted(waiter).await;
    first.release(&request, grant).await;
    assert!(granted(behind).await.token > grant.token, "it was passed");
}

/// Catches: a push to a caller that has gone blocks the queue until its lease ends.
#[tokio::test]
async fn a_grant_without_a_waiter_is_sent_back() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let (held, grant) = holder.holds("r").await;
    let request = waiting("r");
    let waiter = client.waits(&request);
    holder.until_waiting("r", 1).await;
    waiter.abort();
    holder.release(&held, grant).await;
    until("told that the attempt has ended", async || {
        let tombstone = format!("/{}", request.attempt.id);
        let mut look = redis::cmd("ZSCORE");
        look.arg(world.key("suspended:r")).arg(tombstone);
        world.run::<Option<u64>>(&look).await.is_some()
    })
    .await;
    client.until_waiting("r", 0).await;
}

/// Catches: a push that comes after the release of its lease leaves a tombstone, so that each
/// request takes the slow path.
#[tokio::test]
async fn a_push_that_is_sent_back_for_nothing_leaves_nothing() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let (ended, grant) = client.holds("r").await;
    let lease = sequencer(&ended, grant);
    let released = client.0.release(&lease, false).await.unwrap();
    assert_eq!(released, Released::Released);
    world.push(&ended, grant.token.get(), 1).await;

    // Pushes are sent back in their order.
    let (held, grant) = holder.holds("s").await;
    let gone = waiting("s");
    let waiter = client.waits(&gone);
    holder.until_waiting("s", 1).await;
    waiter.abort();
    holder.release(&held, grant).await;
    until("the next push is sent back", async || {
        let mut look = redis::cmd("ZSCORE");
        look.arg(world.key("suspended:s"))
            .arg(format!("/{}", gone.attempt.id));
        world.run::<Option<u64>>(&look).await.is_some()
    })
    .await;
    let mut exists = redis::cmd("EXISTS");
    exists.arg(world.key("suspended:r"));
    assert_eq!(world.run::<u32>(&exists).await, 0);
}

/// A client repeats a request for ever, each time as a new attempt.
/// Catches: a lease that keeps all attempts, or that ends with an attempt that it has forgotten.
#[tokio::test]
async fn a_lease_does_not_grow_for_ever_and_ends_for_no_attempt_that_relies_on_it() {
    const ATTEMPTS: usize = 300;
    let world = World::new().await;
    let client = world.client().await;
    let (request, grant) = client.holds("r").await;
    let mut attempts = vec![request.clone()];
    for _ in 1..ATTEMPTS {
        let another = again(&request);
        let replay = client.0.acquire(&another).await.unwrap();
        assert_eq!(replay.granted().unwrap().token, grant.token);
        attempts.push(another);
    }
    let size = world.observer.size(&world.key("lease:r")).await;
    assert!(size < 128 * 17 + 100, "{size} bytes");

    let lease = sequencer(&request, grant);
    for (number, attempt) in attempts.iter().enumerate() {
        if number % 2 == 0 {
            client.0.cancel(&attempt.attempt).await.unwrap();
        } else {
            let given_back = client.0.release_hold(&lease, attempt.attempt.id).await;
            assert_eq!(given_back.unwrap(), Released::Released, "{number}");
        }
    }
    let seen = client.0.inspect(&request.attempt.resource).await.unwrap();
    assert_eq!(seen.holder.unwrap().token, grant.token, "some may be left");
    client.release(&request, grant).await;
    let seen = client.0.inspect(&request.attempt.resource).await.unwrap();
    assert!(seen.holder.is_none());
}

/// Catches: a pushed lease that ends after a second, because an acquire of several resources does
/// not confirm it.
#[tokio::test]
async fn a_pushed_lease_that_is_acquired_together_with_others_is_confirmed() {
    let world = World::new().await;
    let holder = world.client().await;
    let unconfirmed = Unconfirmed::after(&holder, &world).await;
    let request = &unconfirmed.request;

    let asked = TokioRuntime.now();
    let together = holder.0.acquire_together(&[again(request)]).await;
    let grant = together.unwrap().granted().unwrap()[0];
    assert_eq!(grant.token, unconfirmed.token);
    unconfirmed.waiter.abort();
    assert!(grant.lease.deadline() >= asked + LONG.get(), "as asked for");
    let seen = holder.0.inspect(&request.attempt.resource).await.unwrap();
    let left = seen.holder.unwrap().remaining;
    assert!(left > LONG.get() / 2, "{left:?} left");
    assert_eq!(world.observer.keys(&world.key("waiters:r")).await, [""; 0]);
    holder.release(request, grant).await;
}
