//! Acquiring by a retry policy, on a clock that moves only when the test advances it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{future::IntoFuture, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use lock_core::{
    Acquire, Error, ErrorKind, InitialToken, Jitter, LeaseGuard, LockManager, Operation,
    RetryPolicy, Ttl,
    backend::{Moment, Runtime},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, ManualClock};

const TTL: Ttl = Ttl::secs(60);
const PAUSE: Duration = Duration::from_millis(500);
const EVERY_PAUSE: RetryPolicy = RetryPolicy::fixed(PAUSE).jitter(Jitter::None);

struct World {
    clock: ManualClock,
    chaos: Chaos,
    locks: LockManager,
    rival: LockManager,
}

fn world() -> World {
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let chaos = Chaos::new(Arc::new(service.clone()), Arc::clone(&timer));
    let builder = || LockManager::builder();
    World {
        locks: builder().build(chaos.clone()).unwrap(),
        rival: builder().build(service).unwrap(),
        clock,
        chaos,
    }
}

impl World {
    async fn held_by_rival(&self) -> LeaseGuard {
        self.rival.acquire("r").ttl(TTL).renew(false).await.unwrap()
    }

    fn looks(&self) -> usize {
        self.chaos.counts(Operation::Acquire).requests
    }

    fn acquire(&self) -> Acquire {
        self.locks.acquire("r").ttl(TTL)
    }

    /// Polls an acquisition until it is done, and moves the clock to each moment until which a task
    /// sleeps.
    async fn run(&self, acquire: Acquire) -> Result<LeaseGuard, Error> {
        let mut acquiring: BoxFuture<'_, _> = acquire.into_future();
        loop {
            if let Some(result) = (&mut acquiring).now_or_never() {
                return result;
            }
            let wake = self.clock.next_wake().unwrap();
            self.clock.advance(wake.since(self.clock.now()));
        }
    }
}

/// Catches: a look too many, one too few, or none at all.
#[tokio::test]
async fn it_looks_until_the_limit_is_reached() {
    for (limit, wait, pauses) in [(3, None, 3), (0, None, 0), (9, Some(Duration::ZERO), 0)] {
        let (world, start) = (world(), Moment::default());
        let _held = world.held_by_rival().await;
        let acquire = world.acquire().retry(EVERY_PAUSE.limit(limit));
        let acquire = match wait {
            Some(wait) => acquire.wait(wait),
            None => acquire,
        };
        let error = world.run(acquire).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WaitTimeout);
        let waited = PAUSE * pauses;
        let looks = (world.looks(), world.clock.now());
        assert_eq!(looks, (pauses as usize + 1, start + waited));
        assert_eq!(error.retry_after(), Some(TTL.get() - waited));
        assert_eq!(world.locks.stats().timeouts, 1);
    }
}

#[tokio::test]
async fn it_never_sleeps_past_the_end_of_its_wait_and_looks_a_last_time_there() {
    let (world, start, wait) = (world(), Moment::default(), PAUSE * 5 / 2);
    let _held = world.held_by_rival().await;
    let error = world
        .run(world.acquire().wait(wait).retry(EVERY_PAUSE))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WaitTimeout);
    assert_eq!((world.looks(), world.clock.now()), (4, start + wait));
}

/// Catches: an acquisition that looks before its time, or does not look again.
#[tokio::test]
async fn it_is_granted_at_the_first_look_after_the_release() {
    let world = world();
    let held = world.held_by_rival().await;
    let mut acquiring = world.acquire().retry(EVERY_PAUSE).into_future();
    assert!((&mut acquiring).now_or_never().is_none());
    held.release().await.unwrap();
    world.clock.advance(PAUSE / 2);
    assert!(
        (&mut acquiring).now_or_never().is_none(),
        "not before its time"
    );
    world.clock.advance(PAUSE / 2);
    let guard = acquiring.now_or_never().unwrap().unwrap();
    assert!(guard.remaining().is_ok());
    assert_eq!(world.looks(), 2);
}

#[tokio::test]
async fn it_takes_no_place_in_line() {
    let world = world();
    let held = world.held_by_rival().await;
    let mut polling = world.acquire().retry(EVERY_PAUSE).into_future();
    assert!((&mut polling).now_or_never().is_none());
    let mut in_line = world.rival.acquire("r").into_future();
    assert!((&mut in_line).now_or_never().is_none());
    held.release().await.unwrap();
    let _later = in_line.now_or_never().unwrap().unwrap();
    world.clock.advance(PAUSE);
    assert!(polling.now_or_never().is_none());
}

/// Catches: an acquisition that asks a dead service for ever, because its policy has no limit.
#[tokio::test]
async fn a_lock_service_that_does_not_answer_is_looked_for_again_for_ten_seconds() {
    let (world, start) = (world(), Moment::default());
    world.chaos.always(Operation::Acquire, Fault::DropRequest);
    let error = world
        .run(world.acquire().retry(EVERY_PAUSE))
        .await
        .unwrap_err();
    assert_eq!((error.kind(), world.looks()), (ErrorKind::Unavailable, 21));
    assert_eq!(world.clock.now(), start + Duration::from_secs(10));
    assert_eq!(world.locks.stats().failures, 1);
}

/// Catches: a shutdown waits for the pause of a caller that polls.
#[tokio::test]
async fn a_shutdown_ends_a_pause() {
    let world = world();
    let _held = world.held_by_rival().await;
    let mut acquiring = world.acquire().retry(EVERY_PAUSE).into_future();
    assert!((&mut acquiring).now_or_never().is_none());
    world.locks.shutdown().await;
    let error = acquiring.now_or_never().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ShutDown);
}
