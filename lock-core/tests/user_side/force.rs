//! The operations of an operator: look, list, and end a lease of another holder.

use std::future::IntoFuture;

use lock_core::{ForceReleased, LostReason, Operation, ResourceName, Ttl};

use crate::world::{TTL, poll_times, world};

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

/// Catches: a holder whose lease was ended by force goes on until its deadline, and its clean-up
/// ends the next lease.
#[tokio::test]
async fn force_tells_whom_it_hit_and_the_holder_learns_of_it_by_its_next_renewal() {
    let world = world();
    let acquire = world.locks().acquire("r").ttl(TTL).metadata("node 7");
    let guard = acquire.await.unwrap();
    let forced = world.theirs.locks().force_release(&resource()).await;
    let ForceReleased::Ended { holder, revocation } = forced.unwrap() else {
        panic!("it was held");
    };
    assert_eq!(holder.token, guard.token());
    assert_eq!(holder.fingerprint, guard.sequencer().holder().fingerprint());
    assert_eq!(holder.metadata.unwrap().as_str(), "node 7");
    assert!(guard.remaining().is_ok(), "it cannot know yet");
    let next = world.theirs.locks().acquire("r").ttl(TTL).await.unwrap();
    assert!(guard.token() < revocation && revocation < next.token());

    world.clock.advance(TTL.get() / 3);
    assert_eq!(guard.lost().await.reason(), LostReason::NotHolder);
    drop(guard);
    assert_eq!(world.holder("r").await.unwrap().token, next.token());
}

#[tokio::test]
async fn force_leaves_alone_a_free_resource_and_a_holder_that_came_after_the_look() {
    let world = world();
    let name = resource();
    let force = || world.theirs.locks().force_release(&name);
    assert_eq!(force().await.unwrap(), ForceReleased::NotHeld);

    let seen = world.locks().acquire("r").await.unwrap();
    let mut forcing = std::pin::pin!(force());
    // The operator has looked, and the request to end that lease is under way.
    assert!(!poll_times(forcing.as_mut(), 3).await);
    assert_eq!(world.chaos.counts(Operation::ForceRelease).requests, 0);
    seen.release().await.unwrap();
    let other = world.locks().acquire("r").await.unwrap();
    assert_eq!(forcing.await.unwrap(), ForceReleased::NotHeld);
    assert_eq!(world.holder("r").await.unwrap().token, other.token());
}

/// Catches: a revocation that keeps the resource when its caller goes away.
#[tokio::test]
async fn force_that_is_dropped_at_any_await_leaves_the_lease_or_nothing() {
    let mut awaits = 0;
    loop {
        let world = world();
        let guard = world.locks().acquire("r").ttl(TTL).await.unwrap();
        let name = resource();
        let force = world.theirs.locks().force_release(&name);
        let completed = poll_times(force, awaits).await;
        let sent = world.chaos.counts(Operation::ForceRelease).requests > 0;
        assert_eq!(world.holder("r").await.is_none(), sent);
        let next = world.theirs.locks().acquire("r").ttl(Ttl::MAX);
        drop(guard);
        next.await.unwrap().release().await.unwrap();
        world.until_free("r").await;
        if completed {
            assert!(sent);
            break;
        }
        awaits += 1;
    }
    assert!(awaits >= 4, "two requests there and back: {awaits} awaits");
}

#[tokio::test]
async fn a_list_has_the_held_resources_and_their_waiters_by_name() {
    let world = world();
    let locks = world.locks();
    assert_eq!(locks.list().await.unwrap(), []);
    let b = locks.acquire("b").metadata("of b").await.unwrap();
    let a = locks.acquire("a").await.unwrap();
    let released = locks.acquire("c").await.unwrap();
    released.release().await.unwrap();
    let mut waiting = std::pin::pin!(locks.acquire("b").into_future());
    assert!(!poll_times(waiting.as_mut(), 3).await);

    let listed = world.theirs.locks().list().await.unwrap();
    let names: Vec<_> = listed.iter().map(|entry| entry.resource.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let tokens = listed.iter().map(|entry| &entry.inspection);
    let tokens: Vec<_> = tokens
        .map(|seen| (seen.holder.as_ref().unwrap().token, seen.waiters))
        .collect();
    assert_eq!(tokens, [(a.token(), Some(0)), (b.token(), Some(1))]);
    let note = &listed[1].inspection.holder.as_ref().unwrap().metadata;
    assert_eq!(note.as_ref().unwrap().as_str(), "of b");
    let secret = b.sequencer().holder().expose();
    assert!(!format!("{listed:?}").contains(&secret));
}
