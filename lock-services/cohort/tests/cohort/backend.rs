//! The cohort as a lock service among others, without a manager that cleans up behind its callers.

use std::{
    future::poll_fn,
    num::NonZeroU32,
    pin::Pin,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt;
use lock_core::{
    AcquireRequest, Attempt, AttemptRef, BoxFuture, Clock, Error, ErrorKind, Fairness,
    FencingToken, Forced, Grant, Holder, InitialToken, Issuer, LockBackend, Moment, Operation,
    Released, ResourceName, Sequencer, Ttl, Upkeep, Wait, memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, Gate, ManualClock, Until};
use palisade_cohort::Cohort;
use tokio::runtime::Builder;

use crate::bare::Bare;

const TTL: Ttl = Ttl::secs(10);

/// More than a driver needs for a request.
const TURNS: usize = 10;

struct World {
    clock: ManualClock,
    service: Arc<MemoryBackend>,
    wire: Chaos,
    cohort: Cohort,
}

type Answer = Result<Attempt<Grant>, Error>;

fn world() -> World {
    let manual = ManualClock::new();
    let clock: Arc<dyn Clock> = Arc::new(manual.clone());
    let service = MemoryBackend::new(Arc::clone(&clock), InitialToken::Clock);
    let service = Arc::new(service);
    let wire = Chaos::new(Arc::<MemoryBackend>::clone(&service), Arc::clone(&clock));
    World {
        cohort: Cohort::new(wire.clone(), clock, Cohort::PASSES),
        clock: manual,
        service,
        wire,
    }
}

/// A request that waits if it has to.
fn request() -> AcquireRequest {
    let resource = ResourceName::new("r").unwrap();
    let attempt = AttemptRef::new(resource, Holder::random());
    let mut request = AcquireRequest::new(attempt, TTL);
    (request.wait, request.upkeep) = (Wait::Forever, Upkeep::Watchdog);
    request
}

fn lease(request: &AcquireRequest, token: FencingToken) -> Sequencer {
    let AttemptRef {
        resource, holder, ..
    } = &request.attempt;
    Sequencer::new(
        Issuer::new("test").unwrap(),
        resource.clone(),
        token,
        *holder,
    )
}

impl World {
    async fn granted(&self, request: &AcquireRequest) -> FencingToken {
        let answer = self.cohort.acquire(request).await;
        answer.unwrap().granted().unwrap().token
    }

    /// Whom the service takes for the holder.
    async fn holder_at_service(&self, request: &AcquireRequest) -> Option<String> {
        let seen = self.service.inspect(&request.attempt.resource).await;
        seen.unwrap().holder.map(|holder| holder.fingerprint)
    }
}

/// Polls once, gives the drivers their turns, and polls again.
async fn is_pending<F: Future + ?Sized>(calling: &mut Pin<Box<F>>) -> bool {
    for _ in 0..TURNS {
        if poll_fn(|cx| Poll::Ready(calling.as_mut().poll(cx).is_ready())).await {
            return false;
        }
        tokio::task::yield_now().await;
    }
    true
}

/// Catches: a request with a floor, a reserve or no watchdog gets a part of a lease that has none
/// of it.
#[tokio::test]
async fn only_what_asks_for_nothing_special_joins() {
    let with = |change: fn(&mut AcquireRequest)| {
        let mut request = request();
        change(&mut request);
        request
    };
    let direct = [
        with(|request| request.upkeep = Upkeep::None),
        with(|request| request.floor = Some(FencingToken::MIN)),
        with(|request| request.reserve = NonZeroU32::new(2).unwrap()),
    ];
    let joins = [with(|_| {}), with(|request| request.wait = Wait::Never)];
    let direct = direct.into_iter().map(|request| (request, true));
    for (request, direct) in direct.chain(joins.map(|request| (request, false))) {
        let world = world();
        let token = world.granted(&request).await;
        let shown = world.holder_at_service(&request).await.unwrap();
        let own = request.attempt.holder.fingerprint();
        assert_eq!(shown == own, direct, "{request:?}");
        world.cohort.release(&lease(&request, token)).await.unwrap();
        assert_eq!(world.holder_at_service(&request).await, None);
    }
}

/// It is granted the lock all the same, and has it until its lease ends: the driver notices that.
#[tokio::test]
async fn a_waiter_that_is_kept_and_not_polled_costs_the_others_no_more_than_its_ttl() {
    let world = world();
    let first = request();
    let token = world.granted(&first).await;
    let (head, next) = (request(), request());
    let [mut kept, mut waiting] =
        [&head, &next].map(|request| Box::pin(world.cohort.acquire(request)));
    assert!(is_pending(&mut kept).await && is_pending(&mut waiting).await);
    world.cohort.release(&lease(&first, token)).await.unwrap();
    assert!(is_pending(&mut waiting).await);
    world.clock.advance(TTL.get());
    assert!(!is_pending(&mut waiting).await);
    assert!(world.holder_at_service(&next).await.is_some());
    drop(kept);
}

/// A guard that is dropped polls its release once.
#[tokio::test]
async fn a_release_is_sent_when_it_is_first_polled_and_completed_although_it_is_dropped() {
    let world = world();
    let first = request();
    let token = world.granted(&first).await;
    let gate = Gate::closed();
    let late = Fault::DelayRequest(Until::Opened(gate.clone()));
    world.wire.next(Operation::Release, late);
    let given_back = lease(&first, token);
    let mut releasing = Box::pin(world.cohort.release(&given_back));
    assert!(releasing.as_mut().now_or_never().is_none());
    assert_eq!(world.wire.counts(Operation::Release).requests, 1);
    drop(releasing);
    gate.open();
    // This one is behind it.
    let next = request();
    world.granted(&next).await;
    assert_eq!(world.wire.counts(Operation::Release).requests, 1);
}

#[test]
fn a_cohort_whose_runtime_has_ended_says_so() {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let world = first.block_on(async { world() });
    drop(first);
    let request = request();
    let answer = runtime().block_on(world.cohort.acquire(&request));
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::ShutDown);
}

