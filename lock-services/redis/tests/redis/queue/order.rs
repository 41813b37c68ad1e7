//! First come, first served, and the delay by a client that has gone.

use std::time::Duration;

use e2e::{
    observer::until,
    proxy::{Fault, Proxy},
    servers::redis,
};
use lock_core::{
    Attempt, Ttl,
    backend::{LockBackend, LockBackendExt},
};

use crate::queue::world::{World, granted, request, waiting};

/// A time that is longer than a pushed lease. Only time ends such a lease, so the test has to
/// sleep.
const PAST_PROVISIONAL: Duration = Duration::from_millis(1050);

/// Catches: a client that finds a lease that ran out takes the resource, although others wait.
#[tokio::test]
async fn a_newcomer_that_finds_a_lease_run_out_is_not_granted_before_the_line() {
    let world = World::new().await;
    let (holder, newcomer) = (world.client().await, world.client().await);
    let proxy = Proxy::start(redis().await.url()).await;
    let client = world.client_at(&proxy.url("redis")).await;
    let mut short = request("r");
    short.ttl = Ttl::millis(1500);
    holder.0.acquire(&short).await.unwrap().granted().unwrap();
    let first = waiting("r");
    let waiter = client.waits(&first);
    holder.until_waiting("r", 1).await;
    until("listening", async || world.channels().await == 1).await;
    // The client cannot send requests, but pushes reach it.
    proxy.inflict_on(0, Fault::HoldRequests);
    until("run out", async || {
        let view = holder.0.inspect(&first.attempt.resource).await.unwrap();
        view.holder.is_none()
    })
    .await;
    let look = newcomer.0.acquire(&request("r")).await.unwrap();
    assert!(matches!(look, Attempt::Held { .. }), "{look:?}");
    granted(waiter).await;
}

/// Catches: the last waiter of a process that was out of reach comes back as the first.
#[tokio::test]
async fn a_waiter_that_asks_brings_back_the_other_waiters_of_its_process() {
    let world = World::counting().await;
    let holder = world.client().await;
    let proxy = Proxy::start(redis().await.url()).await;
    let client = world.client_at(&proxy.url("redis")).await;
    client.listen(&holder).await;
    let (held, grant) = holder.holds("r").await;
    let slow = client.waits(&waiting("r"));
    holder.until_waiting("r", 1).await;
    // A waiter that is in the queue and reachable, but sends no requests any more. A push to it
    // comes back at once.
    let silent = client.waits(&waiting("r"));
    holder.until_waiting("r", 2).await;
    silent.abort();
    // The client cannot confirm its grant.
    proxy.inflict_on_new(Fault::HoldRequests);
    proxy.inflict(Fault::HoldRequests);
    holder.release(&held, grant).await;
    let unconfirmed = holder.until_handed_on(&held.attempt.resource, grant).await;
    assert_eq!(unconfirmed.get(), grant.token.get() + 1);
    tokio::time::sleep(PAST_PROVISIONAL).await;
    slow.abort();
    proxy.let_go();

    let last = granted(client.waits(&waiting("r"))).await;
    assert_eq!(last.token.get(), unconfirmed.get() + 2, "it passed another");
}

/// Catches: a grant that fails because there is no counter takes its waiter out of the queue.
#[tokio::test]
async fn the_head_of_a_line_keeps_its_place_when_the_counter_is_lost() {
    let world = World::counting().await;
    let (holder, client) = (world.client().await, world.client().await);
    let (held, grant) = holder.holds("r").await;
    let waiters = [waiting("r"), waiting("r")];
    let mut line = Vec::new();
    for (place, request) in (1..).zip(&waiters) {
        line.push(client.waits(request));
        holder.until_waiting("r", place).await;
    }
    world.lose_counter().await;
    holder.release(&held, grant).await;
    let second = line.pop().unwrap();
    let first = granted(line.pop().unwrap()).await;
    assert!(!second.is_finished(), "it has passed the first");
    client.release(&waiters[0], first).await;
    assert!(granted(second).await.token > first.token);
}
