//! One lock service replaces another in front of the store.

use std::{sync::Arc, time::Duration};

use fenced_store::{
    Dialect, FenceError, FencedLocks, FencedStore,
    admin::{
        HandedOver, Handover, HandoverError, HandoverPhase, HandoverStep, PROBE, Reason, Reset,
    },
};
use lock_core::{
    ErrorKind, FencingToken, InitialToken, Issuer, LockManager, ResourceName,
    backend::{Runtime, TokioRuntime},
    memory::MemoryBackend,
};

use super::{
    Harness, SqlHarness, assert_kind, at_every_await, balance, fenced_add, fresh, grant, grant_by,
    high_water, trusting,
};

const RESOURCE: &str = "account:42";

fn counting_from(name: &str, first: InitialToken) -> LockManager {
    let backend = MemoryBackend::new(Arc::new(TokioRuntime), first);
    LockManager::builder()
        .issuer(issuer(name))
        .build(Arc::new(backend))
        .unwrap()
}

/// A lock service of this name.
pub(crate) fn service(name: &str) -> LockManager {
    counting_from(name, InitialToken::Clock)
}

pub(crate) fn issuer(name: &str) -> Issuer {
    Issuer::new(name).unwrap()
}

pub(crate) fn reason() -> Reason {
    Reason::new("moved to 'etcd'; see ticket 7").unwrap()
}

pub(crate) fn order(from: &str, new: &LockManager) -> Handover {
    Handover::new(issuer(from), new, reason()).unwrap()
}

pub(crate) async fn tried<DB: Dialect>(
    store: &FencedStore<DB>,
    order: &Handover,
) -> Result<HandedOver, HandoverError> {
    store.admin().hand_over(order, |_| ()).await
}

pub(crate) async fn hand_over<DB: Dialect>(
    store: &FencedStore<DB>,
    from: &str,
    new: &LockManager,
) -> HandedOver {
    tried(store, &order(from, new)).await.unwrap()
}

/// The token that the clock reaches after this time.
pub(crate) fn in_time(ahead: Duration) -> FencingToken {
    let time = TokioRuntime.unix_time() + ahead;
    FencingToken::new(InitialToken::clock_token(time)).unwrap()
}

/// The token of a mark after it was sealed, unless the mark was above it before.
pub(crate) fn sealed_at(done: &HandedOver) -> Option<u64> {
    Some(done.floor.get() - 1)
}