/// Catches: a late copy of what was cancelled in line is granted.
#[tokio::test]
async fn an_attempt_that_is_cancelled_while_it_waits_gains_nothing_later() {
    let world = world();
    let first = request();
    let token = world.granted(&first).await;
    let cancelled = request();
    let mut waiting = Box::pin(world.cohort.acquire(&cancelled));
    assert!(is_pending(&mut waiting).await);
    world.cohort.cancel(&cancelled.attempt).await.unwrap();
    assert_eq!(waiting.await.unwrap_err().kind(), ErrorKind::Released);
    world.cohort.release(&lease(&first, token)).await.unwrap();
    let late = world.cohort.acquire(&cancelled).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Released);
    assert_eq!(world.holder_at_service(&first).await, None);
    assert_eq!(world.wire.counts(Operation::Cancel).requests, 0);
}

/// Catches: a cancel whose first request was lost ends where the cohort has seen it.
#[tokio::test]
async fn a_repeated_cancel_of_what_went_directly_reaches_the_service() {
    for fault in [Fault::DropRequest, Fault::DropReply] {
        let world = world();
        let mut direct = request();
        direct.upkeep = Upkeep::None;
        world.granted(&direct).await;
        world.wire.next(Operation::Cancel, fault);
        world.cohort.cancel(&direct.attempt).await.unwrap_err();
        world.cohort.cancel(&direct.attempt).await.unwrap();
        assert_eq!(world.holder_at_service(&direct).await, None);
        assert_eq!(world.wire.counts(Operation::Cancel).requests, 2);
        // It is over for those in line, too.
        direct.upkeep = Upkeep::Watchdog;
        let late = world.cohort.acquire(&direct).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::Released);
    }
}

