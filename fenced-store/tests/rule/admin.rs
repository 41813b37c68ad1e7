//! What only administrators do.

use std::{
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use fenced_store::{
    FenceError, FencedStore,
    admin::{AdminError, Reason, Reset, Seal},
};
use lock_core::{Issuer, ResourceName};
use tokio::sync::{Notify, oneshot};

use super::{Harness, balance, fenced_add, fresh, grant, grant_by, high_water, token, trusting};

fn reason() -> Reason {
    Reason::new("moved to 'etcd'; see ticket 7").unwrap()
}

fn seal_above(above: u64) -> Seal {
    seal_from("redis", "etcd", above)
}

fn seal_from(from: &str, to: &str, above: u64) -> Seal {
    let issuer = |name| Issuer::new(name).unwrap();
    Seal::new(issuer(from), issuer(to), token(above), reason()).unwrap()
}

fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

async fn seal<H: Harness>(store: &FencedStore<H::Db>, above: u64) -> Result<u64, AdminError> {
    store.admin().seal(&seal_above(above), |_, _| ()).await
}

pub(crate) async fn seal_hands_the_store_over<H: Harness>() {
    let world: H = fresh().await;
    let (low, high) = (grant("account:42", 33), grant("account:43", 2000));
    world.store().claim(&low).await.unwrap();
    world.store().claim(&high).await.unwrap();
    fenced_add(&world, &low).await.unwrap();
    assert_eq!(seal::<H>(world.store(), 1000).await.unwrap(), 2);

    for old in [
        &low,
        &high,
        &grant("account:42", 5000),
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
    assert_eq!(high_water(&world, "account:42").await, Some(1000));
    assert_eq!(high_water(&world, "account:43").await, Some(2000));
    let issuer = world.store().admin().issuer().await.unwrap().unwrap();
    assert_eq!(issuer.as_str(), "etcd");

    let not_above = grant_by("etcd", "account:42", 1000);
    assert!(
        world
            .store()
            .claim(&not_above)
            .await
            .unwrap_err()
            .is_fenced()
    );
    let new = grant_by("etcd", "account:42", 1001);
    world.store().claim(&new).await.unwrap();
    fenced_add(&world, &new).await.unwrap();
    assert_eq!(balance(&world).await, 102);
    let (one, two) = ("redis etcd moved to 'etcd'; see ticket 7", "Some");
    let done = world.administration().await;
    assert_eq!(
        done,
        [
            format!("seal None None None {one}"),
            format!("seal mark {two}(\"account:42\") {two}(33) {two}(1000) {one}"),
            format!("seal mark {two}(\"account:43\") {two}(2000) {two}(2000) {one}"),
        ]
    );
}

pub(crate) async fn seal_again_changes_nothing<H: Harness>() {
    let world: H = fresh().await;
    world.store().claim(&grant("account:42", 33)).await.unwrap();
    seal::<H>(world.store(), 1000).await.unwrap();
    let new = grant_by("etcd", "account:42", 1001);
    world.store().claim(&new).await.unwrap();
    let before = (world.dump().await, world.administration().await);
    assert_eq!(seal::<H>(world.store(), 5000).await.unwrap(), 0);
    assert_eq!((world.dump().await, world.administration().await), before);
    fenced_add(&world, &new).await.unwrap();
}

/// One of them seals, the others find it done; none is told of a deadlock with another.
pub(crate) async fn seals_at_the_same_time_agree<H: Harness>() {
    let world: H = fresh().await;
    let mut services = ["redis", "etcd"];
    let resources = ["account:41", "account:42", "account:43"];
    for resource in resources {
        world.store().claim(&grant(resource, 33)).await.unwrap();
    }
    for round in 1..=10 {
        let [from, to] = services;
        let order = seal_from(from, to, 1000 + round);
        let admin = world.store().admin();
        let seals = (0..6).map(|_| admin.seal(&order, |_, _| ()));
        let sealed = futures_util::future::try_join_all(seals).await.unwrap();
        assert!(sealed.iter().sum::<u64>() >= 3, "{sealed:?}");
        assert_eq!(admin.issuer().await.unwrap().unwrap().as_str(), to);
        for resource in resources {
            assert_eq!(high_water(&world, resource).await, Some(1000 + round));
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
    match seal::<H>(world.store(), 1000).await.unwrap_err() {
        AdminError::OtherIssuer {
            expected, current, ..
        } => {
            assert_eq!(
                (expected.as_str(), current.as_str()),
                ("redis", "zookeeper")
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
    assert_eq!(seal::<H>(world.store(), 1000).await.unwrap(), 0);
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
    let impatient = world.impatient().await;
    match seal::<H>(&impatient, 1000).await.unwrap_err() {
        AdminError::Unfinished { source, .. } => assert!(source.is_retryable()),
        AdminError::Store(error) => assert!(error.is_retryable(), "{error:?}"),
        other => panic!("{other:?}"),
    }
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    seal::<H>(world.store(), 1000).await.unwrap();
    assert!(fenced_add(&world, &old).await.unwrap_err().is_fenced());
    for resource in ["account:41", "account:42"] {
        assert_eq!(high_water(&world, resource).await, Some(1000));
    }
    assert_eq!(balance(&world).await, 101);
}

pub(crate) async fn an_interrupted_seal_is_taken_up_again<H: Harness>() {
    let world: H = fresh().await;
    for number in 1..=5 {
        let grant = grant(&format!("account:{number}"), number);
        world.store().claim(&grant).await.unwrap();
    }
    let (first, sealed) = (Notify::new(), AtomicU64::new(0));
    let order = seal_above(1000);
    let admin = world.store().admin();
    let interrupted = admin.seal(&order, |_, so_far| {
        sealed.store(so_far, Ordering::SeqCst);
        first.notify_one();
    });
    tokio::select! {
        biased;
        () = first.notified() => {}
        done = interrupted => panic!("not interrupted: {done:?}"),
    }
    // The one under way is finished in the background.
    let rest = seal::<H>(world.store(), 1000).await.unwrap();
    let before = sealed.load(Ordering::SeqCst);
    assert!(
        before >= 1 && (4..=5).contains(&(before + rest)),
        "{before} and {rest}"
    );
    for number in 1..=5 {
        let mark = high_water(&world, &format!("account:{number}")).await;
        assert_eq!(mark, Some(1000));
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
    let (first, admin) = (Notify::new(), world.store().admin());
    let order = seal_above(1000);
    tokio::select! {
        biased;
        () = first.notified() => {}
        done = admin.seal(&order, |_, _| first.notify_one()) => panic!("{done:?}"),
    }
    let later = seal_from("etcd", "zookeeper", 2000);
    // What is left is told as long as it is there.
    let mut left = 0;
    for _ in 0..2 {
        match admin.seal(&later, |_, _| ()).await.unwrap_err() {
            AdminError::OthersLeft { issuer, marks, .. } => {
                assert_eq!(issuer.as_str(), "redis");
                assert!((3..=4).contains(&marks), "{marks}");
                left = marks;
            }
            other => panic!("{other:?}"),
        }
    }
    let rest = seal_from("redis", "zookeeper", 2000);
    assert_eq!(admin.seal(&rest, |_, _| ()).await.unwrap(), left);
    assert_eq!(admin.seal(&later, |_, _| ()).await.unwrap(), 0);
    for number in 1..=5 {
        let mark = high_water(&world, &format!("account:{number}")).await;
        assert_eq!(mark, Some(2000));
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
    #[allow(clippy::disallowed_methods, reason = "the callback below waits for it")]
    let other = tokio::spawn(async move {
        begun.await.unwrap();
        let later = seal_from("etcd", "zookeeper", 2000);
        let told = store.admin().seal(&later, |_, _| ()).await;
        done.send(()).unwrap();
        told
    });
    let mut begin = Some(begin);
    // The first mark is sealed, and the others wait until the other seal has been there.
    let progress = move |_: &ResourceName, _: u64| {
        begin.take().unwrap().send(()).unwrap();
        is_done.recv_timeout(Duration::from_secs(60)).unwrap();
    };
    let overtaken = world
        .store()
        .admin()
        .seal(&seal_above(1000), progress)
        .await;
    match overtaken.unwrap_err() {
        AdminError::OtherIssuer {
            expected, current, ..
        } => {
            assert_eq!((expected.as_str(), current.as_str()), ("etcd", "zookeeper"));
        }
        other => panic!("{other:?}"),
    }
    let told = other.await.unwrap().unwrap_err();
    assert!(
        matches!(
            told,
            AdminError::OthersLeft {
                sealed: 1,
                marks: 2,
                ..
            }
        ),
        "{told:?}"
    );
    for (number, mark) in [(1, 2000), (2, 2), (3, 3)] {
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
    let refused = [
        seal::<H>(world.store(), ABSURD).await.map(drop),
        world.store().admin().reset_high_water(&raise).await,
    ];
    for refused in refused {
        match refused.unwrap_err() {
            AdminError::Implausible { to, .. } => assert_eq!(to.get(), ABSURD),
            other => panic!("{other:?}"),
        }
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
    assert_eq!(seal::<H>(&trusting, ABSURD).await.unwrap(), 1);
    assert_eq!(high_water(&world, "account:42").await, Some(ABSURD));
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
