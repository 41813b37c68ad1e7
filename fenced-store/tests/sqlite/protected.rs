//! A lock service and a store that are combined, and do not agree.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use fenced_store::{FenceError, FencedLockError, FencedLocks, FencedTx};
use lock_core::{
    Attempt, ErrorKind, FencingToken, Holder, InitialToken, LockManager, LostReason, Operation,
    Owner, Ttl,
    backend::{Runtime, TokioRuntime},
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, Gate, ManualClock, Until};
use sqlx::Sqlite;

use crate::{
    file::SqliteFile,
    rule::{
        Harness, assert_kind, balance, fenced_add, forgetful, high_water, is_free, memory_grant,
        protected_by,
    },
};

/// The lease whose claim was refused has ended before its holder acquires again, although the
/// service needs a while to end it. Otherwise the holder would get the same lease, and be refused
/// again.
#[tokio::test]
async fn a_holder_that_was_refused_is_lifted_though_its_lease_takes_long_to_end() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let service = MemoryBackend::new(Arc::clone(&runtime), InitialToken::At(FencingToken::MIN));
    let chaos = Chaos::new(Arc::new(service), runtime);
    let locks = LockManager::builder().build(chaos.clone());
    let (world, accounts) = protected_by::<SqliteFile>(locks.unwrap()).await;
    let before = memory_grant("account:42", 1000);
    world.store().claim(&before).await.unwrap();

    let gate = Gate::closed();
    let late = Fault::DelayRequest(Until::Opened(gate.clone()));
    chaos.next(Operation::Cancel, late);
    let acquire = accounts.acquire("account:42").holder(Holder::random());
    let open = async {
        gate.arrival().await;
        gate.open();
    };
    let (guard, ()) = tokio::join!(acquire.into_future(), open);
    let guard = guard.unwrap();
    assert!(guard.token().get() > 1000);
    assert_eq!(accounts.floor_repairs(), 1);
    guard.begin().await.unwrap().commit().await.unwrap();
}

/// An idle connection that was closed is noticed only by the next request.
/// Catches: a look that is not sent again, or whose answer has no time to arrive.
#[tokio::test]
async fn one_look_survives_a_connection_that_is_gone() {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let service = MemoryBackend::new(Arc::clone(&runtime), InitialToken::Clock);
    let chaos = Chaos::new(Arc::new(service), runtime);
    let locks = LockManager::builder().build(chaos.clone());
    let (_world, accounts) = protected_by::<SqliteFile>(locks.unwrap()).await;
    for lost in [Fault::DropRequest, Fault::DropReply] {
        chaos.next(Operation::Acquire, lost.clone());
        let Attempt::Granted(guard) = accounts.try_acquire("account:42").await.unwrap() else {
            panic!("{lost:?}: it is free");
        };
        guard.release().await.unwrap();
    }
}

/// If others hold the resource, the one look returns no error.
/// Catches: a look that waits, or that claims what others hold.
#[tokio::test]
async fn one_look_does_not_wait_and_claims_what_it_gets() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let held = accounts.acquire("account:42").await.unwrap();
    let before = high_water(&world, "account:42").await;
    match accounts.try_acquire("account:42").await.unwrap() {
        Attempt::Held { retry_after, .. } => assert!(retry_after > Duration::ZERO),
        Attempt::Granted(guard) => panic!("{guard:?}"),
    }
    assert_eq!(high_water(&world, "account:42").await, before);
    let stale = held.sequencer().clone();
    held.release().await.unwrap();

    let Attempt::Granted(guard) = accounts.try_acquire("account:42").await.unwrap() else {
        panic!("it is free");
    };
    guard.begin().await.unwrap().commit().await.unwrap();
    assert!(world.store().begin(&stale).await.unwrap_err().is_fenced());
    let bad = accounts.try_acquire("no spaces").await.unwrap_err();
    assert!(!bad.is_retryable() && !bad.is_fenced(), "{bad}");
}

/// Catches: an error of the lock service or of the store that is classed wrongly.
#[tokio::test]
async fn an_error_of_either_side_says_what_to_do() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let held = accounts.acquire("account:42").await.unwrap();
    let timeout = accounts.acquire("account:42").wait(Duration::ZERO).await;
    let timeout = timeout.unwrap_err();
    assert_eq!(timeout.resource(), Some(held.resource()));
    assert!(timeout.is_retryable() && !timeout.is_fenced(), "{timeout}");

    let newer = memory_grant("account:42", 1000);
    world.store().claim(&newer).await.unwrap();
    let stale = FencedLockError::from(held.begin().await.unwrap_err());
    assert_eq!(stale.resource(), Some(held.resource()));
    assert!(stale.is_fenced() && !stale.is_retryable(), "{stale}");

    for kind in [ErrorKind::Lost, ErrorKind::Released] {
        let error = lock_core::Error::not_applied(kind);
        let error = FencedLockError::from(error);
        assert!(error.is_fenced() && !error.is_retryable(), "{error}");
    }
}

/// Catches: a section that runs without a claim, or keeps its lease.
#[tokio::test]
async fn run_claims_for_the_section_and_releases() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let acquire = accounts.acquire("account:42").wait(Duration::ZERO);
    let receipt = acquire.run(async |guard| {
        let mut tx = guard.begin().await?;
        SqliteFile::add(&mut tx, 1).await?;
        Ok::<_, FencedLockError>(tx.commit().await?)
    });
    let token = receipt.await.unwrap().token();
    assert_eq!(high_water(&world, "account:42").await, Some(token.get()));
    assert_eq!(balance(&world).await, 101);
    assert!(is_free(accounts.locks(), "account:42").await);
}

