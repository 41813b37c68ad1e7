use std::{
    convert::Infallible,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::{
    Harness, LONG, PATIENCE, TRIES, grant, inspection, release, request, resource, served, settle,
    soon, waiting, was_held,
};
use crate::{Chaos, WakeFault};
use lock_core::{
    FencingToken, Waking,
    backend::{AcquireRequest, LockService, Wait},
};

/// Clause 8: a wake-up that arrives twice does not grant a resource twice.
pub async fn a_doubled_wake_up_serves_once(harness: &impl Harness) {
    serves_each_once(harness, WakeFault::Doubled).await;
}

/// Clause 8: a wake-up before its turn gives a waiter nothing, and prolongs no wait.
pub async fn an_early_wake_up_serves_no_one(harness: &impl Harness) {
    serves_each_once(harness, WakeFault::Early).await;
    for _ in 0..TRIES {
        if ends_in_spite_of_it(harness).await.is_some() {
            return;
        }
    }
    panic!("no look had its answer in time");
}

/// One try of a wait that has to end in time. `None` if the machine stalled for so long that a look
/// had no answer.
async fn ends_in_spite_of_it(harness: &impl Harness) -> Option<()> {
    let (backend, chaos) = chaotic(harness);
    let (resource, runtime) = (resource("wake-wait"), backend.runtime());
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    chaos.wake_ups(WakeFault::Early);
    let deadline = soon(&*runtime);
    let second = waiting(&resource, Wait::Until(deadline));
    let ends = async {
        let answer = backend.acquire(&second).await;
        (answer, runtime.now())
    };
    let is_held = AtomicBool::new(false);
    let (answer, ended) = tokio::select! {
        biased;
        ended = ends => ended,
        never = time_passes(harness, &is_held) => match never {},
        () = tokio::time::sleep(PATIENCE) => panic!("a wait that does not end"),
    };
    was_held(&answer)?;
    assert!(ended >= deadline, "gave up too early");
    assert!(chaos.wake_faults() > 0, "no fault happened");
    release(&backend, &first, lease).await;
    let left = inspection(&backend, &resource).await;
    assert!(left.holder.is_none(), "the waiter has gone: {left:?}");
    Some(())
}

/// Clause 8: a wake-up of another attempt gives a waiter nothing.
pub async fn an_overheard_wake_up_serves_its_own(harness: &impl Harness) {
    serves_each_once(harness, WakeFault::Overheard).await;
}

fn chaotic(harness: &impl Harness) -> (LockService, Chaos) {
    let service = harness.backend();
    let runtime = service.runtime();
    let chaos = Chaos::new(service, runtime);
    (chaos.clone().into(), chaos)
}

/// The number of tries. A waiter may look by itself just before its wake-up comes, and then no
/// fault happens.
const ROUNDS: usize = 20;

async fn serves_each_once(harness: &impl Harness, fault: WakeFault) {
    for _ in 0..ROUNDS {
        if serves_each_with(harness, fault).await {
            return;
        }
    }
    panic!("no fault happened");
}

/// Two waiters are served, one after the other, and nothing is left. Returns whether a fault
/// happened, or none can.
async fn serves_each_with(harness: &impl Harness, fault: WakeFault) -> bool {
    let (backend, chaos) = chaotic(harness);
    let resource = resource("wake");
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    chaos.wake_ups(fault);
    let [second, third] = [(); 2].map(|()| waiting(&resource, Wait::Forever));
    let is_held = AtomicBool::new(true);
    let releases = async {
        settle(harness).await;
        is_held.store(false, Ordering::SeqCst);
        release(&backend, &first, lease).await;
    };
    let served = async {
        let (second, third, ()) = tokio::join!(
            biased;
            holds(harness, &backend, &second, &is_held),
            holds(harness, &backend, &third, &is_held),
            releases,
        );
        assert!(second > lease.token && third > lease.token && second != third);
    };
    tokio::select! {
        biased;
        () = served => {}
        never = time_passes(harness, &is_held) => match never {},
    }
    let left = inspection(&backend, &resource).await;
    assert!(left.holder.is_none(), "{left:?}");
    assert!(left.waiters.is_none_or(|waiters| waiters == 0), "{left:?}");
    // A full lease that is handed over ends the wait, so no other wake-up follows, and none is
    // overheard.
    let is_whole = chaos.was_whole() && fault != WakeFault::Early;
    let is_pushed = backend.capabilities().waking == Waking::Pushed;
    chaos.wake_faults() > 0 || is_whole || !is_pushed
}

/// Waits, holds the lease alone for a moment, and releases it.
async fn holds(
    harness: &impl Harness,
    backend: &LockService,
    request: &AcquireRequest,
    is_held: &AtomicBool,
) -> FencingToken {
    let lease = served(backend, request).await;
    assert!(!is_held.swap(true, Ordering::SeqCst), "two have it");
    settle(harness).await;
    is_held.store(false, Ordering::SeqCst);
    release(backend, request, lease).await;
    lease.token
}

/// Lets time pass while no waiter has the lease, so that a waiter without a wake-up looks again.
async fn time_passes(harness: &impl Harness, is_held: &AtomicBool) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if !is_held.load(Ordering::SeqCst) {
            harness.pass(Duration::from_millis(20)).await;
        }
    }
}
