//! Claims that pass, claims that are refused, and the transactions that a claim disturbs.

use fenced_store::FenceError;
use lock_core::{FencingToken, Issuer, Plausibility, Sequencer};
use tokio::task::JoinSet;

use super::{
    Harness, SqlHarness, assert_kind, balance, claimed, fenced_add, fresh, grant, grant_by,
    high_water, token, trusting,
};

pub(crate) async fn foreign_issuer_is_refused<H: Harness>() {
    let (world, ours) = claimed::<H>().await;

    let greater = grant_by("etcd", "account:42", 900);
    let new_resource = grant_by("etcd", "account:43", 1);
    let (resource, holder) = (ours.resource().clone(), ours.holder());
    let same = Sequencer::new(greater.issuer().clone(), resource, ours.token(), holder);
    for error in [
        world.store().claim(&greater).await.unwrap_err(),
        world.store().begin(&greater).await.unwrap_err(),
        world.store().claim(&same).await.unwrap_err(),
        world.store().begin(&same).await.unwrap_err(),
        world.store().claim(&new_resource).await.unwrap_err(),
    ] {
        assert!(error.is_fenced());
        match error {
            FenceError::WrongIssuer {
                presented, current, ..
            } => assert_eq!((presented.as_str(), current.as_str()), ("etcd", "redis")),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    assert_eq!(high_water(&world, "account:43").await, None);
    fenced_add(&world, &ours).await.unwrap();
}

/// The first claim sets the issuer. A refused claim, a look and a begin do not set it.
pub(crate) async fn refused_first_claim_leaves_nothing<H: SqlHarness>() {
    let world: H = fresh().await;
    let before = world.dump().await;
    let foreign = grant_by("etcd", "account:42", FencingToken::MAX.get());
    let refused = world.store().claim(&foreign).await.unwrap_err();
    assert_kind!(refused, Implausible);
    assert!(world.store().begin(&foreign).await.unwrap_err().is_fenced());
    assert_eq!(high_water(&world, "account:42").await, None);
    assert_eq!(world.dump().await, before);
    assert_eq!(world.store().admin().issuer().await.unwrap(), None);
    world.store().claim(&grant("account:42", 1)).await.unwrap();
    let mark = world
        .store()
        .high_water(foreign.resource())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(mark.issuer(), &Issuer::new("redis").unwrap());
}

/// A stale claim must not queue: it would wait behind an open transaction of the live holder, and
/// later requests would wait behind the claim.
pub(crate) async fn stale_claim_does_not_wait_for_the_live_holder<H: Harness>() {
    let world: H = fresh().await;
    let (old, live) = (grant("account:42", 33), grant("account:42", 34));
    world.store().claim(&old).await.unwrap();
    world.store().claim(&live).await.unwrap();

    let mut tx = world.store().begin(&live).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    // If it queued, this would be `Busy`.
    let error = world.impatient().await.claim(&old).await.unwrap_err();
    assert_kind!(error, Stale);
    let twin = grant("account:42", 34);
    let error = world.impatient().await.claim(&twin).await.unwrap_err();
    assert_kind!(error, DuplicateToken);
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, 101);
}

/// While a transaction of the older holder is open, the claim does not succeed: otherwise that
/// transaction could commit after the claim.
pub(crate) async fn claim_waits_for_the_older_holder_and_gives_up_busy<H: Harness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);

    let mut tx = world.store().begin(&old).await.unwrap();
    H::add(&mut tx, 1).await.unwrap();
    let error = world.impatient().await.claim(&new).await.unwrap_err();
    assert_kind!(error, Busy);
    assert!(error.is_retryable() && !error.is_fenced());
    assert_eq!(high_water(&world, "account:42").await, Some(33));

    let claim = world.store().claim(&new);
    let commit = tx.commit();
    let (claimed, committed) = tokio::join!(claim, commit);
    committed.unwrap();
    claimed.unwrap();
    assert!(world.store().begin(&old).await.unwrap_err().is_fenced());
    assert_eq!(balance(&world).await, 101);
}

