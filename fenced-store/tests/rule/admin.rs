//! What only administrators do.

use std::{
    panic::{AssertUnwindSafe, resume_unwind},
    sync::mpsc,
    time::Duration,
};

use fenced_store::{
    FenceError,
    admin::{AdminError, Handover, HandoverError, HandoverPhase, HandoverStep, Reset},
};
use futures_util::FutureExt;
use lock_core::ResourceName;
use tokio::sync::oneshot;

use super::{
    Harness, balance, fenced_add, fresh, grant, grant_by, hand_over, high_water, in_time, order,
    reason, sealed_at, service, token, tried, trusting,
};

fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

pub(crate) async fn seal_hands_the_store_over<H: Harness>() {
    let world: H = fresh().await;
    let ahead = in_time(Duration::from_secs(3600)).get();
    let (low, high) = (grant("account:42", 33), grant("account:43", ahead));
    world.store().claim(&low).await.unwrap();
    world.store().claim(&high).await.unwrap();
    fenced_add(&world, &low).await.unwrap();
    let done = hand_over(world.store(), "redis", &service("etcd")).await;
    assert_eq!((done.sealed, done.floor.get()), (2, ahead + 1));

    for old in [
        &low,
        &high,
        &grant("account:42", ahead + 5000),
        &grant("account:44", 1),
    ] {
        let begun = world.store().begin(old).await.unwrap_err();
        let claimed = world.store().claim(old).await.unwrap_err();
        assert!(
            matches!(claimed, FenceError::WrongIssuer { .. }),
            "{claimed:?}"
        );
        assert!(begun.is_fenced(), "{begun:?}");
    }
    for resource in ["account:42", "account:43"] {
        assert_eq!(high_water(&world, resource).await, Some(ahead));
    }
    let issuer = world.store().admin().issuer().await.unwrap().unwrap();
    assert_eq!(issuer.as_str(), "etcd");

    let not_above = grant_by("etcd", "account:42", ahead);
    assert!(
        world
            .store()
            .claim(&not_above)
            .await
            .unwrap_err()
            .is_fenced()
    );
    let new = grant_by("etcd", "account:42", ahead + 1);
    world.store().claim(&new).await.unwrap();
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(balance(&world).await, 102);
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

/// However far the clock has got since.
pub(crate) async fn a_mark_is_sealed_above_the_clock<H: Harness>() {
    let world: H = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    let done = hand_over(world.store(), "redis", &service("etcd")).await;
    assert_eq!(high_water(&world, "account:42").await, sealed_at(&done));
    let (least, most) = (Duration::from_secs(50), Duration::from_secs(60));
    assert!(done.floor > in_time(least) && done.floor <= in_time(most));
}

pub(crate) async fn seal_again_changes_nothing<H: Harness>() {
    let world: H = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
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

/// One of them seals, the others find it done; none is told of a deadlock with another.
pub(crate) async fn seals_at_the_same_time_agree<H: Harness>() {
    let world: H = fresh().await;
    let mut services = [service("redis"), service("etcd")];
    let resources = ["account:41", "account:42", "account:43"];
    for resource in resources {
        world.store().claim(&grant(resource, 33)).await.unwrap();
    }
    let admin = world.store().admin();
    for _ in 1..=10 {
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
    // In each round one issuer and three marks.
    assert_eq!(world.administration().await.len(), 40);
}

pub(crate) async fn seal_of_a_third_service_is_refused<H: Harness>() {
    let world: H = fresh().await;
    let ours = grant_by("zookeeper", "account:42", 33);
    world.store().claim(&ours).await.unwrap();
    let before = (world.dump().await, world.administration().await);
    let refused = tried(world.store(), &order("redis", &service("etcd"))).await;
    match refused.unwrap_err() {
        HandoverError::OtherIssuer { phase, current, .. } => {
            assert_eq!(
                (phase, current.as_str()),
                (HandoverPhase::Before, "zookeeper")
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((world.dump().await, world.administration().await), before);
    fenced_add(&world, &ours).await.unwrap();
}

/// A store that nobody has claimed in yet is handed over, too.
pub(crate) async fn seal_of_an_empty_store_sets_the_issuer<H: Harness>() {
    let world: H = fresh().await;
    let done = hand_over(world.store(), "redis", &service("etcd")).await;
    assert_eq!(done.sealed, 0);
    let old = world.store().claim(&grant("account:42", 33)).await;
    assert!(
        matches!(old, Err(FenceError::WrongIssuer { .. })),
        "{old:?}"
    );
}

/// What they write is stored before the mark is sealed, and counted as theirs.
pub(crate) async fn seal_waits_for_open_transactions<H: Harness>() {
    let world: H = fresh().await;
    let (old, other) = (grant("account:42", 33), grant("account:41", 7));
    world.store().claim(&old).await.unwrap();
    world.store().claim(&other).await.unwrap();
    let mut tx = world.store().begin(&old).await.unwrap();
    let (impatient, etcd) = (world.impatient().await, service("etcd"));
    match tried(&impatient, &order("redis", &etcd)).await.unwrap_err() {
        HandoverError::Unfinished { source, .. } => assert!(source.is_retryable()),
        HandoverError::Store {
            source: AdminError::Store(error),
            ..
        } => assert!(error.is_retryable(), "{error:?}"),
        other => panic!("{other:?}"),
    }
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    hand_over(world.store(), "redis", &etcd).await;
    assert!(fenced_add(&world, &old).await.unwrap_err().is_fenced());
    for resource in ["account:41", "account:42"] {
        assert!(high_water(&world, resource).await > Some(33));
    }
    assert_eq!(balance(&world).await, 101);
}

/// Hands over, and goes away when it has sealed one mark.
async fn interrupted_at_the_first_mark<H: Harness>(world: &H, order: &Handover) {
    let goes_away = |step: HandoverStep<'_>| {
        if matches!(step, HandoverStep::Sealed(..)) {
            resume_unwind(Box::new("gone"));
        }
    };
    let admin = world.store().admin();
    let interrupted = AssertUnwindSafe(admin.hand_over(order, goes_away)).catch_unwind();
    assert!(interrupted.await.is_err(), "it was not interrupted");
}

pub(crate) async fn an_interrupted_seal_is_taken_up_again<H: Harness>() {
    let world: H = fresh().await;
    for number in 1..=5 {
        let grant = grant(&format!("account:{number}"), number);
        world.store().claim(&grant).await.unwrap();
    }
    let etcd = service("etcd");
    interrupted_at_the_first_mark(&world, &order("redis", &etcd)).await;
    let rest = hand_over(world.store(), "redis", &etcd).await.sealed;
    assert_eq!(rest, 4);
    for number in 1..=5 {
        let mark = high_water(&world, &format!("account:{number}")).await;
        assert!(mark > Some(5));
    }
    assert_eq!(
        world.administration().await.len(),
        6,
        "each is written down once"
    );
}

/// An order that was interrupted has left marks that no later one is about but that tells of them.
pub(crate) async fn a_later_seal_tells_what_an_earlier_one_has_left<H: Harness>() {
    let world: H = fresh().await;
    for number in 1..=5 {
        let grant = grant(&format!("account:{number}"), number);
        world.store().claim(&grant).await.unwrap();
    }
    let (etcd, zookeeper) = (service("etcd"), service("zookeeper"));
    interrupted_at_the_first_mark(&world, &order("redis", &etcd)).await;
    let later = order("etcd", &zookeeper);
    // What is left is told as long as it is there.
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
    for number in 1..=5 {
        let mark = high_water(&world, &format!("account:{number}")).await;
        assert!(mark > Some(5));
    }
}

/// Its next mark would otherwise be given to a service that is history by now.
pub(crate) async fn a_seal_that_another_has_overtaken_stops<H: Harness>() {
    let world: H = fresh().await;
    for number in 1..=3 {
        let grant = grant(&format!("account:{number}"), number);
        world.store().claim(&grant).await.unwrap();
    }
    let (begin, begun) = oneshot::channel::<()>();
    let (done, is_done) = mpsc::channel();
    let store = world.store().clone();
    let (etcd, zookeeper) = (service("etcd"), service("zookeeper"));
    #[allow(clippy::disallowed_methods, reason = "the callback below waits for it")]
    let other = tokio::spawn(async move {
        begun.await.unwrap();
        let told = tried(&store, &order("etcd", &zookeeper)).await;
        done.send(()).unwrap();
        told
    });
    let mut begin = Some(begin);
    // The first mark is sealed, and the others wait until the other handover has been there.
    let progress = move |step: HandoverStep<'_>| {
        if matches!(step, HandoverStep::Sealed(..)) {
            begin.take().unwrap().send(()).unwrap();
            is_done.recv_timeout(Duration::from_secs(60)).unwrap();
        }
    };
    let first = order("redis", &etcd);
    let overtaken = world.store().admin().hand_over(&first, progress).await;
    match overtaken.unwrap_err() {
        HandoverError::OtherIssuer { phase, current, .. } => {
            assert_eq!(
                (phase, current.as_str()),
                (HandoverPhase::Sealing, "zookeeper")
            );
        }
        other => panic!("{other:?}"),
    }
    let told = other.await.unwrap().unwrap_err();
    assert!(
        matches!(
            told,
            HandoverError::OthersLeft {
                sealed: 1,
                marks: 2,
                ..
            }
        ),
        "{told:?}"
    );
    assert!(high_water(&world, "account:1").await > Some(3));
    for (number, mark) in [(2, 2), (3, 3)] {
        let resource = format!("account:{number}");
        assert_eq!(high_water(&world, &resource).await, Some(mark));
    }
}

/// No lock service would ever come above such a mark. Whoever means it says so.
pub(crate) async fn a_mark_is_not_put_out_of_reach_by_mistake<H: Harness>() {
    const ABSURD: u64 = 999_999_999_999_998;
    let world: H = fresh().await;
    let ours = grant("account:42", 33);
    world.store().claim(&ours).await.unwrap();
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
    // A way down is never refused, be it to where no service counts either.
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

pub(crate) async fn reset_sets_the_mark_that_it_expects<H: Harness>() {
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
    assert!(
        matches!(holder, FenceError::NotClaimed { .. }),
        "{holder:?}"
    );
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

pub(crate) async fn reset_waits_for_open_transactions<H: Harness>() {
    let world: H = fresh().await;
    let grant = grant("account:42", 33);
    world.store().claim(&grant).await.unwrap();
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
