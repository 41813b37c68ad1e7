//! A lock service and a store, put together: what happens when they disagree.

use std::{future::IntoFuture, sync::Arc, time::Duration};

use fenced_store::{FenceError, Protected, ProtectedError};
use lock_core::{
    Attempt, Clock, ErrorKind, FencingToken, Holder, InitialToken, Issuer, LockManager, LostReason,
    Operation, Owner, SystemClock, Ttl, memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, Gate, ManualClock, Until};

use crate::{
    file::SqliteFile,
    rule::{
        Harness, balance, fenced_add, forgetful, high_water, is_free, memory_grant, protected_by,
        token, trusting,
    },
};

#[tokio::test]
async fn acquiring_shuts_out_the_older_holder_before_anything_is_written() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let old = accounts.acquire("account:42").await.unwrap();
    let stale = old.sequencer().clone();
    old.begin().await.unwrap().commit().await.unwrap();
    old.release().await.unwrap();

    let new = accounts.acquire("account:42").await.unwrap();
    assert!(new.token() > stale.token());
    let error = world.store().begin(&stale).await.unwrap_err();
    assert!(matches!(error, FenceError::Stale { .. }), "{error:?}");

    let mut tx = new.begin().await.unwrap();
    SqliteFile::add(&mut tx, 1).await.unwrap();
    assert_eq!(tx.commit().await.unwrap().token(), new.token());
    assert_eq!(balance(&world).await, 101);
    assert_eq!(accounts.floor_repairs(), 0);
}

#[tokio::test]
async fn a_lock_service_that_lost_its_counter_is_lifted_above_the_mark() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let before = memory_grant("account:42", 1000);
    world.store().claim(&before).await.unwrap();

    let guard = accounts.acquire("account:42").await.unwrap();
    assert!(guard.token().get() > 1000);
    assert_eq!(
        high_water(&world, "account:42").await,
        Some(guard.token().get())
    );
    assert_eq!(accounts.floor_repairs(), 1);
    guard.begin().await.unwrap().commit().await.unwrap();
    assert!(world.store().begin(&before).await.unwrap_err().is_fenced());
}

/// The lease whose claim was refused has ended before its holder acquires again, although ending it
/// takes the service a while. Otherwise the holder would find it, and be refused again.
#[tokio::test]
async fn a_holder_that_was_refused_is_lifted_though_its_lease_takes_long_to_end() {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let service = MemoryBackend::new(Arc::clone(&clock), InitialToken::At(FencingToken::MIN));
    let chaos = Chaos::new(Arc::new(service), clock);
    let locks = LockManager::builder().build(chaos.clone());
    let (world, accounts) = protected_by::<SqliteFile>(locks.unwrap()).await;
    let before = memory_grant("account:42", 1000);
    world.store().claim(&before).await.unwrap();

    let gate = Gate::closed();
    let late = Fault::DelayRequest(Until::Opened(gate.clone()));
    chaos.next(Operation::Cancel, late);
    let acquire = accounts
        .acquire("account:42")
        .with(|lease| lease.holder(Holder::random()));
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

/// It issues the very number again that another holder has claimed.
#[tokio::test]
async fn a_token_that_was_issued_twice_is_replaced() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    world
        .store()
        .claim(&memory_grant("account:42", 1))
        .await
        .unwrap();
    let guard = accounts.acquire("account:42").await.unwrap();
    assert!(guard.token().get() > 1);
    assert_eq!(accounts.floor_repairs(), 1);
    fenced_add(&world, guard.sequencer()).await.unwrap();
}

/// A mark so high that it must be a mistake does not drag the lock service's counter along.
#[tokio::test]
async fn a_poisoned_mark_is_refused_and_harms_no_other_resource() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let poisoned = memory_grant("account:42", FencingToken::MAX.get() - 1);
    trusting(&world).claim(&poisoned).await.unwrap();
    match accounts.acquire("account:42").await.unwrap_err() {
        ProtectedError::Lock(error) => assert_eq!(error.kind(), ErrorKind::FloorImplausible),
        other => panic!("{other:?}"),
    }
    assert!(is_free(accounts.locks(), "account:42").await);
    let other = accounts.acquire("account:43").await.unwrap();
    assert!(other.token() < token(1000));
    other.begin().await.unwrap().commit().await.unwrap();
}

