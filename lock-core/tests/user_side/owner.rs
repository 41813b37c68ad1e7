//! One acquisition with several guards: the lease ends with the last guard, and not before.

use std::{future::IntoFuture, time::Duration};

use lock_core::{
    Attempt, ErrorKind, Holder, LeaseGuard, LostReason, Operation, Outcome, Owner, Released, Ttl,
};
use lock_testing::Fault;

use crate::world::{TTL, World, poll_times, world, yield_to_others};

const SHORT: Ttl = Ttl::secs(1);
const LONG: Ttl = Ttl::secs(60);

impl World {
    /// Moves the clock in small steps, and lets the other tasks do what is due.
    async fn pass(&self, time: Duration) {
        for _ in 0..30 {
            self.clock.advance(time / 30);
            yield_to_others().await;
        }
    }

    async fn hold(&self, owner: &Owner) -> LeaseGuard {
        let acquire = self.locks().acquire("r").owner(owner).ttl(TTL);
        acquire.await.unwrap()
    }
}

/// Catches: an owner waits for itself, or its first release ends the lease.
#[tokio::test]
async fn an_owner_gets_its_lease_again_at_once_and_gives_it_back_as_often() {
    let (world, owner) = (world(), Owner::new());
    let outer = world.hold(&owner).await;
    let inner = world.hold(&owner).await;
    assert_eq!(inner.sequencer(), outer.sequencer());
    assert_eq!(inner.sequencer().holder(), owner.id());
    let stranger = world.locks().acquire("r").owner(&Owner::new());
    assert!(matches!(
        stranger.try_acquire().await.unwrap(),
        Attempt::Held { .. }
    ));

    assert_eq!(outer.release().await.unwrap(), Released::Released);
    assert!(world.holder("r").await.is_some(), "one guard is left");
    assert!(inner.remaining().is_ok());
    let token = inner.token();
    drop(inner);
    world.until_free("r").await;
    // The owner begins again with a new lease.
    let again = world.hold(&owner).await;
    assert!(again.token() > token);
    again.release().await.unwrap();
}

#[tokio::test]
async fn after_its_lease_was_lost_an_owner_is_refused() {
    let (world, owner) = (world(), Owner::new());
    let (one, other) = (world.hold(&owner).await, world.hold(&owner).await);
    world.ours.freeze();
    world.clock.advance(TTL.get());
    for guard in [&one, &other] {
        assert_eq!(guard.lost().await.reason(), LostReason::Expired);
    }
    let error = world.locks().acquire("r").owner(&owner).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Released, Outcome::NotApplied)
    );
    let fresh = world.hold(&Owner::new()).await;
    assert!(fresh.token() > one.token());
    // Once the process of the lost guards goes on, their late requests leave the new lease alone.
    world.ours.thaw();
    assert_eq!(one.release().await.unwrap(), Released::NotHolder);
    drop(other);
    let other = world.locks().acquire("other").await.unwrap();
    other.release().await.unwrap();
    assert_eq!(world.holder("r").await.unwrap().token, fresh.token());
}

