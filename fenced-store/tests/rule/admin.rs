//! Changes by administrators.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    time::Duration,
};

use fenced_store::{
    FenceError,
    admin::{AdminError, Handover, HandoverError, HandoverStep, Reset},
};
use futures_util::FutureExt;
use lock_core::ResourceName;

use super::{
    SqlHarness, assert_kind, balance, claimed, fenced_add, fresh, grant, grant_by, hand_over,
    high_water, in_time, order, reason, sealed_at, service, token, tried, trusting,
};

fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

/// One mark is ahead of the clock, and all are sealed above it.
pub(crate) async fn seal_hands_the_store_over<H: SqlHarness>() {
    let world: H = fresh().await;
    let ahead = in_time(Duration::from_secs(3600)).get();
    let (low, high) = (grant("account:42", 33), grant("account:43", ahead));
    world.store().claim(&low).await.unwrap();
    world.store().claim(&high).await.unwrap();
    let done = hand_over(world.store(), "redis", &service("etcd")).await;
    assert_eq!((done.sealed, done.floor.get()), (2, ahead + 1));
    for resource in ["account:42", "account:43"] {
        assert_eq!(high_water(&world, resource).await, Some(ahead));
    }
    let issuer = world.store().admin().issuer().await.unwrap().unwrap();
    assert_eq!(issuer.as_str(), "etcd");

    let not_above = grant_by("etcd", "account:42", ahead);
    let refused = world.store().claim(&not_above).await.unwrap_err();
    assert!(refused.is_fenced(), "{refused:?}");
    let new = grant_by("etcd", "account:42", ahead + 1);
    world.store().claim(&new).await.unwrap();
    fenced_add(&world, &new).await.unwrap();
    let (one, two) = ("redis etcd moved to 'etcd'; see ticket 7", "Some");
    let done = world.administration().await;
    assert_eq!(
        done,
        [
            format!("seal None None None {one}"),
            format!("seal mark {two}(\"account:42\") {two}(33) {two}({ahead}) {one}"),
            format!("seal mark {two}(\"account:43\") {two}({ahead}) {two}({ahead}) {one}"),
        ]
    );
}

pub(crate) async fn seal_again_changes_nothing<H: SqlHarness>() {
    let (world, _) = claimed::<H>().await;
    let etcd = service("etcd");
    let done = hand_over(world.store(), "redis", &etcd).await;
    let new = grant_by("etcd", "account:42", done.floor.get());
    world.store().claim(&new).await.unwrap();
    let before = (world.dump().await, world.administration().await);
    let again = hand_over(world.store(), "redis", &etcd).await;
    assert_eq!(again.sealed, 0);
    assert_eq!((world.dump().await, world.administration().await), before);
    fenced_add(&world, &new).await.unwrap();
}

/// One of the calls seals, and the others find the work done. No call fails because of a deadlock
/// with another one.
pub(crate) async fn seals_at_the_same_time_agree<H: SqlHarness>() {
    const ROUNDS: usize = 4;
    let world: H = fresh().await;
    let mut services = [service("redis"), service("etcd")];
    let resources = ["account:41", "account:42", "account:43"];
    for resource in resources {
        world.store().claim(&grant(resource, 33)).await.unwrap();
    }
    let admin = world.store().admin();
    for _ in 1..=ROUNDS {
        let [from, to] = &services;
        let order = order(from.issuer().as_str(), to);
        let seals = (0..6).map(|_| admin.hand_over(&order, |_| ()));
        let done = futures_util::future::try_join_all(seals).await.unwrap();
        assert!(done.iter().map(|done| done.sealed).sum::<u64>() >= 3);
        assert_eq!(admin.issuer().await.unwrap().as_ref(), Some(to.issuer()));
        let floors: Vec<_> = done.iter().map(sealed_at).collect();
        for resource in resources {
            let mark = high_water(&world, resource).await;
            assert!(floors.contains(&mark), "{mark:?} is none of {floors:?}");
        }
        services.swap(0, 1);
    }
    // Each round writes one change of the issuer and three of marks.
    assert_eq!(world.administration().await.len(), 4 * ROUNDS);
}

/// A store can be handed over before its first claim.
pub(crate) async fn seal_of_an_empty_store_sets_the_issuer<H: SqlHarness>() {
    let world: H = fresh().await;
    let done = hand_over(world.store(), "redis", &service("etcd")).await;
    assert_eq!(done.sealed, 0);
    let old = world.store().claim(&grant("account:42", 33)).await;
    assert!(
        matches!(old, Err(FenceError::WrongIssuer { .. })),
        "{old:?}"
    );
}

/// Hands over, and drops the future when it has sealed one mark.
async fn interrupted_at_the_first_mark<H: SqlHarness>(world: &H, order: &Handover) {
    let goes_away = |step: HandoverStep<'_>| {
        if matches!(step, HandoverStep::Sealed(..)) {
            resume_unwind(Box::new("gone"));
        }
    };
    let admin = world.store().admin();
    let interrupted = AssertUnwindSafe(admin.hand_over(order, goes_away)).catch_unwind();
    assert!(interrupted.await.is_err(), "it was not interrupted");
}

