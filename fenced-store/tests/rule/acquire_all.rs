//! Several resources that are locked and claimed, all or none.

use std::time::Duration;

use fenced_store::{FencedLockError, FencedLocks};
use lock_core::{Attempt, ErrorKind, FencingToken, InitialToken, LockManager, Sequencer, Ttl};

use super::{Harness, assert_kind, at_every_await, balance, fresh, grant_by, high_water, trusting};

/// The wait for resources that are free.
const WAIT: Duration = Duration::from_secs(30);

/// The ttl of leases that have to be released long before they would run out.
const LONG: Ttl = Ttl::secs(600);

const BOTH: [&str; 2] = ["account:43", "account:42"];

/// A lock service that begins at token 1, as if it had lost its counter.
pub(crate) async fn forgetful() -> LockManager {
    palisade::connect("memory:")
        .initial_token(InitialToken::At(FencingToken::MIN))
        .await
        .unwrap()
}

pub(crate) async fn protected_by<H: Harness>(locks: LockManager) -> (H, FencedLocks<H::Db>) {
    let world: H = fresh().await;
    let protected = FencedLocks::new(locks, world.store().clone());
    (world, protected)
}

pub(crate) fn memory_grant(resource: &str, number: u64) -> Sequencer {
    grant_by("memory", resource, number)
}

pub(crate) async fn is_free(locks: &LockManager, resource: &str) -> bool {
    matches!(
        locks.try_acquire(resource).await.unwrap(),
        Attempt::Granted(_)
    )
}

pub(crate) async fn several_are_locked_and_claimed_and_entered_by_one_transaction<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let old = accounts.acquire_all(BOTH, WAIT).await.unwrap();
    let stale: Vec<_> = old.iter().map(|guard| guard.sequencer().clone()).collect();
    old.release_all().await.unwrap();

    let guards = accounts.acquire_all(BOTH, WAIT).await.unwrap();
    assert_eq!((guards.len(), guards.is_empty()), (2, false));
    for (place, name) in BOTH.into_iter().enumerate() {
        assert_eq!(guards[place].resource().as_str(), name);
        assert_eq!(guards.get(name).unwrap().token(), guards[place].token());
        let mark = high_water(&world, name).await;
        assert_eq!(mark, Some(guards[place].token().get()));
    }
    for grant in &stale {
        assert!(world.store().begin(grant).await.unwrap_err().is_fenced());
    }
    let mut tx = guards.begin().await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    let receipt = tx.commit().await.unwrap();
    let entered: Vec<_> = receipt.resources().map(|(name, _)| name.as_str()).collect();
    assert_eq!(entered, BOTH);
    assert_eq!(balance(&world).await, 101);
    assert!(guards.remaining().unwrap() > Duration::ZERO);
    guards.release_all().await.unwrap();
    for name in BOTH {
        assert!(is_free(accounts.locks(), name).await);
    }
}

/// An acquire that does not get all resources shuts no holder out.
pub(crate) async fn several_are_not_claimed_unless_all_were_acquired<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let held = accounts.locks().acquire("account:43").await.unwrap();
    let timeout = accounts.acquire_all(BOTH, Duration::ZERO).await;
    let timeout = timeout.unwrap_err();
    assert!(timeout.is_retryable(), "{timeout}");
    for name in BOTH {
        assert_eq!(high_water(&world, name).await, None);
    }
    assert!(is_free(accounts.locks(), "account:42").await);
    held.release().await.unwrap();

    match accounts.acquire_all([BOTH[0]; 2], WAIT).await.unwrap_err() {
        FencedLockError::Lock(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput),
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn a_lock_service_behind_the_store_is_lifted_for_each_of_several<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    for (name, mark) in BOTH.into_iter().zip([1000, 2000]) {
        let before = memory_grant(name, mark);
        world.store().claim(&before).await.unwrap();
    }
    let guards = accounts.acquire_all(BOTH, WAIT).await.unwrap();
    assert!(guards[0].token().get() > 1000 && guards[1].token().get() > 2000);
    assert_eq!(accounts.floor_repairs(), 2);
    guards.begin().await.unwrap().commit().await.unwrap();
}

pub(crate) async fn a_claim_that_is_refused_gives_all_of_several_back<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let last = memory_grant("account:42", FencingToken::MAX.get());
    trusting(&world).claim(&last).await.unwrap();
    let refused = accounts.acquire_all(BOTH, WAIT).await.unwrap_err();
    assert!(refused.is_fenced(), "{refused}");
    assert_eq!(refused.resource(), Some(last.resource()));
    assert_eq!(accounts.floor_repairs(), 0);
    for name in BOTH {
        assert!(is_free(accounts.locks(), name).await);
    }
}

/// One grant that is shut out makes the store refuse the transaction of all guards.
pub(crate) async fn one_stale_grant_among_several_guards_refuses_all<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let guards = accounts.acquire_all(BOTH, WAIT).await.unwrap();
    let newer = memory_grant("account:42", 1000);
    world.store().claim(&newer).await.unwrap();
    let refused = guards.begin().await.unwrap_err();
    assert_kind!(refused, Stale);
    assert_eq!(refused.resource(), Some(newer.resource()));
    guards[0].begin().await.unwrap().commit().await.unwrap();
}

pub(crate) async fn in_either_order_of_names_several_are_had_in_turn<H: Harness>() {
    let (world, accounts) = protected_by::<H>(forgetful().await).await;
    let turns = async |names: [&str; 2]| {
        for _ in 0..10 {
            let guards = accounts.acquire_all(names, WAIT).await.unwrap();
            let mut tx = guards.begin().await.unwrap();
            H::add(&mut tx, 1).await.unwrap();
            tx.commit().await.unwrap();
            guards.release_all().await.unwrap();
        }
    };
    tokio::join!(turns(["account:42", "account:43"]), turns(BOTH));
    assert_eq!(balance(&world).await, 120);
}

pub(crate) async fn an_acquisition_of_several_that_is_dropped_at_any_await_leaves_nothing<
    H: Harness,
>() {
    let (_world, accounts) = protected_by::<H>(forgetful().await).await;
    at_every_await(async |at| {
        let acquire = accounts.acquire_all(BOTH, WAIT).ttl(LONG);
        let completed = at.poll(acquire).await.is_some();
        // If leases were left behind, this wait would fail, because their ttl is longer.
        let next = accounts.acquire_all(BOTH, WAIT).await.unwrap();
        next.begin().await.unwrap().commit().await.unwrap();
        next.release_all().await.unwrap();
        completed
    })
    .await;
}
