//! One lock service takes the place of another in front of the store.

use std::sync::Arc;

use fenced_store::{
    Dialect, FenceError, FencedStore, Protected,
    admin::{
        AdminError, HandedOver, Handover, HandoverError, HandoverPhase, HandoverPlan, HandoverStep,
        Lifted, PROBE, Reason, Seal,
    },
};
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Capabilities, Error, ErrorKind, FencingToken,
    Grant, InitialToken, Inspection, Issuer, LockBackend, LockManager, Operation, Released,
    RenewRequest, Renewed, ResourceName, Sequencer, Standing, SystemClock, memory::MemoryBackend,
};

use super::{Harness, at_every_await, balance, fenced_add, fresh, grant_by, high_water, trusting};

const RESOURCE: &str = "account:42";

fn service(issuer: &str, backend: Arc<dyn LockBackend>) -> LockManager {
    let issuer = Issuer::new(issuer).unwrap();
    LockManager::builder()
        .issuer(issuer)
        .build(backend)
        .unwrap()
}

fn in_process() -> MemoryBackend {
    MemoryBackend::new(Arc::new(SystemClock), InitialToken::Clock)
}

fn memory(issuer: &str) -> LockManager {
    service(issuer, Arc::new(in_process()))
}

fn reason() -> Reason {
    Reason::new("the old one is out of warranty").unwrap()
}

fn order(old: &LockManager, new: &LockManager) -> Handover {
    Handover::new(old, new, reason()).unwrap()
}

async fn tried<DB: Dialect>(
    store: &FencedStore<DB>,
    order: &Handover,
) -> Result<HandedOver, HandoverError> {
    store.admin().hand_over(order, |_| ()).await
}

async fn planned<DB: Dialect>(store: &FencedStore<DB>, order: &Handover) -> HandoverPlan {
    store.admin().plan_handover(order).await.unwrap()
}

async fn hand_over<DB: Dialect>(store: &FencedStore<DB>, old: &LockManager, new: &LockManager) {
    let done = tried(store, &order(old, new)).await;
    assert!(done.unwrap().retired);
}

/// Its service is the one in place: it acquires, claims and writes, and nothing has to be repaired.
async fn writes<H: Harness>(world: &H, locks: &LockManager) -> FencingToken {
    let protected = Protected::new(locks.clone(), world.store().clone());
    let guard = protected.acquire(RESOURCE).await.unwrap();
    fenced_add(world, guard.sequencer()).await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    assert_eq!(protected.floor_repairs(), 0);
    token
}

async fn is_retired(locks: &LockManager) -> bool {
    match locks.try_acquire("account:probe").await {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Retired, "{error}");
            true
        }
    }
}

/// Whoever holds a lease of the old service is shut out, whether or not it had claimed it.
pub(crate) async fn a_handover_shuts_the_old_service_out<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (memory("redis"), memory("etcd"));
    let holder = old.acquire(RESOURCE).await.unwrap();
    world.store().claim(holder.sequencer()).await.unwrap();
    let late = old.acquire("account:43").await.unwrap();
    // A client that comes too early has a lease, and the store takes nothing of it.
    let early = new.acquire("account:44").await.unwrap();
    let refused = world.store().claim(early.sequencer()).await.unwrap_err();
    assert!(matches!(refused, FenceError::WrongIssuer { .. }));

    let mut told = Vec::new();
    let (admin, there) = (world.store().admin(), order(&old, &new));
    let done = admin.hand_over(&there, |step| {
        told.push(match step {
            HandoverStep::Retired(standing) => {
                assert!(standing.unwrap().last >= Some(late.token()));
                "retired"
            }
            HandoverStep::Floor(_) => "floor",
            HandoverStep::InService => "in service",
            HandoverStep::Sealed(_, 1) => "sealed",
            _ => "something else",
        });
    });
    let done = done.await.unwrap();
    assert_eq!(told, ["retired", "floor", "in service", "sealed"]);
    assert!(done.retired && done.sealed == 1 && done.lifted == Lifted::Service);
    assert!(done.floor > late.token() && done.floor > early.token());

    assert!(is_retired(&old).await);
    for grant in [holder.sequencer(), late.sequencer()] {
        let claimed = world.store().claim(grant).await.unwrap_err();
        assert!(matches!(claimed, FenceError::WrongIssuer { .. }));
        assert!(fenced_add(&world, grant).await.unwrap_err().is_fenced());
    }
    assert!(writes(&world, &new).await >= done.floor);
    assert_eq!(balance(&world).await, 101);
    let done = world.administration().await;
    assert!(done.iter().all(|line| line.contains("out of warranty")));
}