/// Catches: a section that goes on without its lease.
#[tokio::test]
async fn run_ends_the_section_when_the_lease_is_lost() {
    let clock = ManualClock::new();
    let (_world, accounts) = protected_by::<SqliteFile>(
        palisade::connect("memory:")
            .runtime(Arc::new(clock.clone()))
            .await
            .unwrap(),
    )
    .await;
    let acquire = accounts.acquire("account:42");
    let acquire = acquire.ttl(Ttl::secs(10)).renew(false);
    let never = acquire.run(async |_| {
        clock.advance(Duration::from_secs(11));
        std::future::pending::<Result<(), FencedLockError>>().await
    });
    match never.await.unwrap_err() {
        FencedLockError::Store(FenceError::LeaseLost(lost)) => {
            assert_eq!(lost.reason(), LostReason::Expired);
        }
        other => panic!("{other:?}"),
    }
}

/// The guard sends no second request to the store, whose pool is closed.
#[tokio::test]
async fn after_a_fenced_refusal_the_guard_stays_fenced() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let other = accounts.acquire("account:43").await.unwrap();
    let guard = accounts.acquire("account:42").await.unwrap();
    let newer = memory_grant("account:42", 1000);
    world.store().claim(&newer).await.unwrap();
    let refused = other.begin().and(&guard).await.unwrap_err();
    world.store().pool().close().await;
    for again in [guard.begin(), other.begin().and(&guard)] {
        let again = again.await.unwrap_err();
        assert_kind!(again, Stale);
        assert_eq!(again.to_string(), refused.to_string());
    }
    // The other grant was not shut out: its guard asks the store.
    let error = other.begin().await.unwrap_err();
    assert!(!error.is_fenced(), "{error:?}");
}

/// A refusal that may pass is not remembered.
#[tokio::test]
async fn after_a_busy_store_the_guard_asks_again() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let impatient = FencedLocks::new(accounts.locks().clone(), world.impatient().await);
    let (one, two) = (
        impatient.acquire("account:42").await.unwrap(),
        impatient.acquire("account:43").await.unwrap(),
    );
    let open = two.begin().await.unwrap();
    let busy = one.begin().await.unwrap_err();
    assert_kind!(busy, Busy);
    open.rollback().await.unwrap();
    one.begin().await.unwrap().commit().await.unwrap();
}

#[tokio::test]
async fn a_lost_lease_among_several_begins_nothing() {
    let clock = ManualClock::new();
    let (_world, accounts) = protected_by::<SqliteFile>(
        palisade::connect("memory:")
            .runtime(Arc::new(clock.clone()))
            .await
            .unwrap(),
    )
    .await;
    let held = accounts.acquire("account:42").await.unwrap();
    let acquire = accounts.acquire("account:43");
    let acquire = acquire.ttl(Ttl::secs(5)).renew(false);
    let lost = acquire.await.unwrap();
    clock.advance(Duration::from_secs(6));
    for begin in [lost.begin(), held.begin().and(&lost)] {
        let error = begin.await.unwrap_err();
        assert_kind!(error, LeaseLost);
        assert_eq!(error.resource(), Some(lost.resource()));
    }
}

/// A protected lease has all options of a lease. For the store all guards of an owner are one
/// writer.
/// Catches: options of a lease that `FencedLocks` does not pass on.
#[tokio::test]
async fn an_owner_holds_a_protected_resource_several_times_over() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let owner = Owner::new();
    let acquire = || {
        let acquire = accounts.acquire("account:42");
        acquire.owner(&owner)
    };
    let outer = acquire().metadata("node 7");
    let outer = outer.await.unwrap();
    let inner = acquire().await.unwrap();
    assert_eq!(inner.sequencer(), outer.sequencer());
    let seen = accounts.locks().inspect(outer.resource()).await.unwrap();
    let note = seen.holder.unwrap().metadata.unwrap();
    assert_eq!(note.as_str(), "node 7");
    inner.begin().await.unwrap().commit().await.unwrap();
    inner.release().await.unwrap();
    fenced_add(&world, outer.sequencer()).await.unwrap();
    outer.release().await.unwrap();
    assert!(is_free(accounts.locks(), "account:42").await);

    let full = accounts.acquire("account:42").max_waiters(0);
    match full.await.unwrap_err() {
        FencedLockError::Lock(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput),
        other => panic!("{other:?}"),
    }
}

/// The caller gets the last error.
#[tokio::test]
async fn a_store_that_stays_busy_is_given_up() {
    let (world, _) = protected_by::<SqliteFile>(forgetful().await).await;
    let ours = memory_grant("account:42", 33);
    world.store().claim(&ours).await.unwrap();
    let attempts = AtomicU32::new(0);
    let work = async |_: &mut FencedTx<Sqlite>| -> Result<(), FenceError> {
        attempts.fetch_add(1, Ordering::SeqCst);
        let source = sqlx::Error::PoolTimedOut;
        Err(FenceError::Busy { source })
    };
    let error = world.store().transact(&ours, work).await.unwrap_err();
    assert_kind!(error, Busy);
    assert_eq!(attempts.load(Ordering::SeqCst), 11);
}