/// There is no token above the greatest.
#[tokio::test]
async fn a_mark_at_the_cap_is_final() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let last = memory_grant("account:42", FencingToken::MAX.get());
    trusting(&world).claim(&last).await.unwrap();
    let error = accounts.acquire("account:42").await.unwrap_err();
    let ProtectedError::Store(FenceError::Stale { high_water, .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(high_water, FencingToken::MAX);
    assert_eq!(accounts.floor_repairs(), 0);
    assert!(is_free(accounts.locks(), "account:42").await);
}

/// A claim that is refused for another reason gives the lease back, and repairs nothing.
#[tokio::test]
async fn a_refused_claim_gives_the_lease_back() {
    let (world, accounts) = protected_by::<SqliteFile>(
        palisade::connect("memory:")
            .issuer(Issuer::new("other").unwrap())
            .await
            .unwrap(),
    )
    .await;
    world
        .store()
        .claim(&memory_grant("account:42", 1))
        .await
        .unwrap();
    let error = accounts.acquire("account:42").await.unwrap_err();
    let ProtectedError::Store(error) = error else {
        panic!("{error:?}");
    };
    assert!(matches!(error, FenceError::WrongIssuer { .. }), "{error:?}");
    assert!(is_free(accounts.locks(), "account:42").await);
    assert_eq!(high_water(&world, "account:42").await, Some(1));
}

#[tokio::test]
async fn waiting_ends_and_says_so() {
    let (_world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let _held = accounts.acquire("account:42").await.unwrap();
    let wait = Duration::from_millis(50);
    match accounts.acquire("account:42").wait(wait).await.unwrap_err() {
        ProtectedError::Lock(error) => assert_eq!(error.kind(), ErrorKind::WaitTimeout),
        other => panic!("{other:?}"),
    }
}

/// What is held by others is no error of the one look.
#[tokio::test]
async fn one_look_does_not_wait_and_claims_what_it_gets() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let held = accounts.acquire("account:42").await.unwrap();
    let before = high_water(&world, "account:42").await;
    match accounts.acquire("account:42").try_now().await.unwrap() {
        Attempt::Held { retry_after, .. } => assert!(retry_after > Duration::ZERO),
        Attempt::Granted(guard) => panic!("{guard:?}"),
    }
    assert_eq!(high_water(&world, "account:42").await, before);
    let stale = held.sequencer().clone();
    held.release().await.unwrap();

    let Attempt::Granted(guard) = accounts.acquire("account:42").try_now().await.unwrap() else {
        panic!("it is free");
    };
    guard.begin().await.unwrap().commit().await.unwrap();
    assert!(world.store().begin(&stale).await.unwrap_err().is_fenced());
    let bad = accounts.acquire("no spaces").try_now().await.unwrap_err();
    assert!(!bad.is_retryable() && !bad.is_fenced(), "{bad}");
}

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
    let stale = ProtectedError::from(held.begin().await.unwrap_err());
    assert_eq!(stale.resource(), Some(held.resource()));
    assert!(stale.is_fenced() && !stale.is_retryable(), "{stale}");

    for kind in [ErrorKind::Lost, ErrorKind::Released] {
        let error = lock_core::Error::not_applied(kind);
        let error = ProtectedError::from(error);
        assert!(error.is_fenced() && !error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn run_claims_for_the_section_and_releases() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let acquire = accounts.acquire("account:42").wait(Duration::ZERO);
    let receipt = acquire.run(async |guard| {
        let mut tx = guard.begin().await?;
        SqliteFile::add(&mut tx, 1).await?;
        Ok::<_, ProtectedError>(tx.commit().await?)
    });
    let token = receipt.await.unwrap().token();
    assert_eq!(high_water(&world, "account:42").await, Some(token.get()));
    assert_eq!(balance(&world).await, 101);
    assert!(is_free(accounts.locks(), "account:42").await);
}

#[tokio::test]
async fn run_ends_the_section_when_the_lease_is_lost() {
    let clock = ManualClock::new();
    let (_world, accounts) = protected_by::<SqliteFile>(
        palisade::connect("memory:")
            .clock(Arc::new(clock.clone()))
            .await
            .unwrap(),
    )
    .await;
    let acquire = accounts.acquire("account:42");
    let acquire = acquire.with(|lease| lease.ttl(Ttl::secs(10)).renew(false));
    let never = acquire.run(async |_| {
        clock.advance(Duration::from_secs(11));
        std::future::pending::<Result<(), ProtectedError>>().await
    });
    match never.await.unwrap_err() {
        ProtectedError::Store(FenceError::LeaseLost(lost)) => {
            assert_eq!(lost.reason(), LostReason::Expired);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lost_lease_begins_nothing() {
    let clock = ManualClock::new();
    let (_world, accounts) = protected_by::<SqliteFile>(
        palisade::connect("memory:")
            .clock(Arc::new(clock.clone()))
            .await
            .unwrap(),
    )
    .await;
    let acquire = accounts.acquire("account:42");
    let acquire = acquire.with(|lease| lease.ttl(Ttl::secs(10)).renew(false));
    let guard = acquire.await.unwrap();
    guard.begin().await.unwrap().rollback().await.unwrap();

    clock.advance(Duration::from_secs(11));
    match guard.begin().await.unwrap_err() {
        FenceError::LeaseLost(lost) => assert_eq!(lost.reason(), LostReason::Expired),
        other => panic!("{other:?}"),
    }
}

/// The store is not asked a second time: its pool is closed.
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
        assert!(matches!(again, FenceError::Stale { .. }), "{again:?}");
        assert_eq!(again.to_string(), refused.to_string());
    }
    // The other one was not meant: it asks.
    let error = other.begin().await.unwrap_err();
    assert!(!error.is_fenced(), "{error:?}");
}

/// What may be different the next time is asked again.
#[tokio::test]
async fn after_a_busy_store_the_guard_asks_again() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let impatient = Protected::new(accounts.locks().clone(), world.impatient().await);
    let (one, two) = (
        impatient.acquire("account:42").await.unwrap(),
        impatient.acquire("account:43").await.unwrap(),
    );
    let open = two.begin().await.unwrap();
    let busy = one.begin().await.unwrap_err();
    assert!(matches!(busy, FenceError::Busy { .. }), "{busy:?}");
    open.rollback().await.unwrap();
    one.begin().await.unwrap().commit().await.unwrap();
}

#[tokio::test]
async fn a_lost_lease_among_several_begins_nothing() {
    let clock = ManualClock::new();
    let (_world, accounts) = protected_by::<SqliteFile>(
        palisade::connect("memory:")
            .clock(Arc::new(clock.clone()))
            .await
            .unwrap(),
    )
    .await;
    let held = accounts.acquire("account:42").await.unwrap();
    let acquire = accounts.acquire("account:43");
    let acquire = acquire.with(|lease| lease.ttl(Ttl::secs(5)).renew(false));
    let lost = acquire.await.unwrap();
    clock.advance(Duration::from_secs(6));
    let error = held.begin().and(&lost).await.unwrap_err();
    assert!(matches!(error, FenceError::LeaseLost(_)), "{error:?}");
    assert_eq!(error.resource(), Some(lost.resource()));
}

#[tokio::test]
async fn an_acquisition_that_is_dropped_gives_the_lease_back() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let old = accounts.acquire("account:42").await.unwrap();
    let open = old.begin().await.unwrap();
    // The lease is free, but the claim waits for the open transaction.
    accounts.locks().release(old.sequencer()).await.unwrap();
    let cut_off = tokio::time::timeout(
        Duration::from_millis(50),
        accounts.acquire("account:42").into_future(),
    );
    assert!(cut_off.await.is_err());
    open.commit().await.unwrap();
    let next = accounts.acquire("account:42").await.unwrap();
    fenced_add(&world, next.sequencer()).await.unwrap();
}

/// What a lease can have, a protected one can have. To the store an owner is one writer.
#[tokio::test]
async fn an_owner_holds_a_protected_resource_several_times_over() {
    let (world, accounts) = protected_by::<SqliteFile>(forgetful().await).await;
    let owner = Owner::new();
    let acquire = || {
        let acquire = accounts.acquire("account:42");
        acquire.with(|lease| lease.owner(&owner))
    };
    let outer = acquire().with(|lease| lease.metadata("node 7"));
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

    let full = accounts
        .acquire("account:42")
        .with(|lease| lease.max_waiters(0));
    match full.await.unwrap_err() {
        ProtectedError::Lock(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput),
        other => panic!("{other:?}"),
    }
}
