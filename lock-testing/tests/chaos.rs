//! Lost, delayed and repeated messages between a client and its lock service.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{future::IntoFuture, sync::Arc, time::Duration};

use futures_util::future::join;
use lock_core::{
    ErrorKind, FencingToken, Holder, InitialToken, Inspection, Issuer, LeaseGuard, LockManager,
    Operation, Outcome, Released, ResourceName, Sequencer, Ttl,
    backend::{
        AcquireRequest, AttemptRef, Grant, LockBackend, LockBackendExt, RenewRequest, Renewed,
        Request, Requests, Runtime, TokioRuntime,
    },
    memory::MemoryBackend,
};
use lock_testing::{Chaos, Fault, Gate, ManualClock, Until};

const TTL: Ttl = Ttl::secs(9);

struct World {
    clock: ManualClock,
    /// The service itself, without chaos, which shows what has really happened.
    service: MemoryBackend,
    chaos: Chaos,
    locks: LockManager,
}

fn world() -> World {
    let clock = ManualClock::new();
    let timer: Arc<dyn Runtime> = Arc::new(clock.clone());
    let service = MemoryBackend::new(Arc::clone(&timer), InitialToken::At(FencingToken::MIN));
    let chaos = Chaos::new(Arc::new(service.clone()), Arc::clone(&timer));
    let builder = LockManager::builder();
    World {
        locks: builder.build(chaos.clone()).unwrap(),
        clock,
        service,
        chaos,
    }
}

fn resource() -> ResourceName {
    ResourceName::new("r").unwrap()
}

fn request(holder: Holder) -> AcquireRequest {
    AcquireRequest::new(AttemptRef::new(&TokioRuntime, resource(), holder), TTL)
}

fn sequencer(holder: Holder, token: FencingToken) -> Sequencer {
    Sequencer::new(Issuer::new("memory").unwrap(), resource(), token, holder)
}

impl World {
    /// The state of the service, read without chaos.
    async fn inspection(&self) -> Inspection {
        self.service.inspect(&resource()).await.unwrap()
    }

    /// The token of the present lease.
    async fn held(&self) -> Option<FencingToken> {
        self.inspection().await.holder.map(|holder| holder.token)
    }

    async fn acquire(&self, holder: Holder) -> Grant {
        let attempt = self.chaos.acquire(&request(holder)).await.unwrap();
        attempt.granted().unwrap()
    }

    async fn guard(&self) -> LeaseGuard {
        self.locks.acquire("r").ttl(TTL).await.unwrap()
    }

    /// Moves the clock to the moment until which the watchdog sleeps, once it sleeps.
    async fn to_next_wake(&self) {
        self.until(async || self.clock.next_wake().is_some()).await;
        let wake = self.clock.next_wake().unwrap();
        self.clock.advance(wake.since(self.clock.now()));
    }