/// And back. Leases of the first time are as worthless as those of the time between.
pub(crate) async fn a_handover_goes_back<H: Harness>() {
    let world: H = fresh().await;
    let (one, two) = (memory("redis"), memory("etcd"));
    let first = writes(&world, &one).await;
    let never_claimed = one.acquire(RESOURCE).await.unwrap();
    hand_over(world.store(), &one, &two).await;
    let between = writes(&world, &two).await;
    let of_the_other = two.acquire(RESOURCE).await.unwrap();
    hand_over(world.store(), &two, &one).await;

    for late in [&never_claimed, &of_the_other] {
        let refused = world.store().claim(late.sequencer()).await.unwrap_err();
        assert!(refused.is_fenced(), "{refused}");
    }
    never_claimed.release().await.unwrap();
    let last = writes(&world, &one).await;
    assert!(first < between && between < last);
    assert!(is_retired(&two).await && !is_retired(&one).await);
    assert_eq!(balance(&world).await, 103);
}

/// Each time it goes the other way, and every other time it turns back half way.
pub(crate) async fn a_handover_dropped_at_any_await_is_finished_or_turned_back<H: Harness>() {
    let world: H = fresh().await;
    let mut services = [memory("redis"), memory("etcd")];
    let mut greatest = writes(&world, &services[0]).await;
    let mut turns_back = false;
    let awaits = at_every_await(async |at| {
        let [old, new] = &services;
        let lease = old.acquire(RESOURCE).await.unwrap();
        let stale = lease.sequencer().clone();
        drop(lease);
        let there = order(old, new);
        let work = world.store().admin();
        let ended = at.poll(work.hand_over(&there, |_| ())).await.is_some();
        turns_back = !turns_back;
        if turns_back {
            services.swap(0, 1);
        }
        let [old, new] = &services;
        hand_over(world.store(), old, new).await;
        if !turns_back {
            let refused = world.store().claim(&stale).await.unwrap_err();
            assert!(refused.is_fenced(), "dropped {at:?}: {refused}");
        }
        let token = writes(&world, new).await;
        assert!(token > greatest, "dropped {at:?}");
        let refused = world.store().claim(&stale).await.unwrap_err();
        assert!(refused.is_fenced(), "dropped {at:?}: {refused}");
        assert!(is_retired(old).await);
        greatest = token;
        services.swap(0, 1);
        ended
    })
    .await;
    assert!(awaits > 2, "it has more steps than that");
}

pub(crate) async fn a_handover_that_cannot_be_changes_nothing<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (memory("redis"), memory("etcd"));
    let same = Handover::new(&old, &memory("redis"), reason()).unwrap_err();
    assert!(matches!(same, HandoverError::SameIssuer), "{same}");
    writes(&world, &old).await;

    let third = order(&memory("zookeeper"), &new);
    let refused = tried(world.store(), &third).await.unwrap_err();
    assert!(
        matches!(refused, HandoverError::OtherIssuer { .. }),
        "{refused}"
    );

    let poison = grant_by("redis", "account:43", FencingToken::MAX.get());
    trusting(&world).claim(&poison).await.unwrap();
    let before = (world.dump().await, world.administration().await);
    let refused = tried(world.store(), &order(&old, &new)).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.to_string().contains("\"account:43\" stands at 999"),
        "{refused}"
    );
    assert_eq!((world.dump().await, world.administration().await), before);
    assert!(!is_retired(&old).await && !is_retired(&new).await);
    writes(&world, &old).await;
}

