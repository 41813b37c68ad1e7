use std::{future::poll_fn, pin::pin, task::Poll};

use futures_util::future::join_all;

use super::{
    Harness, LONG, PAST_SHORT, SHORT, grant, is_held, release, request, resource, soon, waiting,
};
use crate::{AcquireRequest, Attempt, Fairness, FencingToken, LockBackend, Wait};

/// Clause 8: a release wakes a waiter, long before the lease would have ended.
pub async fn waits_until_release(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("wait"));
    let first = request(&resource, LONG);
    let lease = grant(&*backend, &first).await;
    let second = waiting(&resource, Wait::Forever);
    let mut acquire = pin!(backend.acquire(&second));
    let early = poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await;
    assert!(early.is_pending(), "granted while it was held");
    release(&*backend, &first, lease).await;
    let next = acquire
        .await
        .expect("the service answers")
        .granted()
        .expect("it is free");
    assert!(next.token > lease.token);
    release(&*backend, &second, next).await;
}

/// Clause 5: the end of a lease serves a waiter too, with nobody's help.
pub async fn waits_until_expiry(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("wait-expiry"));
    let first = request(&resource, SHORT);
    let lease = grant(&*backend, &first).await;
    let second = waiting(&resource, Wait::Forever);
    let (next, ()) = tokio::join!(backend.acquire(&second), harness.pass(PAST_SHORT));
    let next = next
        .expect("the service answers")
        .granted()
        .expect("it is free");
    assert!(next.token > lease.token);
    release(&*backend, &second, next).await;
}

/// Clause 8: at the deadline the answer is `Held`, and the waiter is not in line any more.
pub async fn wait_deadline(harness: &impl Harness) {
    let (backend, clock, resource) = (harness.backend(), harness.clock(), resource("timeout"));
    let first = request(&resource, LONG);
    let lease = grant(&*backend, &first).await;
    let deadline = soon(&*clock);
    let second = waiting(&resource, Wait::Until(deadline));
    let (answer, ()) = tokio::join!(
        backend.acquire(&second),
        harness.pass(deadline.since(clock.now()))
    );
    assert!(matches!(answer, Ok(Attempt::Held { .. })), "{answer:?}");
    assert!(clock.now() >= deadline, "gave up too early");
    release(&*backend, &first, lease).await;
    assert!(
        !is_held(&*backend, &resource).await,
        "granted to one that has given up"
    );
}

/// A backend that claims to be fair serves waiters in the order in which they came; every backend
/// serves all of them, each with a token of its own.
pub async fn fairness_as_claimed(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("fair"));
    let first = request(&resource, LONG);
    let lease = grant(&*backend, &first).await;
    let requests: Vec<_> = (0..8).map(|_| waiting(&resource, Wait::Forever)).collect();
    let mut waiters = Vec::new();
    for request in &requests {
        let mut waiter = Box::pin(hold_once(&*backend, request));
        // One poll puts an in-process waiter in line; a server sees them in the order of sending.
        let early = poll_fn(|cx| Poll::Ready(waiter.as_mut().poll(cx))).await;
        assert!(early.is_pending());
        waiters.push(waiter);
    }
    let (tokens, ()) = tokio::join!(join_all(waiters), release(&*backend, &first, lease));
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

async fn hold_once(backend: &dyn LockBackend, request: &AcquireRequest) -> FencingToken {
    let answer = backend.acquire(request).await.expect("the service answers");
    let lease = answer.granted().expect("it waits for ever");
    release(backend, request, lease).await;
    lease.token
}
