//! The answer to a release has the full lease of a waiter of the same client.

use e2e::{
    proxy::{Fault, Proxy},
    servers::redis,
};
use futures_util::FutureExt;
use lock_core::{
    FencingToken, Released,
    backend::{AcquireRequest, Grant, LockBackend, Runtime, TokioRuntime},
};

use crate::queue::world::{Client, LONG, World, granted, sequencer, waiting};

/// Acquires `r` for a client. There are no other keys of `r`.
async fn holding(world: &World, client: &Client) -> (AcquireRequest, Grant) {
    let (held, grant) = client.holds("r").await;
    assert!(state(world).await.contains(":f:"));
    (held, grant)
}

async fn state(world: &World) -> String {
    let lease = world.observer.text(&world.key("lease:r")).await;
    lease.expect("it is held")
}

/// The token of the draw that is this many draws after the grant.
fn drawn(draws: u64, after: Grant) -> FencingToken {
    FencingToken::new(after.token.get() + draws).unwrap()
}

/// Catches: a push or a confirm although the client already knows of the grant.
#[tokio::test]
async fn a_waiter_of_the_client_that_releases_has_its_lease_by_the_answer() {
    let world = World::counting().await;
    let client = world.listening_client().await;
    let (held, first) = holding(&world, &client).await;
    let next = waiting("r");
    let waiter = client.waits(&next);
    client.until_waiting("r", 1).await;
    let lease = sequencer(&held, first);
    assert_eq!(
        client.0.release(&lease, false).await.unwrap(),
        Released::Released
    );
    let grant = granted(waiter).await;
    assert_eq!(grant.token, drawn(1, first));
    let left = grant.lease.deadline().since(TokioRuntime.now());
    assert!(left > LONG.get() / 2, "{left:?}");
    // A request of the waiter would have changed the state.
    assert!(state(&world).await.contains(":h:"));
    client.until_waiting("r", 0).await;
    client.release(&next, grant).await;
    assert_eq!(world.observer.leases(&world.key("lease:r")).await, [""; 0]);
}

/// Catches: a waiter of another client that has a full lease before its client has shown that it is
/// present.
#[tokio::test]
async fn a_waiter_of_another_client_is_offered_its_lease() {
    let world = World::counting().await;
    let (client, other) = (
        world.listening_client().await,
        world.listening_client().await,
    );
    let (held, first) = holding(&world, &client).await;
    let waiters = [other.waits(&waiting("r"))];
    client.until_waiting("r", 1).await;
    // A second waiter, so that the client asks for a grant in the answer.
    let behind = client.waits(&waiting("r"));
    client.until_waiting("r", 2).await;
    client
        .0
        .release(&sequencer(&held, first), false)
        .await
        .unwrap();
    for waiter in waiters {
        assert_eq!(granted(waiter).await.token, drawn(1, first));
    }
    let confirmed = state(&world).await;
    assert!(confirmed.contains(":w:"), "{confirmed}");
    behind.abort();
}

/// Catches: a lease that stays for its whole ttl with an attempt that has gone.
#[tokio::test]
async fn a_lease_that_is_handed_to_an_attempt_that_has_gone_is_sent_back() {
    let world = World::counting().await;
    let client = world.listening_client().await;
    let (held, first) = holding(&world, &client).await;
    let gone = client.waits(&waiting("r"));
    client.until_waiting("r", 1).await;
    let waiter = client.waits(&waiting("r"));
    client.until_waiting("r", 2).await;
    gone.abort();
    gone.await.unwrap_err();
    client
        .0
        .release(&sequencer(&held, first), false)
        .await
        .unwrap();
    assert_eq!(granted(waiter).await.token, drawn(2, first));
}

/// Catches: a release that ends with its caller, so that the grant of a waiter is lost.
#[tokio::test]
async fn a_caller_that_goes_away_during_its_release_keeps_no_waiter_waiting() {
    let world = World::counting().await;
    let client = world.listening_client().await;
    let (held, first) = holding(&world, &client).await;
    let waiter = client.waits(&waiting("r"));
    client.until_waiting("r", 1).await;
    let lease = sequencer(&held, first);
    let released = client.0.release(&lease, false).now_or_never();
    assert!(released.is_none(), "it was answered at once");
    assert_eq!(granted(waiter).await.token, drawn(1, first));
}

/// Catches: a grant that is lost with the answer to the release.
#[tokio::test]
async fn a_waiter_whose_grant_is_lost_with_the_answer_to_a_release_finds_it() {
    let world = World::counting().await;
    let proxy = Proxy::start(redis().await.url()).await;
    let client = world.client_at(&proxy.url("redis")).await;
    client.listen(&world.client().await).await;
    let (held, first) = holding(&world, &client).await;
    let waiter = client.waits(&waiting("r"));
    client.until_waiting("r", 1).await;
    let lease = sequencer(&held, first);
    let beginning = format!("{}:{}:", first.token, held.attempt.holder.digest());
    let lost = proxy.at_reply_to(&beginning, Fault::Cut);
    client.0.release(&lease, false).await.unwrap_err();
    assert!(lost.has_sprung(), "no answer was lost");
    assert_eq!(granted(waiter).await.token, drawn(1, first));
}
