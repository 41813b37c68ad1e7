//! The user's side, on a clock that moves only when the test advances it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use lock_core::{
    Attempt, Error, ErrorKind, FencingToken, Holder, InitialToken, LeaseGuard, LockManager,
    LostReason, Outcome, Released, ResourceName, Ttl,
    backend::{Renewed, Runtime, StoreSide},
    memory::MemoryBackend,
};
use lock_testing::ManualClock;

const TTL: Ttl = Ttl::secs(9);

struct World {
    clock: ManualClock,
    locks: LockManager,
    /// Another process with the same lock service and clock.
    rival: LockManager,
}

fn world() -> World {
    let clock = ManualClock::new();
    let backend = MemoryBackend::new(Arc::new(clock.clone()), InitialToken::At(FencingToken::MIN));
    let manager = || {
        let builder = LockManager::builder();
        builder.build(backend.clone()).unwrap()
    };
    World {
        locks: manager(),
        rival: manager(),
        clock,
    }
}

impl World {
    async fn acquire(&self) -> LeaseGuard {
        self.locks.acquire("r").ttl(TTL).await.unwrap()
    }

    async fn is_free(&self) -> bool {
        let inspection = self
            .rival
            .inspect(&ResourceName::new("r").unwrap())
            .await
            .unwrap();
        inspection.holder.is_none()
    }

    /// Lets the other tasks run until the condition is true.
    async fn until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        for _ in 0..10_000 {
            if condition().await {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("never: {what}");
    }
}

/// Catches: a drop that spawns a task where there is no runtime to spawn it on.
#[tokio::test]
async fn dropped_outside_a_runtime_does_not_panic() {
    let world = world();
    let guard = world.acquire().await;
    std::thread::spawn(move || drop(guard)).join().unwrap();
    world
        .until("released", async || world.is_free().await)
        .await;
}

#[tokio::test]
async fn a_lease_outlives_its_ttl_as_long_as_the_watchdog_runs() {
    let world = world();
    let guard = world.acquire().await;
    for _ in 0..10 {
        let before = guard.remaining().unwrap();
        world.clock.advance(TTL.get() / 3);
        let renewed = async || guard.remaining().unwrap() >= before;
        world.until("renewed", renewed).await;
    }
    assert!(!world.is_free().await);
}

#[tokio::test]
async fn a_stopped_process_loses_its_lease_and_learns_of_it_without_any_server() {
    let world = world();
    let guard = world.acquire().await;
    world.locks.freeze_watchdog(true);
    world.clock.advance(TTL.get());
    assert_eq!(guard.remaining().unwrap_err().reason(), LostReason::Expired);
    assert_eq!(guard.lost().await.reason(), LostReason::Expired);

    let next = world.rival.acquire("r").ttl(TTL).await.unwrap();
    assert!(next.token() > guard.token());
    world.locks.freeze_watchdog(false);
    drop(guard);
    // A cycle of the watchdog after it has woken up: its late renewal and release touch no other
    // holder's lease.
    drop(world.locks.acquire("other").await.unwrap());
    world
        .until("cleaned up", async || {
            let other = ResourceName::new("other").unwrap();
            world.rival.inspect(&other).await.unwrap().holder.is_none()
        })
        .await;
    assert!(next.remaining().is_ok());
    assert!(!world.is_free().await);
}

/// Catches: a late renewal revives a guard whose loss was reported.
#[tokio::test]
async fn lost_stays_lost_even_if_a_renewal_comes_through() {
    let world = world();
    let guard = world.acquire().await;
    world.locks.freeze_watchdog(true);
    world.clock.advance(TTL.get());
    assert!(guard.remaining().is_err());
    world.locks.freeze_watchdog(false);
    world
        .until("given up", async || world.is_free().await)
        .await;
    assert!(guard.remaining().is_err());
}

/// Catches: a timeout has the outcome "unknown", or the time that was left of the lease when the
/// wait began.
#[tokio::test]
async fn contention_is_a_value_or_a_timeout_by_choice() {
    let world = world();
    let _guard = world.acquire().await;
    let attempt = world.rival.try_acquire("r").await.unwrap();
    assert!(matches!(attempt, Attempt::Held { retry_after, .. } if retry_after == TTL.get()));

    let mut waiting = pin!(
        world
            .rival
            .acquire("r")
            .wait(Duration::from_secs(1))
            .into_future()
    );
    let early = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
    assert!(early.is_pending());
    world.clock.advance(Duration::from_secs(1));
    let error = waiting.await.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::WaitTimeout, Outcome::NotApplied)
    );
    assert_eq!(error.resource().unwrap().as_str(), "r");
    assert_eq!(
        error.retry_after(),
        Some(TTL.get() - Duration::from_secs(1))
    );
}