/// An interrupted order has left marks. A later order does not seal these marks, but reports them.
/// Then the first order is repeated and completed. The log has each mark once.
pub(crate) async fn a_later_seal_tells_what_an_earlier_one_has_left<H: SqlHarness>() {
    let world: H = fresh().await;
    for number in 1..=5 {
        let grant = grant(&format!("account:{number}"), number);
        world.store().claim(&grant).await.unwrap();
    }
    let (etcd, zookeeper) = (service("etcd"), service("zookeeper"));
    interrupted_at_the_first_mark(&world, &order("redis", &etcd)).await;
    let later = order("etcd", &zookeeper);
    // Marks are reported as long as they are there.
    let mut left = 0;
    for _ in 0..2 {
        match tried(world.store(), &later).await.unwrap_err() {
            HandoverError::OthersLeft { issuer, marks, .. } => {
                assert_eq!(issuer.as_str(), "redis");
                assert_eq!(marks, 4);
                left = marks;
            }
            other => panic!("{other:?}"),
        }
    }
    let rest = hand_over(world.store(), "redis", &zookeeper).await;
    assert_eq!(rest.sealed, left);
    assert_eq!(tried(world.store(), &later).await.unwrap().sealed, 0);
    // Two changes of the issuer, five marks, and the first mark once more.
    assert_eq!(world.administration().await.len(), 8);
    for number in 1..=5 {
        let mark = high_water(&world, &format!("account:{number}")).await;
        assert!(mark > Some(5));
    }
}

/// No lock service would ever come above such a mark. An operator has to confirm it.
pub(crate) async fn a_mark_is_not_put_out_of_reach_by_mistake<H: SqlHarness>() {
    const ABSURD: u64 = 999_999_999_999_998;
    let (world, ours) = claimed::<H>().await;
    let before = (world.dump().await, world.administration().await);
    let raise = Reset::raise(name("account:42"), token(33), token(ABSURD), reason()).unwrap();
    let refused = world.store().admin().reset_high_water(&raise).await;
    match refused.unwrap_err() {
        AdminError::Implausible { to, .. } => assert_eq!(to.get(), ABSURD),
        other => panic!("{other:?}"),
    }
    assert_eq!((world.dump().await, world.administration().await), before);
    fenced_add(&world, &ours).await.unwrap();

    let trusting = trusting(&world);
    trusting.admin().reset_high_water(&raise).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(ABSURD));
    // An order that lowers a mark is never refused, even if the new mark is still too great.
    let down = Reset::lower(
        name("account:42"),
        token(ABSURD),
        token(ABSURD - 1),
        reason(),
    );
    world
        .store()
        .admin()
        .reset_high_water(&down.unwrap())
        .await
        .unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(ABSURD - 1));
}

pub(crate) async fn reset_sets_the_mark_that_it_expects<H: SqlHarness>() {
    let world: H = fresh().await;
    let poison = grant("account:42", 999_999_999_999_999);
    trusting(&world).claim(&poison).await.unwrap();
    let before = (world.dump().await, world.administration().await);

    let blind = Reset::lower(name("account:42"), token(34), token(33), reason()).unwrap();
    let error = world
        .store()
        .admin()
        .reset_high_water(&blind)
        .await
        .unwrap_err();
    match &error {
        AdminError::NotAsExpected { current, .. } => assert_eq!(*current, Some(poison.token())),
        other => panic!("{other:?}"),
    }
    let nothing = Reset::raise(name("account:43"), token(1), token(2), reason()).unwrap();
    let error = world
        .store()
        .admin()
        .reset_high_water(&nothing)
        .await
        .unwrap_err();
    assert!(
        matches!(error, AdminError::NotAsExpected { current: None, .. }),
        "{error:?}"
    );
    assert_eq!((world.dump().await, world.administration().await), before);

    let cure = Reset::lower(name("account:42"), poison.token(), token(33), reason()).unwrap();
    world.store().admin().reset_high_water(&cure).await.unwrap();
    assert_eq!(high_water(&world, "account:42").await, Some(33));
    let again = world.store().admin().reset_high_water(&cure).await;
    assert!(
        matches!(again, Err(AdminError::NotAsExpected { .. })),
        "{again:?}"
    );
    let holder = world.store().begin(&poison).await.unwrap_err();
    assert_kind!(holder, NotClaimed);
    let twin = world.store().claim(&grant("account:42", 33)).await;
    assert!(
        matches!(twin, Err(FenceError::DuplicateToken { .. })),
        "{twin:?}"
    );
    let next = grant("account:42", 34);
    world.store().claim(&next).await.unwrap();
    fenced_add(&world, &next).await.unwrap();

    let up = Reset::raise(name("account:42"), token(34), token(50), reason()).unwrap();
    world.store().admin().reset_high_water(&up).await.unwrap();
    assert!(fenced_add(&world, &next).await.unwrap_err().is_fenced());
    let because = "redis redis moved to 'etcd'; see ticket 7";
    let resource = "Some(\"account:42\")";
    assert_eq!(
        world.administration().await,
        [
            format!("reset mark {resource} Some(999999999999999) Some(33) {because}"),
            format!("reset mark {resource} Some(34) Some(50) {because}"),
        ]
    );
}

pub(crate) async fn reset_waits_for_open_transactions<H: SqlHarness>() {
    let (world, grant) = claimed::<H>().await;
    let mut tx = world.store().begin(&grant).await.unwrap();
    let up = Reset::raise(name("account:42"), token(33), token(50), reason()).unwrap();
    let impatient = world.impatient().await;
    match impatient.admin().reset_high_water(&up).await.unwrap_err() {
        AdminError::Store(error) => assert!(error.is_retryable(), "{error:?}"),
        other => panic!("{other:?}"),
    }
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    world.store().admin().reset_high_water(&up).await.unwrap();
    assert_eq!(balance(&world).await, 101);
}