/// Acquires, claims and writes, which works only for the present lock service of the store.
async fn writes<H: Harness>(world: &H, locks: &LockManager) -> FencingToken {
    let protected = FencedLocks::new(locks.clone(), world.store().clone());
    let guard = protected.acquire(RESOURCE).await.unwrap();
    fenced_add(world, guard.sequencer()).await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// Each holder of a lease of the old service is shut out, whether or not the holder had claimed.
pub(crate) async fn a_handover_shuts_the_old_service_out<H: SqlHarness>() {
    let world: H = fresh().await;
    let (old, new) = (service("redis"), service("etcd"));
    let holder = old.acquire(RESOURCE).await.unwrap();
    world.store().claim(holder.sequencer()).await.unwrap();
    let late = old.acquire("account:43").await.unwrap();
    // A client that comes too early gets a lease, but the store accepts no claim of that client.
    let early = new.acquire("account:44").await.unwrap();
    let refused = world.store().claim(early.sequencer()).await.unwrap_err();
    assert_kind!(refused, WrongIssuer);

    let mut told = Vec::new();
    let (admin, there) = (world.store().admin(), order("redis", &new));
    let done = admin.hand_over(&there, |step| {
        told.push(match step {
            HandoverStep::IssuerChanged => "issuer",
            HandoverStep::Sealed(_, 1) => "sealed",
            _ => "something else",
        });
    });
    let done = done.await.unwrap();
    assert_eq!(told, ["issuer", "sealed"]);
    assert_eq!(done.sealed, 1);
    assert!(done.floor > late.token() && done.floor > early.token());

    // The old service does not know about the handover, so it goes on granting.
    let zombie = old.acquire("account:45").await.unwrap();
    for grant in [holder.sequencer(), late.sequencer(), zombie.sequencer()] {
        let claimed = world.store().claim(grant).await.unwrap_err();
        assert_kind!(claimed, WrongIssuer);
        assert!(fenced_add(&world, grant).await.unwrap_err().is_fenced());
    }
    assert!(writes(&world, &new).await >= done.floor);
    assert_eq!(balance(&world).await, 101);
    let done = world.administration().await;
    assert!(done.iter().all(|line| line.contains("ticket 7")));
}

/// With `FencedLocks` the first acquire lifts the new service. A client that claims alone learns
/// the number.
pub(crate) async fn the_new_service_is_lifted_by_the_first_claim_that_is_refused<H: SqlHarness>() {
    let world: H = fresh().await;
    world.store().claim(&grant(RESOURCE, 33)).await.unwrap();
    world.store().claim(&grant("account:43", 34)).await.unwrap();
    let new = service("etcd");
    let done = hand_over(world.store(), "redis", &new).await;

    // The bounds hold however much time has passed since.
    let (least, most) = (Duration::from_secs(50), Duration::from_secs(60));
    assert!(done.floor > in_time(least) && done.floor <= in_time(most));
    let low = new.acquire("account:43").await.unwrap();
    assert!(low.token() < done.floor, "it was lifted by the handover");
    let refused = world.store().claim(low.sequencer()).await.unwrap_err();
    match &refused {
        FenceError::Stale { high_water, .. } => {
            assert_eq!(Some(high_water.get()), sealed_at(&done));
        }
        other => panic!("{other}"),
    }
    assert_eq!(refused.needed_token(), Some(done.floor));
    let (text, mark) = (refused.to_string(), done.floor.get() - 1);
    let says = format!("the store has seen {mark}, acquire a token above that");
    assert!(text.contains(&says), "{text}");
    low.release().await.unwrap();

    let protected = FencedLocks::new(new.clone(), world.store().clone());
    let guard = protected.acquire(RESOURCE).await.unwrap();
    assert_eq!((guard.token(), protected.floor_repairs()), (done.floor, 1));
    guard.release().await.unwrap();
    let guard = protected.acquire(RESOURCE).await.unwrap();
    assert_eq!(protected.floor_repairs(), 1, "once");
    guard.release().await.unwrap();

    let needed = refused.needed_token().unwrap();
    let high = new.acquire("account:43").at_least(needed).await.unwrap();
    world.store().claim(high.sequencer()).await.unwrap();
}

/// A handover in the other direction. It shuts out leases from before the first handover and leases
/// from the time between.
pub(crate) async fn a_handover_goes_back<H: SqlHarness>() {
    let world: H = fresh().await;
    let (one, two) = (service("redis"), service("etcd"));
    let first = writes(&world, &one).await;
    let never_claimed = one.acquire(RESOURCE).await.unwrap();
    hand_over(world.store(), "redis", &two).await;
    let between = writes(&world, &two).await;
    let of_the_other = two.acquire(RESOURCE).await.unwrap();
    hand_over(world.store(), "etcd", &one).await;

    for late in [&never_claimed, &of_the_other] {
        let refused = world.store().claim(late.sequencer()).await.unwrap_err();
        assert!(refused.is_fenced(), "{refused}");
    }
    never_claimed.release().await.unwrap();
    let last = writes(&world, &one).await;
    assert!(first < between && between < last);
    assert_eq!(balance(&world).await, 103);
}

/// The direction changes each time, and every second handover turns back half way.
pub(crate) async fn a_handover_dropped_at_any_await_is_finished_or_turned_back<H: SqlHarness>() {
    let world: H = fresh().await;
    let mut services = [service("redis"), service("etcd")];
    let mut greatest = writes(&world, &services[0]).await;
    let mut turns_back = false;
    let awaits = at_every_await(async |at| {
        let [old, new] = &services;
        let lease = old.acquire(RESOURCE).await.unwrap();
        let stale = lease.sequencer().clone();
        drop(lease);
        let there = order(old.issuer().as_str(), new);
        let work = world.store().admin();
        let ended = at.poll(work.hand_over(&there, |_| ())).await.is_some();
        turns_back = !turns_back;
        if turns_back {
            services.swap(0, 1);
        }
        let [old, new] = &services;
        hand_over(world.store(), old.issuer().as_str(), new).await;
        if !turns_back {
            let refused = world.store().claim(&stale).await.unwrap_err();
            assert!(refused.is_fenced(), "dropped {at:?}: {refused}");
        }
        let token = writes(&world, new).await;
        assert!(token > greatest, "dropped {at:?}");
        let refused = world.store().claim(&stale).await.unwrap_err();
        assert!(refused.is_fenced(), "dropped {at:?}: {refused}");
        greatest = token;
        services.swap(0, 1);
        ended
    })
    .await;
    assert!(awaits > 0, "it awaits nothing");
}

pub(crate) async fn a_handover_that_cannot_be_changes_nothing<H: SqlHarness>() {
    let world: H = fresh().await;
    let (old, new) = (service("redis"), service("etcd"));
    let same = Handover::new(issuer("redis"), &service("redis"), reason()).unwrap_err();
    assert!(matches!(same, HandoverError::SameIssuer), "{same}");
    writes(&world, &old).await;

    let before = (world.dump().await, world.administration().await);
    let third = order("zookeeper", &new);
    let refused = tried(world.store(), &third).await.unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("takes tokens of \"redis\""), "{text}");
    assert!(text.ends_with("nothing was changed"), "{text}");
    assert!(
        matches!(refused, HandoverError::OtherIssuer { .. }),
        "{refused}"
    );
    assert_eq!((world.dump().await, world.administration().await), before);

    let poison = grant_by("redis", "account:43", FencingToken::MAX.get());
    trusting(&world).claim(&poison).await.unwrap();
    let before = (world.dump().await, world.administration().await);
    let refused = tried(world.store(), &order("redis", &new)).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.to_string().contains("\"account:43\" stands at 999"),
        "{refused}"
    );
    assert_eq!((world.dump().await, world.administration().await), before);
    writes(&world, &old).await;
}