/// Catches: a waiter whose wait ends at the moment of its grant reports a timeout, and leaves a
/// lease that no client knows of.
#[tokio::test]
async fn a_waiter_whose_wait_ends_with_the_lease_before_is_granted_the_next() {
    let world = world();
    let before = world.locks.acquire("r").ttl(TTL).renew(false);
    let before = before.await.unwrap();
    let mut waiting = pin!(world.rival.acquire("r").wait(TTL.get()).into_future());
    let early = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
    assert!(early.is_pending());
    world.clock.advance(TTL.get());
    assert!(waiting.await.unwrap().token() > before.token());
}

/// Catches: the grant of a waiter that was dropped before it saw the grant stays without a holder.
#[tokio::test]
async fn a_grant_that_arrives_for_a_dropped_acquire_is_given_back() {
    let world = world();
    let guard = world.acquire().await;
    {
        let mut waiting = pin!(world.rival.acquire("r").into_future());
        let early = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
        assert!(early.is_pending());
        // The lease is granted directly to the waiter, which is dropped before it could see the
        // grant.
        guard.release().await.unwrap();
        assert!(!world.is_free().await);
    }
    world.until("free", async || world.is_free().await).await;
}

/// A gateway whose client goes away while it answers the repetition of the same request.
#[tokio::test]
async fn a_dropped_guard_of_a_repeated_acquisition_ends_its_own_attempt_only() {
    let world = world();
    let holder = Holder::random();
    let acquire = || world.locks.acquire("r").ttl(TTL).holder(holder);
    let (first, second) = (acquire().await.unwrap(), acquire().await.unwrap());
    assert_eq!(first.token(), second.token());
    drop(first);
    assert!(!world.is_free().await, "the other one got it, too");
    second.renew(TTL).await.unwrap();
    let token = second.token();
    drop(second);
    assert!(world.is_free().await, "no other attempt got it");
    // The acquisition was not released: the same holder may ask again, for another lease.
    let afresh = acquire().await.unwrap();
    assert!(afresh.token() > token);
    afresh.release().await.unwrap();
    assert_eq!(acquire().await.unwrap_err().kind(), ErrorKind::Released);
}

/// Catches: giving up one of two guards releases both.
#[tokio::test]
async fn a_guard_that_is_given_up_has_ended_its_attempt_and_no_other() {
    let world = world();
    let holder = Holder::random();
    let acquire = || world.locks.acquire("r").ttl(TTL).holder(holder);
    let (first, second) = (acquire().await.unwrap(), acquire().await.unwrap());
    let token = first.token();
    first.give_up().await.unwrap();
    assert!(!world.is_free().await, "the other one got it, too");
    second.give_up().await.unwrap();
    assert!(world.is_free().await, "no other attempt got it");
    let afresh = acquire().await.unwrap();
    assert!(afresh.token() > token);
    afresh.release().await.unwrap();
    assert_eq!(acquire().await.unwrap_err().kind(), ErrorKind::Released);
    // If no other client knows the holder, giving up is a release.
    let guard = world.locks.acquire("r").ttl(TTL).await.unwrap();
    guard.give_up().await.unwrap();
    assert!(world.is_free().await);
}

/// Catches: a section that never looks at its guard goes on after the loss of its lease.
#[tokio::test]
async fn run_ends_the_section_when_the_lease_is_lost() {
    let world = world();
    let result: Result<(), Error> = world
        .locks
        .acquire("r")
        .run(async |guard| {
            world.locks.freeze_watchdog(true);
            world.clock.advance(Ttl::default().get());
            assert!(guard.remaining().is_err());
            std::future::pending().await
        })
        .await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Lost);
}

/// Catches: `run` of an acquisition that takes the default ttl, or waits for ever.
#[tokio::test]
async fn run_takes_the_settings_of_its_acquisition() {
    let world = world();
    let acquire = world.locks.acquire("r").ttl(TTL).wait(Duration::ZERO);
    let left: Result<_, Error> = acquire
        .clone()
        .run(async |guard| Ok(guard.remaining()?))
        .await;
    assert_eq!(left.unwrap(), TTL.get());
    let held = world.acquire().await;
    let refused: Result<(), Error> = acquire.run(async |_| panic!("it is held")).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::WaitTimeout);
    held.release().await.unwrap();
}

