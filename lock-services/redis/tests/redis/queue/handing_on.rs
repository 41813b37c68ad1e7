//! The end of a pushed lease, or its confirmation, and the next grant.

use e2e::{
    observer::until,
    proxy::{Fault, Proxy},
    servers::{Redis, redis},
};
use lock_core::{
    ResourceName, Ttl,
    backend::{AttemptRef, LockBackend, LockBackendExt, TokioRuntime},
};

use crate::queue::world::{Client, Waiter, World, granted, request, waiting};

/// The greatest number of waiters that one script suspends.
const MOVES: u64 = 64;

/// A client that gets its grant and confirms it, but whose other requests are lost.
struct Mute {
    waiter: Waiter,
    proxy: Proxy,
}

impl Mute {
    /// A client whose waiter is the last of this many in the queue for `r`.
    async fn in_line(world: &World, url: &str, watching: &Client, waiters: u64) -> Self {
        let proxy = Proxy::start(url).await;
        let client = world.client_at(&proxy.url("redis")).await;
        client.listen(&world.client_at(url).await).await;
        let waiter = client.waits(&waiting("r"));
        watching.until_waiting("r", waiters).await;
        proxy.inflict_on_new(Fault::HoldRequests);
        proxy.inflict_on(COMMANDS, Fault::HoldRequests);
        Self { waiter, proxy }
    }
}

/// The connections of a client that has never renewed anything, by their numbers at its proxy.
const COMMANDS: usize = 0;
const PUSHES: usize = 1;

/// Waits until the lease has ended. Only time ends it.
async fn until_ended(watching: &Client) {
    let resource = ResourceName::new("r").unwrap();
    until("the lease has ended", async || {
        let seen = watching.0.inspect(&resource).await.unwrap();
        seen.holder.is_none()
    })
    .await;
}

/// An acquire of several resources settles a lease that ran out as a single acquire does. The
/// client that did not confirm its grant is not the first to get the next grant.
#[tokio::test]
async fn several_at_once_suspend_a_waiter_that_did_not_confirm() {
    let (world, url) = (World::counting().await, redis().await.url());
    let holder = world.client().await;
    let (held, first) = holder.holds("r").await;
    let silent = Mute::in_line(&world, url, &holder, 1).await;
    silent.proxy.inflict(Fault::HoldRequests);
    let next = Mute::in_line(&world, url, &holder, 2).await;
    holder.release(&held, first).await;
    let unconfirmed = holder.until_handed_on(&held.attempt.resource, first).await;
    until_ended(&holder).await;

    let (one, mut other) = (request("r"), request("other"));
    other.attempt = AttemptRef::new(&TokioRuntime, other.attempt.resource, one.attempt.holder);
    other.attempt.id = one.attempt.id;
    let both = [one.clone(), other];
    let grants = holder.0.acquire_together(&both).await.unwrap();
    let grants = grants.granted().expect("both are free");
    assert!(grants[0].token > unconfirmed);
    holder.release(&one, grants[0]).await;
    let after_both = grants[1].token.next();
    assert_eq!(Some(granted(next.waiter).await.token), after_both);
}

/// Catches: a cancel that ends a lease and grants it to no waiter.
#[tokio::test]
async fn a_cancel_grants_to_a_waiter_that_cannot_ask() {
    let (world, url) = (World::new().await, redis().await.url());
    let holder = world.client().await;
    let (held, first) = holder.holds("r").await;
    let mute = Mute::in_line(&world, url, &holder, 1).await;
    holder.0.cancel(&held.attempt).await.unwrap();
    assert!(granted(mute.waiter).await.token > first.token);
}

/// Catches: one script suspends 64 dead waiters at most, and is not run again.
#[tokio::test]
async fn a_release_goes_on_until_it_has_reached_a_live_waiter() {
    let (world, url) = (World::new().await, redis().await.url());
    let holder = world.client().await;
    let (held, first) = holder.holds("r").await;
    let dead = world.listening_client().await;
    let line: Vec<_> = (0..=MOVES).map(|_| dead.waits(&waiting("r"))).collect();
    holder.until_waiting("r", MOVES + 1).await;
    for waiter in line {
        waiter.abort();
        drop(waiter.await);
    }
    drop(dead);
    let mute = Mute::in_line(&world, url, &holder, MOVES + 2).await;
    holder.release(&held, first).await;
    assert!(granted(mute.waiter).await.token > first.token);
}

/// Catches: a waiter that asks is suspended by its own request, and the next in line is served
/// before it.
#[tokio::test]
async fn a_waiter_that_asks_has_its_turn_although_its_client_is_out_of_reach() {
    let (world, server) = (World::new().await, Redis::start().await);
    let url = server.url();
    let holder = world.client_at(url).await;
    let proxy = Proxy::start(url).await;
    let client = world.client_at(&proxy.url("redis")).await;
    client.listen(&holder).await;
    let mut held = request("r");
    held.ttl = Ttl::secs(3);
    holder.0.acquire(&held).await.unwrap().granted().unwrap();
    // A waiter that will not ask, so that the script that serves the other waiter meets it.
    let silent = client.waits(&waiting("r"));
    holder.until_waiting("r", 1).await;
    silent.abort();
    drop(silent.await);
    let request = waiting("r");
    let asks = client.waits(&request);
    holder.until_waiting("r", 2).await;
    // The server closes the connection for pushes, and the client does not notice.
    proxy.inflict_on(PUSHES, Fault::HoldReplies);
    let mut commands = redis::Client::open(url)
        .unwrap()
        .get_multiplexed_async_connection()
        .await
        .unwrap();
    let mut kill = redis::cmd("CLIENT");
    let kill = kill.arg("KILL").arg("TYPE").arg("pubsub");
    let killed: u32 = kill.query_async(&mut commands).await.unwrap();
    assert_eq!(killed, 1);
    let next = Mute::in_line(&world, url, &holder, 3).await;

    let grant = granted(asks).await;
    client.release(&request, grant).await;
    assert!(granted(next.waiter).await.token > grant.token);
}
