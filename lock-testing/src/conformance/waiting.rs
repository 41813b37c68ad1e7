use std::time::Duration;

use futures_util::{StreamExt, stream::FuturesUnordered};

use super::{
    Harness, LONG, TRIES, grant, inspection, is_held, release, request, resource, served, settle,
    settle_in_line, soon, waiting, was_held,
};
use lock_core::{
    Fairness, FencingToken, ResourceName, Waking,
    backend::{AcquireRequest, LockService, Upkeep, Wait},
};

/// The limit for a push. A push takes less, and polling once a second takes longer, counted from
/// the moment when the waiter is in the queue.
const PUSHED: Duration = Duration::from_millis(400);

/// Clause 8: a release wakes a waiter, long before the lease would have ended. A backend that
/// claims to push wakes it at once. A grant says whether it was waited for.
pub async fn waits_until_release(harness: &impl Harness) {
    let backend = harness.backend();
    let runtime = backend.runtime();
    let (mut fastest, mut waited) = (Duration::MAX, false);
    for _ in 0..3 {
        let resource = resource("wait");
        let first = request(&resource, LONG);
        let lease = grant(&backend, &first).await;
        let second = waiting(&resource, Wait::Forever);
        let release_soon = async {
            let is_in_line = settle_in_line(harness, &backend, &resource).await;
            let released = runtime.now();
            release(&backend, &first, lease).await;
            (is_in_line, released)
        };
        let (next, (is_in_line, released)) = tokio::join!(served(&backend, &second), release_soon);
        fastest = std::cmp::min(fastest, runtime.now().since(released));
        assert!(next.token > lease.token);
        assert!(!lease.waited);
        assert!(next.waited || !is_in_line, "it was in the queue");
        waited |= next.waited;
        release(&backend, &second, next).await;
    }
    assert!(waited, "no grant says so");
    if backend.capabilities().waking == Waking::Pushed {
        assert!(fastest < PUSHED, "{fastest:?}: that was no push");
    }
}

/// Clause 12: a waiter gets a lease that is as long as any other lease, for each kind of renewal.
pub async fn a_lease_that_was_waited_for_is_not_short(harness: &impl Harness) {
    let backend = harness.backend();
    let runtime = backend.runtime();
    for upkeep in [Upkeep::Watchdog, Upkeep::None] {
        let resource = resource("wait-length");
        let first = request(&resource, LONG);
        let lease = grant(&backend, &first).await;
        let mut second = waiting(&resource, Wait::Forever);
        second.upkeep = upkeep;
        let release_soon = async {
            settle(harness).await;
            release(&backend, &first, lease).await;
        };
        let (next, ()) = tokio::join!(served(&backend, &second), release_soon);
        let left = next.lease.deadline().since(runtime.now());
        assert!(left > LONG.get() / 2, "{upkeep:?}: {left:?}");
        release(&backend, &second, next).await;
    }
}

/// Clause 5: a waiter waits for the end of the present lease, not of the lease that it saw when it
/// came.
pub async fn waits_by_the_present_lease(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("wait-present"));
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let mut short = waiting(&resource, Wait::Forever);
    short.ttl = harness.short();
    let last = waiting(&resource, Wait::Forever);
    // Either of the two may be first, because a backend may be unfair. The short lease is never
    // released.
    let chain = async {
        settle(harness).await;
        release(&backend, &first, lease).await;
        settle(harness).await;
        harness.pass(harness.past_short()).await;
    };
    let last_turn = async {
        let lease = served(&backend, &last).await;
        release(&backend, &last, lease).await;
    };
    tokio::join!(served(&backend, &short), last_turn, chain);
}

/// Clause 5: when a lease expires, a waiter is served, too, without any request.
pub async fn waits_until_expiry(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("wait-expiry"));
    let first = request(&resource, harness.short());
    let lease = grant(&backend, &first).await;
    let second = waiting(&resource, Wait::Forever);
    let (next, ()) = tokio::join!(backend.acquire(&second), harness.pass(harness.past_short()));
    let next = next
        .expect("the service answers")
        .granted()
        .expect("it is free");
    assert!(next.token > lease.token);
    release(&backend, &second, next).await;
}

/// Clause 8: at the deadline the answer is `Held`, and the waiter is not in the queue any more.
pub async fn wait_deadline(harness: &impl Harness) {
    for _ in 0..TRIES {
        if ends_at_its_deadline(harness).await.is_some() {
            return;
        }
    }
    panic!("no look had its answer in time");
}

/// One try. `None` if the machine stalled for so long that a look had no answer in time.
async fn ends_at_its_deadline(harness: &impl Harness) -> Option<()> {
    let (backend, resource) = (harness.backend(), resource("timeout"));
    let runtime = backend.runtime();
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let deadline = soon(&*runtime);
    let second = waiting(&resource, Wait::Until(deadline));
    let (answer, ()) = tokio::join!(
        backend.acquire(&second),
        harness.pass(deadline.since(runtime.now()))
    );
    was_held(&answer)?;
    assert!(runtime.now() >= deadline, "gave up too early");
    release(&backend, &first, lease).await;
    assert!(
        !is_held(&backend, &resource).await,
        "granted to one that has given up"
    );
    Some(())
}

/// A backend that claims to be fair serves waiters in the order in which they came. Every backend
/// serves all waiters, each with a token of its own.
pub async fn fairness_as_claimed(harness: &impl Harness) {
    let (service, resource) = (harness.backend(), resource("fair"));
    let backend = &service;
    let first = request(&resource, LONG);
    let lease = grant(backend, &first).await;
    let requests: Vec<_> = (0..8).map(|_| waiting(&resource, Wait::Forever)).collect();
    let mut waiters = FuturesUnordered::new();
    for (place, request) in requests.iter().enumerate() {
        waiters.push(async move { (place, hold_once(backend, request).await) });
        in_line(backend, &resource, &mut waiters).await;
    }
    let (mut served, ()) =
        tokio::join!(waiters.collect::<Vec<_>>(), release(backend, &first, lease));
    served.sort_unstable();
    let tokens: Vec<_> = served.into_iter().map(|(_, token)| token).collect();
    let mut sorted = tokens.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(
        sorted.len(),
        requests.len(),
        "a token was issued twice: {tokens:?}"
    );
    if backend.capabilities().fairness == Fairness::Fifo {
        assert!(
            tokens.is_sorted(),
            "not first come, first served: {tokens:?}"
        );
    }
}

/// Polls the waiters until all of them are in the queue, if the backend shows how many wait. If it
/// does not, one step has to be enough.
async fn in_line<W: Future>(
    backend: &LockService,
    resource: &ResourceName,
    waiters: &mut FuturesUnordered<W>,
) {
    let all = u64::try_from(waiters.len()).expect("a small number");
    let look = async {
        loop {
            let inspection = inspection(backend, resource).await;
            if inspection.waiters.is_none_or(|waiters| waiters == all) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = waiters.next() => panic!("served while it was held"),
        () = look => {}
    }
}

async fn hold_once(backend: &LockService, request: &AcquireRequest) -> FencingToken {
    let lease = served(backend, request).await;
    release(backend, request, lease).await;
    lease.token
}