/// Catches: two attempts of one acquisition are two places in line.
#[tokio::test]
async fn attempts_of_one_acquisition_get_one_token() {
    let world = world();
    let first = request();
    let token = world.granted(&first).await;
    let one = request();
    let mut two = one.clone();
    two.attempt = AttemptRef::new(one.attempt.resource.clone(), one.attempt.holder);
    let mut queue = [&one, &two].map(|request| Box::pin(world.cohort.acquire(request)));
    for waiter in &mut queue {
        assert!(is_pending(waiter).await);
    }
    let mut look = two.clone();
    look.attempt = AttemptRef::new(one.attempt.resource.clone(), one.attempt.holder);
    look.wait = Wait::Never;
    let seen = world.cohort.acquire(&look).await.unwrap();
    assert_eq!(seen, Attempt::held(TTL.get()));
    world.cohort.release(&lease(&first, token)).await.unwrap();
    let mut tokens = Vec::new();
    for waiter in queue {
        tokens.push(waiter.await.unwrap().granted().unwrap().token);
    }
    tokens.push(world.granted(&look).await);
    assert!(tokens[0] > token && tokens.iter().all(|other| *other == tokens[0]));
    // It is given up when all attempts have given it up.
    for attempt in [&one, &two, &look] {
        assert!(world.holder_at_service(&one).await.is_some());
        world.cohort.cancel(&attempt.attempt).await.unwrap();
    }
    assert_eq!(world.holder_at_service(&one).await, None);
}

/// Catches: the service knows a shared lease by its first token, and the token that is shown ends
/// nothing.
#[tokio::test]
async fn the_token_that_a_process_shows_ends_its_lease_by_force() {
    let world = world();
    let resource = ResourceName::new("r").unwrap();
    let first = request();
    let token = world.granted(&first).await;
    let (one, two) = (request(), request());
    let mut queue = [&one, &two].map(|request| Box::pin(world.cohort.acquire(request)));
    for waiter in &mut queue {
        assert!(is_pending(waiter).await);
    }
    world.cohort.release(&lease(&first, token)).await.unwrap();
    let [head, next] = queue;
    let token = head.await.unwrap().granted().unwrap().token;
    world.cohort.release(&lease(&one, token)).await.unwrap();
    let second = next.await.unwrap().granted().unwrap().token;

    let seen = world.cohort.inspect(&resource).await.unwrap();
    assert_eq!(seen.holder.unwrap().token, second);
    let beyond = second.next().unwrap();
    let forced = world.cohort.force_release(&resource, beyond).await.unwrap();
    assert_eq!(forced, Forced::NotHeld);
    let forced = world.cohort.force_release(&resource, second).await.unwrap();
    assert!(matches!(forced, Forced::Ended { revocation } if revocation > second));
    assert_eq!(world.holder_at_service(&two).await, None);
    let late = world.cohort.release(&lease(&two, second)).await.unwrap();
    assert_eq!(late, Released::NotHolder);
}

impl World {
    /// Two in the queue for one shared lease, the first of whom has the lock: its token, and the
    /// other's call.
    async fn two_in_line<'a>(
        &'a self,
        one: &'a AcquireRequest,
        two: &'a AcquireRequest,
    ) -> (FencingToken, BoxFuture<'a, Answer>) {
        let first = request();
        let token = self.granted(&first).await;
        let [mut head, mut next] = [one, two].map(|request| Box::pin(self.cohort.acquire(request)));
        assert!(is_pending(&mut head).await && is_pending(&mut next).await);
        let released = self.cohort.release(&lease(&first, token)).await.unwrap();
        assert_eq!(released, Released::Released);
        (head.await.unwrap().granted().unwrap().token, next)
    }
}

/// The shared lease goes by the token of its first holder, whoever has the lock by now.
#[tokio::test]
async fn a_token_that_was_passed_on_ends_nobodys_lease_by_force() {
    let world = world();
    let (one, two) = (request(), request());
    let (token, next) = world.two_in_line(&one, &two).await;
    world.cohort.release(&lease(&one, token)).await.unwrap();
    let second = next.await.unwrap().granted().unwrap().token;
    assert_eq!(Some(second), token.next(), "it is the same lease");
    let resource = &one.attempt.resource;
    let forced = world.cohort.force_release(resource, token).await.unwrap();
    assert_eq!(forced, Forced::NotHeld);
    assert_eq!(world.wire.counts(Operation::ForceRelease).requests, 0);
    let released = world.cohort.release(&lease(&two, second)).await.unwrap();
    assert_eq!(released, Released::Released);
}