pub(crate) async fn a_planned_handover_changes_nothing<H: SqlHarness>() {
    let world: H = fresh().await;
    let (old, new) = (service("redis"), service("etcd"));
    writes(&world, &old).await;
    let before = (world.dump().await, world.administration().await);
    let planned = async || {
        let order = order("redis", &new);
        world.store().admin().plan_handover(&order).await.unwrap()
    };
    let plan = planned().await;
    assert_eq!((plan.marks, plan.issuer), (1, Some(issuer("redis"))));
    assert!(plan.floor > in_time(Duration::from_secs(50)));
    assert_eq!((world.dump().await, world.administration().await), before);
    writes(&world, &old).await;

    let done = hand_over(world.store(), "redis", &new).await;
    assert!(done.floor > plan.floor);
    let plan = planned().await;
    assert_eq!((plan.marks, plan.issuer), (0, Some(issuer("etcd"))));
}

/// A mark that cannot be sealed now holds up neither the other marks nor the new service.
pub(crate) async fn a_handover_goes_on_past_what_is_held_up<H: SqlHarness>() {
    let world: H = fresh().await;
    let (old, new) = (service("redis"), service("etcd"));
    writes(&world, &old).await;
    let holder = old.acquire("account:41").await.unwrap();
    world.store().claim(holder.sequencer()).await.unwrap();
    let mut tx = world.store().begin(holder.sequencer()).await.unwrap();
    let impatient = world.impatient().await;
    let held_up = tried(&impatient, &order("redis", &new)).await;
    match held_up.unwrap_err() {
        HandoverError::Unfinished {
            sealed: 1, source, ..
        } => {
            let goes_on = source.is_retryable() || matches!(source, FenceError::Terminated { .. });
            assert!(goes_on, "{source}");
            writes(&world, &new).await;
        }
        // In SQLite a writer has the file for itself.
        HandoverError::Store { phase, source, .. } => {
            assert_eq!(phase, HandoverPhase::Before, "{source}");
        }
        other => panic!("{other}"),
    }
    // The write of this holder is stored before its mark is sealed.
    let before = balance(&world).await;
    H::add(&mut tx, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(balance(&world).await, before + 1);
    hand_over(world.store(), "redis", &new).await;
    let late = fenced_add(&world, holder.sequencer()).await;
    assert!(late.unwrap_err().is_fenced());
    writes(&world, &new).await;
}

/// The new service does not grant, or it would never get above the floor, or its early tokens may
/// be above the floor.
pub(crate) async fn a_new_service_that_cannot_take_over_is_an_error_before_anything_is_changed<
    H: SqlHarness,
>() {
    let world: H = fresh().await;
    let old = service("redis");
    writes(&world, &old).await;
    let before = (world.dump().await, world.administration().await);
    let ahead = in_time(Duration::from_secs(600));
    let (small, ahead) = (
        counting_from("etcd", InitialToken::At(FencingToken::MIN)),
        counting_from("etcd", InitialToken::At(ahead)),
    );
    let silent = service("etcd");
    silent.shutdown().await;
    for new in [&small, &ahead, &silent] {
        let mut told = 0;
        let there = order("redis", new);
        let admin = world.store().admin();
        let refused = admin.hand_over(&there, |_| told += 1).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("nothing was changed"), "{text}");
        match refused {
            HandoverError::New { source, .. } => {
                let expected = [ErrorKind::FloorImplausible, ErrorKind::ShutDown];
                assert!(expected.contains(&source.kind()), "{source}");
            }
            HandoverError::CountsPast {
                issuer,
                token,
                greatest,
                ..
            } => {
                assert_eq!(issuer.as_str(), "etcd");
                assert!(token > greatest && greatest > in_time(Duration::from_secs(50)));
            }
            other => panic!("{other}"),
        }
        assert_eq!(told, 0, "it had begun");
        assert_eq!((world.dump().await, world.administration().await), before);
    }
    writes(&world, &old).await;
    // A holder of the probe does not stop a handover, because its token is enough.
    let held = ahead.acquire(PROBE).await.unwrap();
    let refused = tried(world.store(), &order("redis", &ahead)).await;
    assert!(matches!(refused, Err(HandoverError::CountsPast { .. })));
    held.release().await.unwrap();
    let new = service("etcd");
    let held = new.acquire(PROBE).await.unwrap();
    hand_over(world.store(), "redis", &new).await;
    held.release().await.unwrap();
}