pub(crate) async fn a_planned_handover_changes_nothing<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (memory("redis"), memory("etcd"));
    let token = writes(&world, &old).await;
    let before = (world.dump().await, world.administration().await);
    let plan = planned(world.store(), &order(&old, &new)).await;
    assert_eq!((plan.marks, plan.above), (1, token));
    assert_eq!(Some(plan.floor), token.next());
    assert_eq!(plan.issuer.as_ref(), Some(old.issuer()));
    assert!(!plan.old.unwrap().retired && !plan.new.unwrap().retired);
    assert_eq!((world.dump().await, world.administration().await), before);
    writes(&world, &old).await;

    hand_over(world.store(), &old, &new).await;
    let plan = planned(world.store(), &order(&old, &new)).await;
    assert_eq!(plan.marks, 0);
    assert!(plan.old.unwrap().retired);
}

/// One mark that cannot be sealed now keeps neither the others nor the new service from it.
pub(crate) async fn a_handover_goes_on_past_what_is_held_up<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (memory("redis"), memory("etcd"));
    writes(&world, &old).await;
    let holder = old.acquire("account:41").await.unwrap();
    world.store().claim(holder.sequencer()).await.unwrap();
    let tx = world.store().begin(holder.sequencer()).await.unwrap();
    let impatient = world.impatient().await;
    let held_up = tried(&impatient, &order(&old, &new)).await;
    match held_up.unwrap_err() {
        HandoverError::Store {
            phase: HandoverPhase::Retired,
            source,
            ..
        } => match source {
            AdminError::Unfinished { sealed: 1, .. } => {
                writes(&world, &new).await;
            }
            // In SQLite whoever writes has the file for itself.
            AdminError::Store(error) => assert!(error.is_retryable(), "{error}"),
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
    tx.rollback().await.unwrap();
    hand_over(world.store(), &old, &new).await;
    writes(&world, &new).await;
}

/// Nothing is left of it but its name.
pub(crate) async fn a_lock_service_that_is_lost_is_handed_over_from<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (memory("redis"), memory("etcd"));
    writes(&world, &old).await;
    let last = old.acquire(RESOURCE).await.unwrap();
    let order = Handover::from_lost(old.issuer().clone(), &new, reason()).unwrap();
    let done = tried(world.store(), &order).await.unwrap();
    assert!(!done.retired && done.floor > last.token());
    let refused = world.store().claim(last.sequencer()).await.unwrap_err();
    assert!(matches!(refused, FenceError::WrongIssuer { .. }));
    writes(&world, &new).await;
}

/// The new service has no floor but that of a resource, and the old one cannot be retired.
pub(crate) async fn services_without_the_extension_are_handed_over<H: Harness>() {
    let world: H = fresh().await;
    let (old, new) = (
        bare("old", InitialToken::Clock),
        bare("new", InitialToken::Clock),
    );
    writes(&world, &old).await;
    for number in 0..40 {
        let holder = old.acquire(format!("account:4{number}")).await.unwrap();
        world.store().claim(holder.sequencer()).await.unwrap();
    }
    let _early = new.acquire("account:41").await.unwrap();
    let done = tried(world.store(), &order(&old, &new)).await.unwrap();
    assert!(!done.retired);
    // That of `RESOURCE`, and of the others all but one.
    let (lifted, held) = (39, 1);
    assert_eq!(done.lifted, Lifted::Resources { lifted, held });
    assert!(writes(&world, &new).await >= done.floor);
    let still_granted = old.acquire(RESOURCE).await.unwrap();
    let refused = world.store().claim(still_granted.sequencer()).await;
    assert!(matches!(refused, Err(FenceError::WrongIssuer { .. })));

    assert!(high_water(&world, RESOURCE).await >= Some(done.floor.get()));
}

