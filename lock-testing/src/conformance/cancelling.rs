use super::{Harness, LONG, grant, is_held, release, request, resource, waiting};
use crate::dropped::DropAt;
use lock_core::{
    Attempt, ResourceName,
    backend::{AcquireRequest, AttemptRef, LockService, TokioRuntime, Wait},
};

/// Clause 9: after a cancel the attempt holds nothing, and its late requests gain nothing.
pub async fn cancel_leaves_nothing(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("cancel"));
    let granted = request(&resource, LONG);
    grant(&backend, &granted).await;
    backend
        .cancel(&granted.attempt)
        .await
        .expect("the service answers");
    assert!(!is_held(&backend, &resource).await);

    let never_sent = request(&resource, LONG);
    backend
        .cancel(&never_sent.attempt)
        .await
        .expect("the service answers");
    for late in [&granted, &never_sent] {
        assert!(
            backend.acquire(late).await.is_err(),
            "a late request was granted"
        );
        assert!(
            !is_held(&backend, &resource).await,
            "a late request made a ghost hold"
        );
    }
}

/// Clause 9: a cancel ends one attempt. The lease ends when no other attempt relies on it, and the
/// acquisition goes on.
pub async fn cancel_is_per_attempt(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("cancel-attempt"));
    for first_goes_first in [true, false] {
        let first = request(&resource, LONG);
        let lease = grant(&backend, &first).await;
        let mut second = first.clone();
        second.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), first.attempt.holder);
        assert_eq!(grant(&backend, &second).await.token, lease.token);
        let stranger = request(&resource, LONG);
        backend
            .cancel(&stranger.attempt)
            .await
            .expect("the service answers");
        assert!(
            is_held(&backend, &resource).await,
            "a stranger has cancelled the lease"
        );

        let (one, other) = if first_goes_first {
            (first, second)
        } else {
            (second, first)
        };
        backend
            .cancel(&one.attempt)
            .await
            .expect("the service answers");
        assert!(
            is_held(&backend, &resource).await,
            "another attempt relies on the lease"
        );
        backend
            .cancel(&other.attempt)
            .await
            .expect("the service answers");
        assert!(
            !is_held(&backend, &resource).await,
            "no attempt relies on the lease"
        );
        let mut third = other.clone();
        third.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), other.attempt.holder);
        let afresh = grant(&backend, &third).await;
        assert!(afresh.token > lease.token, "the token of another grant");
        backend
            .cancel(&third.attempt)
            .await
            .expect("the service answers");
    }
}

/// Clause 9: an acquire that is dropped at its k-th await, for every k, leaves nothing, whether the
/// resource is free or held.
pub async fn cancelled_at_every_await(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("every-await"));
    for contended in [false, true] {
        let mut awaits = 0;
        while dropped_at(&backend, &resource, awaits, contended).await {
            awaits += 1;
            assert!(awaits < 1000, "it never completes");
        }
        assert!(awaits > 0 || !contended, "a waiter that never waits");
    }
}

/// Drops an acquire at an await, cancels it, and checks that nothing is left. Returns false if it
/// completed before.
async fn dropped_at(
    backend: &LockService,
    resource: &ResourceName,
    awaits: usize,
    contended: bool,
) -> bool {
    let holder = request(resource, LONG);
    let lease = if contended {
        Some(grant(backend, &holder).await)
    } else {
        None
    };
    let dropped = waiting(resource, Wait::Forever);
    let give_way = async {
        if let Some(lease) = lease {
            release(backend, &holder, lease).await;
        }
    };
    let (completed, ()) = tokio::join!(is_granted_before(backend, &dropped, awaits + 1), give_way);
    backend
        .cancel(&dropped.attempt)
        .await
        .expect("the service answers");
    assert!(
        !is_held(backend, resource).await,
        "held after a drop at await {awaits}"
    );
    let next = request(resource, LONG);
    let lease = grant(backend, &next).await;
    release(backend, &next, lease).await;
    !completed
}

/// Polls an acquire up to an await, counted from 1, and drops it. Returns true if it completed.
async fn is_granted_before(backend: &LockService, request: &AcquireRequest, number: usize) -> bool {
    match DropAt::waiting(number).poll(backend.acquire(request)).await {
        None => false,
        Some(Ok(Attempt::Granted(_))) => true,
        Some(answer) => panic!("it waits for ever, and yet: {answer:?}"),
    }
}
