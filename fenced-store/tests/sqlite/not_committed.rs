//! A guard inside the error of a commit, on a clock that moves only when the test advances it.

use std::{sync::Arc, time::Duration};

use fenced_store::{FencedLocks, NotCommitted};
use lock_core::{
    InitialToken, LockManager, LostReason, ResourceName, Ttl, backend::Runtime,
    memory::MemoryBackend,
};
use lock_testing::ManualClock;
use sqlx::{Executor, Sqlite};

use crate::{
    file::SqliteFile,
    rule::{Harness, assert_kind, balance, fresh},
};

const NAME: &str = "account:42";
const TTL: Ttl = Ttl::secs(9);

struct World {
    store: SqliteFile,
    clock: ManualClock,
    accounts: FencedLocks<Sqlite>,
}

impl World {
    async fn new() -> Self {
        let (store, clock) = (fresh::<SqliteFile>().await, ManualClock::new());
        let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
        let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
        let locks = LockManager::builder().build(service);
        Self {
            accounts: FencedLocks::new(locks.unwrap(), store.store().clone()),
            store,
            clock,
        }
    }

    /// An error of a commit, with the guard in it.
    async fn not_committed(&self) -> NotCommitted<Sqlite> {
        let guard = self.accounts.acquire(NAME).ttl(TTL).await.unwrap();
        let mut tx = guard.begin().await.unwrap();
        tx.execute("ROLLBACK").await.unwrap();
        tx.commit_and_release(guard).await.unwrap_err()
    }

    /// Lets time pass in steps that are smaller than the pause between renewals.
    async fn pass(&self, time: Duration) {
        for _ in 0..90 {
            self.clock.advance(time / 90);
            settled().await;
        }
    }

    async fn is_free(&self) -> bool {
        let name = ResourceName::new(NAME).unwrap();
        let now = self.accounts.locks().inspect(&name).await.unwrap();
        now.holder.is_none()
    }
}

/// Waits until the watchdog has done everything that it can do at this time of the clock.
async fn settled() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Catches: an error in a log or a list of failures holds the resource for ever.
#[tokio::test]
async fn in_an_error_a_guard_is_not_renewed_and_its_lease_ends() {
    let world = World::new().await;
    let kept: Box<dyn std::error::Error> = Box::new(world.not_committed().await);
    world.pass(TTL.get()).await;
    assert!(world.is_free().await);
    let stats = world.accounts.locks().stats();
    assert_eq!((stats.renewals, stats.losses), (0, 1));

    let not_committed = kept.downcast::<NotCommitted<Sqlite>>().unwrap();
    let (error, guard) = not_committed.into_parts();
    assert_kind!(error, Aborted);
    assert_eq!(guard.lost().await.reason(), LostReason::Expired);
    assert_kind!(guard.begin().await.unwrap_err(), LeaseLost);
    assert_eq!(world.accounts.locks().stats().losses, 1);
}

/// Catches: a guard that is not renewed any more after it was taken out.
#[tokio::test]
async fn a_guard_that_is_taken_out_of_its_error_goes_on() {
    let world = World::new().await;
    let not_committed = world.not_committed().await;
    world.pass(TTL.get() * 8 / 9).await;
    let (_, guard) = not_committed.into_parts();
    world.pass(TTL.get() * 2).await;
    let mut tx = guard.begin().await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    tx.commit_and_release(guard).await.unwrap();
    assert_eq!(balance(&world.store).await, 101);
}

/// Catches: a lease that lasts for its ttl although its guard is gone.
#[tokio::test]
async fn an_error_that_is_dropped_releases_its_guard() {
    let world = World::new().await;
    let not_committed = world.not_committed().await;
    assert!(!world.is_free().await);
    drop(not_committed);
    assert!(world.is_free().await);
}
