//! Marks of living guards, and marks whose guards are gone.

use std::{sync::Arc, time::Duration};

use fenced_store::{Memory, MemoryFencedLocks, MemoryFencedStore, admin::AdminError};
use lock_core::{InitialToken, LockManager, Ttl, backend::Runtime, memory::MemoryBackend};
use lock_testing::ManualClock;

use crate::rule::assert_kind;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn pair(clock: &ManualClock) -> MemoryFencedLocks {
    let runtime: Arc<dyn Runtime> = Arc::new(clock.clone());
    let memory = Memory::new(Arc::clone(&runtime));
    let store = MemoryFencedStore::in_memory(memory).runtime(Arc::clone(&runtime));
    let service = MemoryBackend::new(runtime, InitialToken::Clock);
    let locks = LockManager::builder().ttl(Ttl::secs(24 * 60 * 60));
    MemoryFencedLocks::new(locks.build(service).unwrap(), store)
}

/// Lets time pass in steps. After each step all tasks run.
async fn pass(clock: &ManualClock, time: Duration) {
    let step = Duration::from_secs(5 * 60);
    for _ in 0..time.as_secs() / step.as_secs() {
        clock.advance(step);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
}

/// Catches: a holder that is refused although it holds, because its claim is old.
#[tokio::test]
async fn a_living_guard_keeps_its_mark() {
    let clock = ManualClock::new();
    let accounts = pair(&clock);
    let lives = accounts.acquire("lives").renew(false).await.unwrap();
    // The control has no living guard.
    let gone = accounts.acquire("gone").renew(false).await.unwrap();
    let gone = gone.detach();
    pass(&clock, 3 * HOUR).await;
    assert_eq!(accounts.forget_marks(HOUR).await.unwrap().marks, 1);
    lives.begin().await.unwrap().commit().await.unwrap();
    let refused = accounts.store().begin(&gone.sequencer).await;
    let refused = refused.unwrap_err();
    assert_kind!(refused, Stale);
    let floor = accounts.store().memory().floor();
    assert_eq!(floor, Some(gone.sequencer.token()));

    // When its guard is gone, this mark is forgotten, too.
    lives.release().await.unwrap();
    pass(&clock, 3 * HOUR).await;
    assert_eq!(accounts.forget_marks(HOUR).await.unwrap().marks, 1);
    accounts.locks().release(&gone.sequencer).await.unwrap();
    let next = accounts.acquire("gone").await.unwrap();
    assert!(Some(next.token()) > accounts.store().memory().floor());
    next.begin().await.unwrap().commit().await.unwrap();
}

#[tokio::test]
async fn a_young_age_is_refused_by_a_pair_too() {
    let clock = ManualClock::new();
    let accounts = pair(&clock);
    let refused = accounts.forget_marks(HOUR / 2).await.unwrap_err();
    assert!(matches!(refused, AdminError::NotForgettable { .. }));
}