    /// Lets the watchdog work until the condition is true.
    async fn until(&self, condition: impl AsyncFn() -> bool) {
        for _ in 0..10_000 {
            if condition().await {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("it never came to that");
    }
}

/// Catches: the cancel of an attempt without an answer ends the next attempt, which replaces it.
#[tokio::test]
async fn the_clean_up_of_a_lost_reply_leaves_the_retry_alone() {
    let (world, holder) = (world(), Holder::random());
    world.chaos.next(Operation::Acquire, Fault::DropReply);
    let acquire = || world.locks.acquire("r").ttl(TTL).holder(holder);
    // The retry is quicker than the clean-up.
    world.locks.freeze_watchdog(true);
    acquire().wait(Duration::ZERO).await.unwrap_err();
    let guard = acquire().await.unwrap();
    assert_eq!(guard.token(), FencingToken::MIN);
    world.locks.freeze_watchdog(false);
    // The first attempt is cancelled in the background, because it may hold the lease.
    let cancelled = async || world.chaos.counts(Operation::Cancel).requests == 1;
    world.until(cancelled).await;
    assert_eq!(world.held().await, Some(guard.token()));
    assert!(guard.remaining().is_ok());
}

#[tokio::test]
async fn a_release_that_is_dropped_without_an_answer_is_finished_by_the_watchdog() {
    let world = world();
    let guard = world.guard().await;
    // The release is sent once, then again at once, and then by the clean-up.
    for _ in 0..3 {
        world.chaos.next(Operation::Release, Fault::DropRequest);
    }
    let mut release = Box::pin(guard.release());
    let sent = async || world.chaos.counts(Operation::Release).requests == 2;
    tokio::select! {
        biased;
        released = &mut release => panic!("{released:?}"),
        () = world.until(sent) => {}
    }
    drop(release);
    assert!(world.held().await.is_some());
    world.to_next_wake().await;
    world.until(async || world.held().await.is_none()).await;
}

#[tokio::test]
async fn a_renewal_that_arrives_after_the_release_is_inert_and_no_loss() {
    let (world, gate) = (world(), Gate::closed());
    let until = Until::Opened(gate.clone());
    world
        .chaos
        .next(Operation::Renew, Fault::DelayRequest(until));
    let guard = world.guard().await;
    world.to_next_wake().await;
    gate.arrival().await;
    guard.release().await.unwrap();
    let next = world.guard().await;
    gate.open();
    let arrived = async || world.chaos.counts(Operation::Renew).delayed == 1;
    world.until(arrived).await;
    world.to_next_wake().await;
    world
        .until(async || world.locks.stats().renewals == 1)
        .await;
    assert_eq!(world.locks.stats().losses, 0);
    assert_eq!(world.held().await, Some(next.token()));
}

/// Catches: a lease that was never confirmed keeps its place in the queue after it was lost.
#[tokio::test]
async fn a_grant_that_ended_before_it_was_confirmed_is_cancelled() {
    let world = world();
    let cancels = || world.chaos.counts(Operation::Cancel).requests;
    let outlived = async || {
        let guard = world.guard().await;
        world.locks.freeze_watchdog(true);
        world.clock.advance(TTL.get());
        world.locks.freeze_watchdog(false);
        guard
    };

    let released = outlived().await.release().await.unwrap();
    assert_eq!(released, Released::NotHolder);
    world.until(async || cancels() == 1).await;

    drop(outlived().await);
    world.until(async || cancels() == 2).await;

    world.guard().await.release().await.unwrap();
    drop(world.guard().await);
    world.until(async || world.held().await.is_none()).await;
    assert_eq!(cancels(), 2, "what was held was released");
}

/// Catches: postponed requests that never arrive, so that every test of late requests passes.
#[tokio::test]
async fn a_postponed_request_takes_effect_when_it_arrives() {
    let (world, holder) = (world(), Holder::random());
    world.chaos.next(Operation::Acquire, Fault::Postpone);
    let (request, look) = (request(holder), Request::Look { queue: false });
    let asks = world.chaos.requests(&request);
    asks.send(look).await.unwrap_err();
    assert_eq!(world.held().await, None);
    assert_eq!(world.chaos.deliver_late().await, 1);
    assert_eq!(world.held().await, Some(FencingToken::MIN));

    let lease = sequencer(holder, FencingToken::MIN);
    world.chaos.next(Operation::Release, Fault::Postpone);
    world.chaos.release(&lease, true).await.unwrap_err();
    assert!(world.held().await.is_some());
    assert_eq!(world.chaos.deliver_late().await, 1);
    assert_eq!(world.held().await, None);
}

/// Catches: copies of renewals and releases that are not delivered, or that end the next lease.
#[tokio::test]
async fn late_copies_of_a_renewal_and_a_release_touch_no_other_lease() {
    let (world, holder) = (world(), Holder::random());
    let lease = sequencer(holder, world.acquire(holder).await.token);
    let renewal = RenewRequest::new(lease.clone(), Ttl::MAX);
    world.chaos.next(Operation::Renew, Fault::Duplicate);
    world.chaos.next(Operation::Release, Fault::Duplicate);
    let renewed = world.chaos.renew(&[renewal]).await.pop().unwrap().unwrap();
    assert!(matches!(renewed, Renewed::Renewed(_)));
    world.chaos.release(&lease, true).await.unwrap();

    let next = world.acquire(Holder::random()).await;
    world.clock.advance(TTL.get() / 3);
    let before = world.inspection().await;
    assert_eq!(world.chaos.deliver_late().await, 2);
    assert_eq!(world.inspection().await, before);
    assert_eq!(world.held().await, Some(next.token));
    for operation in [Operation::Renew, Operation::Release] {
        let counts = world.chaos.counts(operation);
        assert_eq!((counts.requests, counts.delivered_late), (1, 1));
    }
}

/// Catches: requests without end to a service that is slower than the ttl.
#[tokio::test]
async fn when_two_grants_in_a_row_arrive_after_their_end_a_longer_ttl_is_asked_for() {
    let world = world();
    let gates = [Gate::closed(), Gate::closed()];
    for gate in &gates {
        let until = Until::Opened(gate.clone());
        world
            .chaos
            .next(Operation::Acquire, Fault::DelayReply(until));
    }
    let acquire = world.locks.acquire("r").ttl(TTL).into_future();
    let (acquired, ()) = join(acquire, async {
        for gate in &gates {
            gate.arrival().await;
            world.clock.advance(TTL.get());
            gate.open();
        }
    })
    .await;
    let error = acquired.unwrap_err();
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Unavailable, Outcome::NotApplied)
    );
    assert!(error.to_string().contains("longer ttl"), "{error}");
    assert_eq!(world.chaos.counts(Operation::Acquire).requests, 2);
}

/// Catches: a fault that meets another request than the one for which it was scripted.
#[tokio::test]
async fn a_script_is_met_in_order_and_then_what_is_always() {
    let world = world();
    let inspect = async || world.chaos.inspect(&resource()).await.is_ok();
    world.chaos.always(Operation::Inspect, Fault::DropReply);
    for fault in [Fault::Pass, Fault::DropRequest, Fault::Pass] {
        world.chaos.next(Operation::Inspect, fault);
    }
    assert_eq!(world.chaos.unused(), 3);
    for answered in [true, false, true, false, false] {
        assert_eq!(inspect().await, answered);
    }
    let counts = world.chaos.counts(Operation::Inspect);
    assert_eq!(
        (
            counts.requests,
            counts.requests_dropped,
            counts.replies_dropped
        ),
        (5, 1, 2)
    );
    world.chaos.calm();
    assert!(inspect().await);
}