pub(crate) async fn concurrent_claims_leave_the_greatest<H: Harness>() {
    let world: H = fresh().await;
    let mut claims = JoinSet::new();
    for number in 1..=12 {
        let (store, grant) = (world.store().clone(), grant("account:42", number));
        claims.spawn(async move { (store.claim(&grant).await, grant) });
    }
    let claims = claims.join_all().await;
    assert_eq!(high_water(&world, "account:42").await, Some(12));
    for (claimed, grant) in &claims {
        let greatest = grant.token().get() == 12;
        match claimed {
            Ok(()) => {}
            Err(FenceError::Stale { high_water, .. }) => {
                assert!(!greatest && *high_water > grant.token());
            }
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(fenced_add(&world, grant).await.is_ok(), greatest);
    }
    assert_eq!(balance(&world).await, 101);
}

/// The first claims of two lock services at once: each claim reads the issuer again after it has
/// locked it.
/// Catches: two first claims that both set the issuer.
pub(crate) async fn concurrent_first_claims_leave_one_issuer<H: Harness>() {
    for _ in 0..4 {
        let world: H = fresh().await;
        let mut claims = JoinSet::new();
        for issuer in ["redis", "etcd"] {
            let store = world.store().clone();
            let grant = grant_by(issuer, &format!("of:{issuer}"), 1);
            claims.spawn(async move { store.claim(&grant).await });
        }
        let (won, lost): (Vec<_>, Vec<_>) =
            claims.join_all().await.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 1), "{lost:?}");
        let error = lost.into_iter().find_map(Result::err).unwrap();
        assert_kind!(error, WrongIssuer);
    }
}

pub(crate) async fn extreme_tokens_fit<H: Harness>() {
    let world: H = fresh().await;
    let (least, greatest) = (FencingToken::MIN.get(), FencingToken::MAX.get());
    world
        .store()
        .claim(&grant("account:42", least))
        .await
        .unwrap();
    let last = grant("account:42", greatest);
    trusting(&world).claim(&last).await.unwrap();
    fenced_add(&world, &last).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(greatest));
}

/// The case above is the control: there a store that takes every token gets a mark that no token
/// exceeds.
pub(crate) async fn implausible_token_is_not_claimed<H: Harness>() {
    let (world, ours) = claimed::<H>().await;
    let thousand = world.store().clone();
    let thousand = thousand.plausibility(Plausibility::up_to(token(1000)));
    for (store, number) in [(world.store(), FencingToken::MAX.get()), (&thousand, 1001)] {
        let error = store.claim(&grant("account:42", number)).await.unwrap_err();
        match &error {
            FenceError::Implausible { presented, .. } => assert_eq!(presented.get(), number),
            other => panic!("{other:?}"),
        }
        assert!(error.is_fenced() && !error.is_retryable());
    }
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    fenced_add(&world, &ours).await.unwrap();
    thousand.claim(&grant("account:42", 1000)).await.unwrap();
}

/// A transaction was left open on a pooled connection. Inside that transaction the claim would be
/// lost with the session, as the write of the control is.
pub(crate) async fn claim_on_a_stray_shuts_the_older_holder_out<H: SqlHarness>() {
    let (world, old) = claimed::<H>().await;
    let new = grant("account:42", 34);
    let left_open = async || {
        let store = world.store_of_one().await;
        let mut stray = store.pool().acquire().await.unwrap();
        H::execute(&mut stray, "BEGIN").await.unwrap();
        drop(stray);
        store
    };
    let naive = left_open().await;
    let mut stray = naive.pool().acquire().await.unwrap();
    H::add_by_itself(&mut stray, 1).await.unwrap();
    drop(stray);
    naive.pool().close().await;

    let store = left_open().await;
    store.claim(&new).await.unwrap();
    store.pool().close().await;
    assert_eq!(high_water(&world, "account:42").await, Some(34));
    let error = fenced_add(&world, &old).await.unwrap_err();
    assert_kind!(error, Stale);
    assert_eq!(balance(&world).await, 100);
}

/// All connections of the pool were left inside a transaction. A call meets each of them at most
/// once.
pub(crate) async fn a_pool_full_of_strays_is_cleared<H: SqlHarness>() {
    let (world, old) = claimed::<H>().await;
    let pool = world.store().pool();
    let mut strays = Vec::new();
    for _ in 0..pool.options().get_max_connections() {
        let mut connection = pool.acquire().await.unwrap();
        H::execute(&mut connection, "BEGIN").await.unwrap();
        strays.push(connection);
    }
    let all = strays.len();
    drop(strays);
    // A call does not meet a connection that is still on its way back to the pool.
    while pool.num_idle() < all {
        tokio::task::yield_now().await;
    }
    fenced_add(&world, &old).await.unwrap();
    world.store().claim(&grant("account:42", 34)).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}