/// Catches: a shutdown drops the releases that it should have sent.
#[tokio::test]
async fn shutdown_sends_what_is_queued_and_ends_what_is_held() {
    let world = world();
    let held = world.locks.acquire("held").await.unwrap();
    drop(world.acquire().await);
    world.locks.shutdown().await;
    assert!(world.is_free().await, "the queued release was not sent");
    assert_eq!(held.lost().await.reason(), LostReason::ShutDown);
    let error = world.locks.clone().acquire("r").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShutDown);
    assert_eq!(held.release().await.unwrap(), Released::Released);
    world.locks.shutdown().await;
}

/// Catches: a guard or a future that is not `Send`.
#[test]
fn guards_and_futures_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let world = world();
        is_send(&world.locks.acquire("r").into_future());
        is_send(&world.locks.try_acquire("r"));
        is_send(&world.locks.acquire("r").detached());
        let guard = world.acquire().await;
        is_send(&guard);
        is_send(&guard.lost());
        is_send(&guard.release());
        let locks = world.locks.clone();
        let section = async move {
            locks
                .acquire("s")
                .run(async |guard: &LeaseGuard| Ok::<_, Error>(guard.token()))
                .await
        };
        is_send(&section);
    });
}

/// Catches: the watchdog keeps up a lease that is not held here any more.
#[tokio::test]
async fn a_guard_that_is_detached_keeps_the_lease_and_renews_it_no_more() {
    let world = world();
    let guard = world.acquire().await;
    let sequencer = guard.sequencer().clone();
    let lease = guard.detach();
    assert_eq!((&lease.sequencer, lease.remaining), (&sequencer, TTL.get()));
    assert!(!world.is_free().await);
    world.clock.advance(TTL.get() / 3);
    // A cycle of the watchdog, which would renew the lease if it still knew of it.
    drop(world.locks.acquire("other").await.unwrap());
    world
        .until("cleaned up", async || {
            let other = ResourceName::new("other").unwrap();
            world.rival.inspect(&other).await.unwrap().holder.is_none()
        })
        .await;
    world.clock.advance(TTL.get() - TTL.get() / 3);
    assert!(world.is_free().await);
}

/// Catches: one of the ways to acquire does not take the manager's ttl.
#[tokio::test]
async fn a_ttl_of_the_manager_is_overruled_by_the_acquisition() {
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock);
    let memory = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let builder = LockManager::builder().ttl(TTL);
    let locks = builder.build(memory).unwrap();

    let looked = locks.try_acquire("a").await.unwrap().granted().unwrap();
    assert_eq!(looked.remaining().unwrap(), TTL.get());
    let left = locks
        .acquire("b")
        .run(async |guard| Ok::<_, Error>(guard.remaining()?));
    assert_eq!(left.await.unwrap(), TTL.get());
    let together = locks.acquire_together(["c", "d"]).await.unwrap();
    assert_eq!(together.remaining().unwrap(), TTL.get());
    let asked = locks.acquire("e").ttl(Ttl::secs(3)).await.unwrap();
    assert_eq!(asked.remaining().unwrap(), Duration::from_secs(3));
}

/// Otherwise the guard would keep its old deadline.
#[tokio::test]
async fn a_lease_of_a_guard_is_renewed_by_its_guard_alone() {
    let world = world();
    let guard = world
        .locks
        .acquire("r")
        .ttl(TTL)
        .renew(false)
        .await
        .unwrap();
    let error = world.locks.renew(guard.sequencer(), TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    world.clock.advance(TTL.get() / 2);
    guard.renew(TTL).await.unwrap();
    assert_eq!(guard.remaining().unwrap(), TTL.get());
    assert!(guard.is_held());

    let lease = guard.detach();
    let renewed = world.locks.renew(&lease.sequencer, TTL).await.unwrap();
    assert!(matches!(renewed, Renewed::Renewed(_)));
    world.locks.release(&lease.sequencer).await.unwrap();
}

#[tokio::test]
async fn a_guard_whose_renewal_comes_too_late_is_lost() {
    let world = world();
    let guard = world
        .locks
        .acquire("r")
        .ttl(TTL)
        .renew(false)
        .await
        .unwrap();
    world.locks.force_release("r").await.unwrap();
    assert!(guard.is_held(), "it has not asked");
    let error = guard.renew(TTL).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost, "{error}");
    assert!(!guard.is_held());
}