/// The shared lease may end at any moment, so nobody else is given a part of it.
#[tokio::test]
async fn who_comes_while_a_release_by_force_is_under_way_keeps_its_lease() {
    let world = world();
    let (one, two) = (request(), request());
    let (token, next) = world.two_in_line(&one, &two).await;
    let gate = Gate::closed();
    let late = Fault::DelayRequest(Until::Opened(gate.clone()));
    world.wire.next(Operation::ForceRelease, late);
    let mut forcing = Box::pin(world.cohort.force_release(&one.attempt.resource, token));
    assert!(is_pending(&mut forcing).await);
    world.cohort.release(&lease(&one, token)).await.unwrap();
    let second = next.await.unwrap().granted().unwrap().token;
    gate.open();
    assert_eq!(forcing.await.unwrap(), Forced::NotHeld);
    let released = world.cohort.release(&lease(&two, second)).await.unwrap();
    assert_eq!(released, Released::Released);
}

/// Catches: one token for a whole queue, from a service that reserves none.
#[tokio::test]
async fn without_a_reserve_everything_goes_directly() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let memory = MemoryBackend::new(Arc::clone(&clock), InitialToken::Clock);
    let service = Arc::new(Bare(memory));
    let cohort = Cohort::new(Arc::<Bare>::clone(&service), clock, Cohort::PASSES);
    assert_eq!(cohort.capabilities().fairness, Fairness::Fifo);
    let request = request();
    cohort.acquire(&request).await.unwrap().granted().unwrap();
    let seen = service.inspect(&request.attempt.resource).await.unwrap();
    let own = request.attempt.holder.fingerprint();
    assert_eq!(seen.holder.unwrap().fingerprint, own);
}

/// A clock by which something happens in the very moment in which a sleep ends.
#[derive(Clone, Debug, Default)]
struct Eventful {
    clock: ManualClock,
    event: Arc<Mutex<Option<Sequencer>>>,
    cohort: Arc<Mutex<Option<Arc<Cohort>>>>,
}

impl Clock for Eventful {
    fn now(&self) -> Moment {
        self.clock.now()
    }

    fn unix_time(&self) -> Duration {
        self.clock.unix_time()
    }

    fn sleep_until(&self, moment: Moment) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.clock.sleep_until(moment).await;
            let event = self.event.lock().unwrap().take();
            let cohort = self.cohort.lock().unwrap().clone();
            if let (Some(lease), Some(cohort)) = (event, cohort) {
                let released = cohort.release(&lease).await.unwrap();
                assert_eq!(released, Released::Released);
            }
        })
    }
}

/// Catches: whose wait ends when another thread passes it the lock takes that for a timeout.
#[tokio::test]
async fn who_is_passed_the_lock_at_its_deadline_has_it() {
    let clock = Eventful::default();
    let timer: Arc<dyn Clock> = Arc::new(clock.clone());
    let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::Clock);
    let cohort = Cohort::new(Arc::new(service), timer, Cohort::PASSES);
    let cohort = Arc::new(cohort);
    *clock.cohort.lock().unwrap() = Some(Arc::clone(&cohort));

    let (first, head, mut last) = (request(), request(), request());
    last.wait = Wait::Until(clock.now() + Duration::from_secs(1));
    let granted = cohort.acquire(&first).await.unwrap().granted().unwrap();
    let [mut heading, mut waiting] =
        [&head, &last].map(|request| Box::pin(cohort.acquire(request)));
    assert!(is_pending(&mut heading).await && is_pending(&mut waiting).await);
    cohort.release(&lease(&first, granted.token)).await.unwrap();
    let before = heading.await.unwrap().granted().unwrap().token;
    assert!(is_pending(&mut waiting).await);

    *clock.event.lock().unwrap() = Some(lease(&head, before));
    clock.clock.advance(Duration::from_secs(1));
    let answer = waiting.await.unwrap();
    let token = answer.granted().expect("it was passed the lock").token;
    assert_eq!(Some(token), before.next());
    let released = cohort.release(&lease(&last, token)).await.unwrap();
    assert_eq!(released, Released::Released);
    *clock.cohort.lock().unwrap() = None;
}
