//! Acquisitions of several resources get all of them or none.

use std::{future::IntoFuture, pin::pin, time::Duration};

use lock_core::{
    AcquireAll, AcquireTogether, ErrorKind, LockManager, LostReason, Operation, Outcome, Released,
};
use lock_testing::Fault;

use crate::world::{TTL, World, poll_times, world};

const WAIT: Duration = Duration::from_secs(5);

impl World {
    async fn are_held(&self) -> [bool; 2] {
        [
            self.holder("a").await.is_some(),
            self.holder("b").await.is_some(),
        ]
    }

    fn all(&self) -> AcquireAll {
        self.locks().acquire_all(["b", "a"], WAIT).ttl(TTL)
    }

    fn together(&self) -> AcquireTogether {
        self.locks().acquire_together(["b", "a"]).ttl(TTL)
    }
}

/// Catches: guards in the order in which they were acquired, and a guard that is not renewed.
#[tokio::test]
async fn guards_are_in_the_order_of_the_names_and_each_has_a_lease_of_its_own() {
    let world = world();
    let (all, together) = (world.all(), world.together());
    for acquire in [
        all.metadata("both").into_future(),
        together.metadata("both").into_future(),
    ] {
        let guards = acquire.await.unwrap();
        let names: Vec<_> = guards
            .iter()
            .map(|guard| guard.resource().as_str())
            .collect();
        assert_eq!(names, ["b", "a"]);
        assert_eq!(guards[1].resource().as_str(), "a");
        let b = guards.get("b").unwrap();
        assert!(guards.get("c").is_none());
        let seen = world.holder("b").await.unwrap();
        assert_eq!(seen.token, b.token());
        assert_eq!(seen.metadata.unwrap().as_str(), "both");

        // The watchdog keeps up each of them.
        for _ in 0..4 {
            world.clock.advance(TTL.get() / 3);
            while guards.remaining().unwrap() <= TTL.get() / 3 * 2 {
                tokio::task::yield_now().await;
            }
        }
        let released = guards.release_all().await.unwrap();
        assert_eq!(released, [Released::Released, Released::Released]);
        assert_eq!(world.are_held().await, [false, false]);
    }
}

/// Catches: the loss of one lease is reported only when all are lost, or ends the others.
#[tokio::test]
async fn the_first_loss_is_reported_and_the_others_go_on() {
    let world = world();
    let guards = world.together().await.unwrap();
    let b = world.holder("b").await.unwrap();
    let theirs = world.theirs.locks();
    theirs.force_release(guards[0].resource()).await.unwrap();
    world.clock.advance(TTL.get() / 3);
    let lost = guards.lost().await;
    assert_eq!(
        (lost.token(), lost.reason()),
        (b.token, LostReason::NotHolder)
    );
    assert!(guards.remaining().is_err());
    assert!(guards[1].remaining().is_ok());
    let released = guards.release_all().await.unwrap();
    assert_eq!(released, [Released::NotHolder, Released::Released]);
}

/// If the resources were taken in the order in which they are named, each of these two acquisitions
/// would hold the resource that the other wants.
#[tokio::test]
async fn two_that_name_them_the_other_way_round_do_not_deadlock() {
    let world = world();
    let section = async |locks: &LockManager, names: [&str; 2]| {
        for _ in 0..20 {
            let guards = locks.acquire_all(names, WAIT).await.unwrap();
            tokio::task::yield_now().await;
            guards.release_all().await.unwrap();
        }
    };
    let both = async {
        tokio::join!(
            section(world.ours.locks(), ["a", "b"]),
            section(world.theirs.locks(), ["b", "a"]),
        )
    };
    let done = tokio::time::timeout(Duration::from_secs(10), both).await;
    done.expect("each waits for the other");
}

#[tokio::test]
async fn one_by_one_what_was_acquired_is_given_back_when_the_wait_is_over() {
    let world = world();
    let held = world.theirs.locks().acquire("b").await.unwrap();
    let mut waiting = pin!(world.all().into_future());
    assert!(!poll_times(waiting.as_mut(), 20).await);
    assert_eq!(world.are_held().await, [true, true]);
    assert_ne!(world.holder("a").await.unwrap().token, held.token());
    world.clock.advance(WAIT);
    let error = waiting.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WaitTimeout);
    assert_eq!(error.resource().unwrap().as_str(), "b");
    world.until_free("a").await;
    held.release().await.unwrap();
    assert_eq!(world.are_held().await, [false, false]);
}

