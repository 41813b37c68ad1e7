//! The options of one waiter must not harm the others.

use std::time::Duration;

use lock_core::{
    Attempt, ErrorKind, FencingToken, Outcome, ResourceName,
    backend::{
        AcquireRequest, AttemptRef, LockBackend, LockBackendExt, Runtime, TokioRuntime, Wait,
    },
};

use crate::queue::world::{Client, World, granted, request, waiting};

fn within(time: Duration, resource: &str) -> AcquireRequest {
    let mut request = request(resource);
    request.wait = Wait::Until(TokioRuntime.now() + time);
    request
}

/// Lets a client wait, and die.
async fn dies_waiting(world: &World, watching: &Client, request: &AcquireRequest) {
    let client = world.listening_client().await;
    let waiter = client.waits(request);
    watching.until_waiting("r", 1).await;
    waiter.abort();
    drop(waiter.await);
    drop(client);
}

/// Catches: a waiter that can never be granted stays at the head of the queue.
#[tokio::test]
async fn a_floor_of_a_client_that_died_delays_no_other() {
    let world = World::new().await;
    let holder = world.client().await;
    let (held, grant) = holder.holds("r").await;
    let mut too_much = waiting("r");
    too_much.floor = Some(FencingToken::MAX);
    dies_waiting(&world, &holder, &too_much).await;
    let next = world.client().await.waits(&waiting("r"));
    holder.until_waiting("r", 2).await;
    holder.release(&held, grant).await;
    granted(next).await;
}

/// Catches: a waiter with a floor that is too high is passed over and never gets an answer.
#[tokio::test]
async fn a_waiter_with_a_floor_that_is_too_high_gets_an_error() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let (held, grant) = holder.holds("r").await;
    let mut too_much = waiting("r");
    too_much.floor = Some(FencingToken::MAX);
    let waiter = client.waits(&too_much);
    holder.until_waiting("r", 1).await;
    holder.release(&held, grant).await;
    let error = waiter.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FloorImplausible);
    client.until_waiting("r", 0).await;
}

/// Catches: a queue stays full of dead waiters for as long as a lease is held.
#[tokio::test]
async fn a_full_line_forgets_waiters_that_were_silent_for_long() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    holder.holds("r").await;
    let dead = waiting("r");
    dies_waiting(&world, &holder, &dead).await;
    let mut request = waiting("r");
    request.max_waiters = Some(1);
    let full = client.0.acquire(&request).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::QueueFull);

    world.age_details_of(&dead).await;
    let waiter = client.waits(&request);
    world.until_in_details(&request).await;
    holder.until_waiting("r", 1).await;
    assert!(!waiter.is_finished());
    waiter.abort();
}

/// Catches: a queue stays full of dead waiters while the resource is free.
#[tokio::test]
async fn a_free_resource_is_granted_however_many_are_out_of_reach() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let (held, grant) = holder.holds("r").await;
    dies_waiting(&world, &holder, &waiting("r")).await;
    // The server notices the death of a client when it reads from its connection.
    holder.release(&held, grant).await;
    let mut request = within(Duration::from_secs(20), "r");
    request.max_waiters = Some(1);
    client.0.acquire(&request).await.unwrap().granted().unwrap();
}

/// Catches: more keys than a script can unpack, so that some are granted before the script fails.
#[tokio::test]
async fn too_many_resources_at_once_are_refused_and_leave_nothing() {
    let world = World::new().await;
    let client = world.client().await;
    let one = request("r0");
    let requests = |many: u32| -> Vec<AcquireRequest> {
        let resource = |number| ResourceName::new(format!("r{number}")).unwrap();
        let request = |number| {
            let mut attempt = AttemptRef::new(&TokioRuntime, resource(number), one.attempt.holder);
            attempt.id = one.attempt.id;
            AcquireRequest::new(attempt, one.ttl)
        };
        (0..many).map(request).collect()
    };
    let error = client
        .0
        .acquire_together(&requests(5000))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(error.outcome(), Outcome::NotApplied);
    assert_eq!(world.observer.keys(&world.key("lease:*")).await, [""; 0]);
    let all = client.0.acquire_together(&requests(256)).await.unwrap();
    assert!(matches!(all, Attempt::Granted(grants) if grants.len() == 256));
}
