//! A request was served, but its answer never came. Or it is not known whether it was served.

use std::time::Duration;

use e2e::{observer::until, proxy::Fault};
use lock_core::{
    Released, Ttl,
    backend::{Runtime, TokioRuntime},
};

use crate::faults::world::{RESPONSE_TIMEOUT, World, is_free};

/// The client gets no sign, or it sees that the connection is gone.
const WAYS_TO_LOSE: [Fault; 3] = [Fault::DropReplies, Fault::Cut, Fault::Reset];

#[tokio::test]
async fn a_lost_answer_to_an_acquire_is_one_hold_one_token_and_no_extension() {
    const TTL: Ttl = Ttl::secs(60);
    for way in WAYS_TO_LOSE {
        let world = World::new().await;
        let before = world.locks.acquire("r").await.unwrap();
        let last = before.token().get();
        before.release().await.unwrap();

        let lost = world.proxy.at_reply_to(":r", way);
        let asked = TokioRuntime.now();
        let guard = world
            .locks
            .acquire("r")
            .ttl(TTL)
            .renew(false)
            .await
            .unwrap();
        let took = TokioRuntime.now().since(asked);
        assert!(lost.has_sprung(), "{way:?} did not happen");
        assert_eq!(guard.token().get(), last + 1, "a second token was drawn");
        assert_eq!(world.observer.leases("*:lease:*").await.len(), 1);
        if way == Fault::DropReplies {
            // In the end the client got the grant to the first request, with the time that was left
            // of it.
            assert!(took >= RESPONSE_TIMEOUT, "{took:?}");
            let resource = guard.resource();
            let seen = world.rival.inspect(resource).await.unwrap().holder;
            for left in [guard.remaining().unwrap(), seen.unwrap().remaining] {
                assert!(left <= TTL.get() - RESPONSE_TIMEOUT, "{left:?} left");
            }
        }
        guard.release().await.unwrap();
        let next = world.rival.acquire("r").await.unwrap();
        assert_eq!(next.token().get(), last + 2);
    }
}

#[tokio::test]
async fn a_grant_that_ended_before_its_lost_answer_was_asked_for_again_is_no_error() {
    const TTL: Ttl = Ttl::millis(250);
    assert!(TTL.get() < RESPONSE_TIMEOUT);
    let world = World::new().await;
    let before = world.locks.acquire("r").await.unwrap();
    let last = before.token().get();
    before.release().await.unwrap();
    let lost = world.proxy.at_reply_to(":r", Fault::DropReplies);
    let guard = world.locks.acquire("r").ttl(TTL).await.unwrap();
    assert!(lost.has_sprung());
    // The grant that was lost belongs to no holder. A grant whose answer was seen too late belongs
    // to no holder, either.
    assert!(guard.token().get() >= last + 2, "granted twice");
}

#[tokio::test]
async fn a_release_without_an_answer_is_sent_again_and_hurts_no_later_holder() {
    for way in WAYS_TO_LOSE {
        let world = World::new().await;
        let guard = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
        let lost = world.proxy.at_reply_to(":r", way);
        // The request is sent again on another connection.
        let connections = world.proxy.connections();
        world.proxy.inflict_on_new(Fault::HoldRequests);
        let release = tokio::spawn(guard.release());
        until("no answer came", async || lost.has_sprung()).await;
        let next = world.rival.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
        until("sent again", async || {
            world.proxy.connections() > connections
        })
        .await;
        world.proxy.let_go();
        let released = release.await.unwrap().unwrap();
        assert_eq!(released, Released::Released, "{way:?}");
        assert!(
            !is_free(&world.rival, "r").await,
            "it released another's lease"
        );
        assert_eq!(next.release().await.unwrap(), Released::Released);
    }
}

#[tokio::test]
async fn a_release_that_never_arrived_is_sent_again() {
    for way in [Fault::DropRequests, Fault::Cut, Fault::Reset] {
        let world = World::new().await;
        let guard = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
        let rival = world.rival.clone();
        let waiter = tokio::spawn(async move { rival.acquire("r").await });
        let lost = world.proxy.at_request(":r", way);
        let released = guard.release().await.unwrap();
        assert_eq!(released, Released::Released, "{way:?}");
        assert!(lost.has_sprung());
        // The ttl of the released lease is 60 s.
        let granted = tokio::time::timeout(Duration::from_secs(20), waiter).await;
        granted.unwrap().unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test]
async fn an_acquire_that_arrives_after_its_release_makes_no_ghost_hold() {
    let world = World::new().await;
    // The first request stays under way. The second, on a new connection, is granted.
    let held_up = world.proxy.at_request(":r", Fault::HoldRequests);
    let guard = world.locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    let first = held_up.connection().expect("it was held up");
    let token = guard.token();
    guard.release().await.unwrap();
    assert!(!world.proxy.has_ended(first), "it has arrived, or is lost");

    world.proxy.let_go();
    until("the late request has arrived", async || {
        world.proxy.has_ended(first)
    })
    .await;
    assert!(is_free(&world.rival, "r").await, "a ghost holds it");
    let next = world.rival.acquire("r").await.unwrap();
    assert!(next.token() > token);
}

#[tokio::test]
async fn renewals_without_an_answer_are_repeated_within_the_lease() {
    let world = World::new().await;
    let ttl = Ttl::secs(3);
    let guard = world.locks.acquire("r").ttl(ttl).await.unwrap();
    for way in WAYS_TO_LOSE {
        let lost = world.proxy.at_reply_to(":r", way);
        until("renewed in vain", async || lost.has_sprung()).await;
        let renewed = world.proxy.at_reply_to(":r", Fault::Nothing);
        until("renewed", async || renewed.has_sprung()).await;
        assert!(guard.remaining().is_ok(), "{way:?}");
    }
    assert_eq!(guard.release().await.unwrap(), Released::Released);
}