/// An error about changes by others does not say "nothing was changed", because the issuer was
/// changed before.
pub(crate) async fn an_error_after_the_beginning_does_not_say_that_nothing_was_changed<
    H: SqlHarness,
>() {
    let world: H = fresh().await;
    let (new, third) = (service("etcd"), service("third"));
    writes(&world, &service("redis")).await;
    let meanwhile = |work: &dyn Fn()| tokio::task::block_in_place(work);
    let runtime = tokio::runtime::Handle::current();
    let there = order("redis", &new);
    let to_a_third = || {
        let on = order("etcd", &third);
        let work = tried(world.store(), &on);
        let left = runtime.block_on(Box::pin(work)).unwrap_err();
        assert!(matches!(left, HandoverError::OthersLeft { .. }), "{left}");
    };
    let admin = world.store().admin();
    let before = high_water(&world, RESOURCE).await;
    let refused = admin.hand_over(&there, |_| meanwhile(&to_a_third)).await;
    // The handover has sealed nothing for the new service, which was replaced meanwhile.
    assert_eq!(high_water(&world, RESOURCE).await, before);
    let text = refused.as_ref().unwrap_err().to_string();
    let Err(HandoverError::OtherIssuer { phase, current, .. }) = refused else {
        panic!("{text}");
    };
    assert_eq!((phase, current.as_str()), (HandoverPhase::Sealing, "third"));
    assert!(text.contains("hand over from \"third\""), "{text}");
    // The marks that the interrupted handover has left can be handed over to the third service.
    hand_over(world.store(), "redis", &third).await;
    writes(&world, &third).await;

    let poison = grant_by("etcd", "account:43", FencingToken::MAX.get());
    let trusting = trusting(&world);
    let poisoned = || {
        let claim = trusting.claim(&poison);
        runtime.block_on(Box::pin(claim)).unwrap();
    };
    let there = order("third", &new);
    let refused = admin.hand_over(&there, |_| meanwhile(&poisoned)).await;
    let text = refused.as_ref().unwrap_err().to_string();
    assert!(text.contains("\"account:43\" stands at 999"), "{text}");
    assert!(text.contains("hand over again to go on"), "{text}");
    match refused.unwrap_err() {
        HandoverError::Implausible { phase, .. } => assert_eq!(phase, HandoverPhase::Sealing),
        other => panic!("{other}"),
    }
    let cure = Reset::lower(
        ResourceName::new("account:43").unwrap(),
        poison.token(),
        FencingToken::MIN,
        reason(),
    );
    admin.reset_high_water(&cure.unwrap()).await.unwrap();
    hand_over(world.store(), "third", &new).await;
    writes(&world, &new).await;
    assert!(high_water(&world, RESOURCE).await.is_some());
}
