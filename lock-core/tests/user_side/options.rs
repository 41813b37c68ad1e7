//! Notes and limits of an acquisition: their effects, and the settings that are refused before a
//! request is sent.

use std::{error::Error as _, future::IntoFuture, sync::Arc};

use lock_core::{
    Acquire, Attempt, Error, ErrorKind, InitialToken, LockManager, Operation, Outcome, Owner,
    memory::MemoryBackend,
};
use lock_testing::ManualClock;

use crate::{
    bare::Bare,
    world::{poll_times, world},
};

#[tokio::test]
async fn one_too_many_does_not_wait() {
    let world = world();
    let guard = world.locks().acquire("r").await.unwrap();
    let waiting = world.locks().acquire("r").max_waiters(1).into_future();
    let mut waiting = std::pin::pin!(waiting);
    assert!(!poll_times(waiting.as_mut(), 3).await);
    let error = world.locks().acquire("r").max_waiters(1).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::QueueFull, Outcome::NotApplied)
    );
    let stats = world.locks().stats();
    assert_eq!((stats.timeouts, stats.failures), (1, 0));
    let look = world
        .locks()
        .acquire("r")
        .max_waiters(1)
        .try_acquire()
        .await;
    assert!(matches!(look, Ok(Attempt::Held { .. })));
    guard.release().await.unwrap();
    waiting.await.unwrap().release().await.unwrap();
    assert_eq!(world.holder("r").await, None);
}

/// Catches: a bad option that reaches the service, or is ignored.
#[tokio::test]
async fn wrong_settings_are_refused_before_anything_is_sent() {
    let world = world();
    let acquire = || world.locks().acquire("r");
    for (bad, says) in [
        (acquire().metadata("two\nlines"), "control characters"),
        (acquire().metadata("x".repeat(1025)), "1024 bytes"),
        (acquire().max_waiters(0), "at least 1"),
    ] {
        let error = bad.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert_eq!(error.resource().unwrap().as_str(), "r");
        let cause = error.source().map(ToString::to_string);
        let said = format!("{error}: {}", cause.unwrap_or_default());
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(world.chaos.counts(Operation::Acquire).requests, 0);
}

/// An error is better than silence, because a caller cannot see that a limit is not kept.
#[tokio::test]
async fn an_unsupported_setting_is_refused_and_not_ignored() {
    let clock = ManualClock::new();
    let service = MemoryBackend::new(Arc::new(clock.clone()), InitialToken::Clock);
    let builder = LockManager::builder();
    let locks = builder.build(Bare(service)).unwrap();
    let owner = Owner::new();
    let with = |option: fn(Acquire) -> Acquire| option(locks.acquire("r"));
    let refused = [
        with(|acquire| acquire.metadata("note")).await.err(),
        with(|acquire| acquire.max_waiters(1)).await.err(),
        locks.acquire("r").owner(&owner).await.err(),
        locks.acquire_together(["a", "b"]).await.err(),
        locks.list().await.err(),
    ];
    for error in refused {
        assert_unsupported(&error.unwrap());
    }
    let guard = locks.acquire("r").await.unwrap();
    let error = locks.force_release(guard.resource()).await.unwrap_err();
    assert_unsupported(&error);
}

fn assert_unsupported(error: &Error) {
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Unsupported, Outcome::NotApplied),
        "{error}"
    );
    assert_eq!(error.backend(), "bare");
}
