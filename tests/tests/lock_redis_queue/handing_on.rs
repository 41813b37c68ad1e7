//! What ends a pushed lease, or keeps it, and who is next.

use std::time::Duration;

use e2e::{
    observer::until,
    proxy::{Fault, Proxy},
    servers::redis,
};
use lock_core::{LockBackend, RenewRequest, Renewed};

use crate::world::{LONG, World, granted, sequencer, waiting};

#[tokio::test]
async fn the_first_renewal_of_a_pushed_lease_gives_its_place_up() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let (held, first) = holder.holds("r").await;
    let request = waiting("r");
    let waiter = client.waits(&request);
    holder.until_waiting("r", 1).await;
    holder.release(&held, first).await;
    let renewal = RenewRequest {
        sequencer: sequencer(&request, granted(waiter).await),
        ttl: LONG,
    };
    let renewed = client.0.renew(&[renewal]).await.pop().unwrap();
    assert!(matches!(renewed, Ok(Renewed::Renewed(_))), "{renewed:?}");
    assert_eq!(world.observer.keys(&world.key("waiters:r")).await, [""; 0]);
}

#[tokio::test]
async fn a_lease_that_was_never_confirmed_leaves_no_delay() {
    let world = World::new().await;
    let (holder, client) = (world.client().await, world.listening_client().await);
    let (held, first) = holder.holds("r").await;
    let mut request = waiting("r");
    request.lock_delay = Duration::from_secs(60);
    let slow = client.waits(&request);
    holder.until_waiting("r", 1).await;
    let next = holder.waits(&waiting("r"));
    holder.until_waiting("r", 2).await;
    holder.release(&held, first).await;
    let slow = granted(slow).await;
    assert!(granted(next).await.token > slow.token);
}

#[tokio::test]
async fn a_cancel_grants_to_who_cannot_ask() {
    let world = World::new().await;
    let holder = world.client().await;
    let proxy = Proxy::start(redis().await.url()).await;
    let client = world.client_at(&proxy.url("redis")).await;
    let (held, first) = holder.holds("r").await;
    let waiter = client.waits(&waiting("r"));
    holder.until_waiting("r", 1).await;
    let prefix = world.key("grants:");
    until("listening", async || {
        let channels = world.observer.channels().await;
        channels.iter().any(|channel| channel.starts_with(&prefix))
    })
    .await;
    proxy.inflict_on_new(Fault::HoldRequests);
    proxy.inflict_on(0, Fault::HoldRequests);
    holder.0.cancel(&held.attempt).await.unwrap();
    assert!(granted(waiter).await.token > first.token);
}