/// One whose counters began at 1 would never get above the floor: it says so before the old one is
/// retired, whether or not it has a floor for all.
pub(crate) async fn a_new_service_that_cannot_grant_is_told_of_before_the_old_one_is_retired<
    H: Harness,
>() {
    let world: H = fresh().await;
    let old = memory("redis");
    writes(&world, &old).await;
    let small = InitialToken::At(FencingToken::MIN);
    let with_a_floor = MemoryBackend::new(Arc::new(SystemClock), small);
    for never in [
        bare("never", small),
        service("never", Arc::new(with_a_floor)),
    ] {
        let mut told = 0;
        let there = order(&old, &never);
        let admin = world.store().admin();
        let refused = admin.hand_over(&there, |_| told += 1).await.unwrap_err();
        let text = refused.to_string();
        assert!(text.ends_with("nothing was changed"), "{text}");
        match refused {
            HandoverError::New {
                phase: HandoverPhase::Before,
                source,
                ..
            } => assert_eq!(source.kind(), ErrorKind::FloorImplausible),
            other => panic!("{other}"),
        }
        assert_eq!(told, 0, "it had begun");
        writes(&world, &old).await;
    }
    // Whoever holds the probe is in nobody's way.
    let new = bare("new", InitialToken::Clock);
    let held = new.acquire(PROBE).await.unwrap();
    hand_over(world.store(), &old, &new).await;
    held.release().await.unwrap();
}

/// The new service was tried by then. Its counter has not jumped to the floor.
pub(crate) async fn a_handover_that_stops_at_once_has_not_lifted_the_new_service<H: Harness>() {
    let world: H = fresh().await;
    let counting_from = |token| {
        let first = InitialToken::At(FencingToken::new(token).unwrap());
        MemoryBackend::new(Arc::new(SystemClock), first)
    };
    let old = service("redis", Arc::new(NeverRetires(counting_from(500_000))));
    let new = service("etcd", Arc::new(counting_from(1)));
    let token = writes(&world, &old).await;
    let refused = tried(world.store(), &order(&old, &new)).await.unwrap_err();
    assert!(matches!(refused, HandoverError::Old { .. }), "{refused}");
    let lease = new.acquire(RESOURCE).await.unwrap();
    assert!(lease.token() < token, "{} was lifted", lease.token());
}

/// What others do meanwhile is told as it is: the old service is retired by then.
pub(crate) async fn an_error_after_the_beginning_does_not_say_that_nothing_was_changed<
    H: Harness,
>() {
    let world: H = fresh().await;
    let new = memory("etcd");
    let store = world.store().clone();
    let seal = Seal::new(
        Issuer::new("redis").unwrap(),
        Issuer::new("third").unwrap(),
        FencingToken::MIN,
        reason(),
    );
    let seal = seal.unwrap();
    let to_a_third = move || {
        let (store, seal) = (store.clone(), seal.clone());
        Box::pin(async move {
            store.admin().seal(&seal, |_, _| ()).await.unwrap();
        }) as _
    };
    let old = service(
        "redis",
        Arc::new(AtRetire(in_process(), Box::new(to_a_third))),
    );
    writes(&world, &old).await;
    let refused = tried(world.store(), &order(&old, &new)).await.unwrap_err();
    let text = refused.to_string();
    let HandoverError::OtherIssuer { phase, current, .. } = refused else {
        panic!("{text}");
    };
    assert_eq!((phase, current.as_str()), (HandoverPhase::Retired, "third"));
    for part in ["the old one grants no more", "hand over from \"third\""] {
        assert!(text.contains(part), "{text}");
    }
    assert!(is_retired(&old).await && !is_retired(&new).await);

    let (store, poison) = (
        trusting(&world),
        grant_by("poisoned", "account:43", GREATEST),
    );
    let poisoned = move || {
        let (store, poison) = (store.clone(), poison.clone());
        Box::pin(async move { store.claim(&poison).await.unwrap() }) as _
    };
    let poisoned = service(
        "poisoned",
        Arc::new(AtRetire(in_process(), Box::new(poisoned))),
    );
    // As it said.
    hand_over(world.store(), &memory("third"), &poisoned).await;
    writes(&world, &poisoned).await;
    let refused = tried(world.store(), &order(&poisoned, &new))
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("\"account:43\" stands at 999"), "{text}");
    assert!(
        text.contains("the old one grants no more; hand over again"),
        "{text}"
    );
    match refused {
        HandoverError::Implausible { phase, .. } => assert_eq!(phase, HandoverPhase::Retired),
        other => panic!("{other}"),
    }
    assert!(is_retired(&poisoned).await);
}