/// Catches: a hold of one process ends with a release in another.
#[tokio::test]
async fn an_owner_goes_on_in_another_process() {
    let (world, owner) = (world(), Owner::new());
    let here = world.hold(&owner).await;
    let secret: Holder = owner.id().expose().parse().unwrap();
    let there = Owner::from_id(secret);
    let acquire = world.theirs.locks().acquire("r").owner(&there).ttl(TTL);
    let there = acquire.await.unwrap();
    assert_eq!(there.sequencer(), here.sequencer());
    here.release().await.unwrap();
    // Each process keeps up its own leases.
    for _ in 0..5 {
        world.clock.advance(TTL.get() / 3);
        while there.remaining().unwrap() <= TTL.get() / 3 * 2 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(world.holder("r").await.unwrap().token, there.token());
    there.release().await.unwrap();
    assert_eq!(world.holder("r").await, None);
}

/// The watchdog sends a release again whose answer was lost. The copy must not give back the other
/// guard's hold.
#[tokio::test]
async fn a_release_that_is_sent_again_takes_no_other_hold() {
    let (world, owner) = (world(), Owner::new());
    let (one, other) = (world.hold(&owner).await, world.hold(&owner).await);
    world.chaos.next(Operation::Release, Fault::DropReply);
    assert_eq!(one.release().await.unwrap(), Released::Released);
    assert_eq!(world.chaos.counts(Operation::Release).requests, 2);
    assert!(other.remaining().is_ok());
    assert_eq!(world.holder("r").await.unwrap().token, other.token());
    other.release().await.unwrap();
    assert_eq!(world.holder("r").await, None);
}

/// The remains of a guard with a short ttl after an outage.
#[derive(Clone, Copy, Debug)]
enum Left {
    /// Its hold, because the guard was dropped.
    Dropped,
    /// Its hold, because the result of its release is unknown.
    Released,
    /// The hold of an acquisition without answer.
    Unanswered,
}

/// The lease outlives the outage, because another guard has a longer ttl. So the clean-up must go
/// on after the outage, too.
#[tokio::test]
async fn a_hold_is_given_back_after_an_outage_that_was_longer_than_its_own_ttl() {
    for left in [Left::Dropped, Left::Released, Left::Unanswered] {
        let (world, owner) = (world(), Owner::new());
        let long = world.locks().acquire("r").owner(&owner).ttl(LONG);
        let long = long.await.unwrap();
        let short = || world.locks().acquire("r").owner(&owner).ttl(SHORT);
        world.chaos.always(Operation::Cancel, Fault::DropRequest);
        world.chaos.always(Operation::Release, Fault::DropRequest);
        match left {
            Left::Dropped => drop(short().await.unwrap()),
            Left::Released => {
                let release = short().await.unwrap().release();
                drop(world.in_vain(release).await.unwrap_err());
            }
            Left::Unanswered => {
                world.chaos.next(Operation::Acquire, Fault::DropReply);
                drop(short().wait(Duration::ZERO).await.unwrap_err());
            }
        }
        world.pass(SHORT.get() * 3).await;
        world.chaos.calm();
        world.pass(SHORT.get() * 3).await;
        assert_eq!(long.release().await.unwrap(), Released::Released);
        assert_eq!(world.holder("r").await, None, "{left:?} holds it");
        assert_eq!(world.locks().stats().abandoned, 0);
    }
}

/// The release of one guard ends the lease for all that know the holder, however long the release
/// takes.
#[tokio::test]
async fn a_lease_of_a_known_holder_is_released_after_an_outage_that_was_longer_than_the_ttl() {
    let (world, holder) = (world(), Holder::random());
    let acquire = |ttl| world.locks().acquire("r").holder(holder).ttl(ttl);
    let long = acquire(LONG).await.unwrap();
    let short = acquire(SHORT).await.unwrap();
    world.chaos.always(Operation::Release, Fault::DropRequest);
    world.in_vain(short.release()).await.unwrap_err();
    world.pass(SHORT.get() * 3).await;
    world.chaos.calm();
    world.pass(SHORT.get() * 3).await;
    assert_eq!(world.holder("r").await, None, "it was released");
    drop(long);
}

/// A late copy of the request that took the hold does not take it again.
#[tokio::test]
async fn a_late_request_of_a_hold_that_was_given_back_holds_nothing() {
    let (world, owner) = (world(), Owner::new());
    let outer = world.hold(&owner).await;
    world.chaos.next(Operation::Acquire, Fault::Duplicate);
    let inner = world.hold(&owner).await;
    inner.release().await.unwrap();
    world.chaos.deliver_late().await;
    outer.release().await.unwrap();
    assert_eq!(world.holder("r").await, None, "a ghost holds it");
}

#[tokio::test]
async fn an_acquire_that_is_dropped_at_any_await_leaves_no_hold() {
    for held_already in [false, true] {
        let mut awaits = 0;
        loop {
            let (world, owner) = (world(), Owner::new());
            let outer = match held_already {
                true => Some(world.hold(&owner).await),
                false => None,
            };
            let acquire = world.locks().acquire("r").owner(&owner).into_future();
            let completed = poll_times(acquire, awaits).await;
            if let Some(outer) = outer {
                assert!(outer.remaining().is_ok());
                outer.release().await.unwrap();
            }
            world.until_free("r").await;
            if completed {
                break;
            }
            awaits += 1;
        }
        assert!(awaits > 2, "there and back, and yet {awaits} awaits");
    }
}

#[tokio::test]
async fn a_release_that_is_dropped_at_any_await_is_finished_and_takes_one_hold() {
    let mut awaits = 0;
    loop {
        let (world, owner) = (world(), Owner::new());
        let (one, other) = (world.hold(&owner).await, world.hold(&owner).await);
        let completed = poll_times(one.release(), awaits).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(world.holder("r").await.is_some(), "the other holds it");
        other.release().await.unwrap();
        world.until_free("r").await;
        if completed {
            break;
        }
        awaits += 1;
    }
    assert!(awaits > 1, "there and back, and yet {awaits} awaits");
}