/// Catches: all resources are granted, but the first lease has ended.
#[tokio::test]
async fn one_by_one_a_lease_that_ran_out_meanwhile_is_a_loss() {
    let world = world();
    let held = world.theirs.locks().acquire("b").await.unwrap();
    let acquire = world.all().renew(false).wait(TTL.get() * 2);
    let mut waiting = pin!(acquire.into_future());
    assert!(!poll_times(waiting.as_mut(), 20).await);
    world.clock.advance(TTL.get());
    held.release().await.unwrap();
    let error = waiting.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert_eq!(error.resource().unwrap().as_str(), "a");
    world.until_free("b").await;
}

#[tokio::test]
async fn together_nothing_is_held_until_all_are_free() {
    let world = world();
    let held = world.theirs.locks().acquire("b").await.unwrap();
    let mut waiting = pin!(world.together().into_future());
    for _ in 0..5 {
        assert!(!poll_times(waiting.as_mut(), 20).await);
        assert_eq!(world.are_held().await, [false, true]);
        world.clock.advance(Duration::from_millis(250));
    }
    let looks = world.chaos.counts(Operation::Acquire).requests;
    assert!((3..=6).contains(&looks), "{looks} looks in a second");
    held.release().await.unwrap();
    world.clock.advance(Duration::from_millis(250));
    let guards = waiting.await.unwrap();
    assert_eq!(world.are_held().await, [true, true]);
    drop(guards);
    world.until_free("a").await;
    world.until_free("b").await;
}

/// Catches: a wait for several resources that ends too late, or that leaves leases behind.
#[tokio::test]
async fn together_the_wait_ends_and_leaves_nothing() {
    let world = world();
    let held = world.theirs.locks().acquire("b").await.unwrap();
    let error = world.together().wait(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WaitTimeout);
    let mut waiting = pin!(world.together().wait(WAIT).into_future());
    assert!(!poll_times(waiting.as_mut(), 20).await);
    world.clock.advance(WAIT);
    let error = waiting.await.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::WaitTimeout, Outcome::NotApplied)
    );
    assert!(error.retry_after().is_some());
    held.release().await.unwrap();
    assert_eq!(world.are_held().await, [false, false]);
}

#[tokio::test]
async fn together_a_lost_answer_is_unknown_and_what_it_did_is_undone() {
    let world = world();
    world.chaos.next(Operation::Acquire, Fault::DropReply);
    // One look, which is not repeated.
    let error = world.together().wait(Duration::ZERO).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Unavailable, Outcome::Unknown)
    );
    world.until_free("a").await;
    world.until_free("b").await;
}

#[tokio::test]
async fn an_acquire_of_several_that_is_dropped_at_any_await_leaves_nothing() {
    for one_by_one in [true, false] {
        let mut awaits = 0;
        loop {
            let world = world();
            let acquire = match one_by_one {
                true => world.all().into_future(),
                false => world.together().into_future(),
            };
            let completed = poll_times(acquire, awaits).await;
            world.until_free("a").await;
            world.until_free("b").await;
            if completed {
                break;
            }
            awaits += 1;
        }
        assert!(awaits >= 2, "there and back, and yet {awaits} awaits");
    }
}

/// Catches: an acquisition that names a resource twice, and waits for itself.
#[tokio::test]
async fn wrong_settings_are_refused_before_anything_is_sent() {
    let world = world();
    let locks = world.locks();
    let all = |names: &[&'static str]| locks.acquire_all(names.to_vec(), WAIT);
    let together = |names: &[&'static str]| locks.acquire_together(names.to_vec());
    for (bad, says) in [
        (all(&["a", "b", "a"]).into_future(), "named twice"),
        (all(&[]).into_future(), "no resource"),
        (all(&["a"]).metadata("\n").into_future(), "metadata"),
        (all(&["a"]).max_waiters(0).into_future(), "at least 1"),
        (together(&["a", "a"]).into_future(), "named twice"),
        (together(&[]).into_future(), "no resource"),
        (together(&["a", "no spaces"]).into_future(), "name"),
        (together(&["a"]).metadata("\n").into_future(), "metadata"),
    ] {
        let error = bad.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(world.chaos.counts(Operation::Acquire).requests, 0);
}