const GREATEST: u64 = FencingToken::MAX.get();

/// What every lock service has to have, as the one inside has it.
macro_rules! delegated {
    () => {
        fn acquire<'a>(
            &'a self,
            request: &'a AcquireRequest,
        ) -> BoxFuture<'a, Result<Attempt<Grant>, Error>> {
            self.0.acquire(request)
        }

        fn renew<'a>(
            &'a self,
            leases: &'a [RenewRequest],
        ) -> BoxFuture<'a, Vec<Result<Renewed, Error>>> {
            self.0.renew(leases)
        }

        fn release<'a>(&'a self, lease: &'a Sequencer) -> BoxFuture<'a, Result<Released, Error>> {
            self.0.release(lease)
        }

        fn cancel<'a>(&'a self, attempt: &'a AttemptRef) -> BoxFuture<'a, Result<(), Error>> {
            self.0.cancel(attempt)
        }

        fn inspect<'a>(
            &'a self,
            resource: &'a ResourceName,
        ) -> BoxFuture<'a, Result<Inspection, Error>> {
            self.0.inspect(resource)
        }
    };
}

/// A lock service next to which something else happens while it is retired.
struct AtRetire(
    MemoryBackend,
    Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>,
);

impl std::fmt::Debug for AtRetire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AtRetire")
    }
}

/// A lock service that cannot be reached when it is to be retired.
#[derive(Debug)]
struct NeverRetires(MemoryBackend);

impl LockBackend for NeverRetires {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn standing(&self) -> BoxFuture<'_, Result<Standing, Error>> {
        self.0.standing()
    }

    fn retire(&self) -> BoxFuture<'_, Result<Standing, Error>> {
        let kind = ErrorKind::Unavailable;
        Box::pin(async move { Err(Error::not_applied(kind, Operation::Retire, self.kind())) })
    }

    delegated!();
}

fn bare(issuer: &str, initial: InitialToken) -> LockManager {
    let backend = MemoryBackend::new(Arc::new(SystemClock), initial);
    service(issuer, Arc::new(Bare(backend)))
}

/// A lock service that has no more than every one has to have.
#[derive(Debug)]
struct Bare(MemoryBackend);

impl LockBackend for Bare {
    fn kind(&self) -> &'static str {
        "bare"
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().extended(&[])
    }

    delegated!();
}

impl LockBackend for AtRetire {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn standing(&self) -> BoxFuture<'_, Result<Standing, Error>> {
        self.0.standing()
    }

    fn retire(&self) -> BoxFuture<'_, Result<Standing, Error>> {
        Box::pin(async {
            let retired = self.0.retire().await;
            self.1().await;
            retired
        })
    }

    fn reinstate(&self, floor: FencingToken) -> BoxFuture<'_, Result<Standing, Error>> {
        self.0.reinstate(floor)
    }

    delegated!();
}
