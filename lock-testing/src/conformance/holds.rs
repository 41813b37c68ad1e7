use super::{Harness, LONG, TOO_SLOW, TRIES, claims, grant, is_held, request, resource, sequencer};
use lock_core::{
    Attempt, ErrorKind, Extension, Released, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptRef, LockService, RenewRequest, Renewed, TokioRuntime},
};

/// Clause 16: the lease ends with its last hold, and then the holder may acquire again.
pub async fn holds_are_given_back_one_by_one(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("holds"));
    if !claims(&backend, Extension::Holds) {
        return;
    }
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let second = another(&first);
    assert_eq!(grant(&backend, &second).await.token, lease.token);
    let lease = sequencer(&first, lease);
    for _ in 0..2 {
        assert_eq!(
            give_back(&backend, &lease, &first).await,
            Released::Released
        );
        assert!(is_held(&backend, &resource).await, "another hold is left");
    }
    let late = backend.acquire(&first).await;
    assert!(late.is_err(), "a hold that was given back: {late:?}");
    assert_eq!(
        give_back(&backend, &lease, &second).await,
        Released::Released
    );
    assert!(!is_held(&backend, &resource).await, "no hold is left");

    let third = another(&first);
    let anew = grant(&backend, &third).await;
    assert!(anew.token > lease.token(), "a new lease has a new token");
    let fourth = another(&first);
    for same in [&third, &fourth, &third] {
        assert_eq!(grant(&backend, same).await.token, anew.token, "a replay");
    }
    // Late requests belong to the lease before, and leave the new lease alone.
    for late in [&first, &second] {
        assert_eq!(give_back(&backend, &lease, late).await, Released::Released);
        assert!(backend.acquire(late).await.is_err());
    }
    assert_eq!(renew(&backend, &lease, LONG).await, Renewed::NotHolder);
    let anew = sequencer(&third, anew);
    for hold in [&third, &fourth] {
        assert_eq!(give_back(&backend, &anew, hold).await, Released::Released);
    }
    assert!(
        !is_held(&backend, &resource).await,
        "a late request holds it"
    );
}

/// Clause 16: only its holder, with its token, can give back a hold that was granted.
pub async fn a_hold_is_compared(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("hold-compared"));
    if !claims(&backend, Extension::Holds) {
        return;
    }
    let first = request(&resource, LONG);
    let lease = sequencer(&first, grant(&backend, &first).await);
    let stranger = request(&resource, LONG);
    let with =
        |token, holder| Sequencer::new(lease.issuer().clone(), resource.clone(), token, holder);
    let next = lease.token().next().expect("not the last");
    for (lease, request) in [
        (with(next, lease.holder()), &first),
        (with(lease.token(), stranger.attempt.holder), &first),
        (lease.clone(), &another(&first)),
    ] {
        let answer = give_back(&backend, &lease, request).await;
        assert_eq!(answer, Released::NotHolder);
        assert!(is_held(&backend, &resource).await);
    }
    assert_eq!(
        give_back(&backend, &lease, &first).await,
        Released::Released
    );
    assert!(!is_held(&backend, &resource).await);
}

/// Clause 16: renewing a hold with a short ttl does not shorten a hold with a long ttl.
pub async fn a_renewal_shortens_no_hold(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("hold-shortened"));
    if !claims(&backend, Extension::Holds) {
        return;
    }
    let long = request(&resource, LONG);
    let lease = sequencer(&long, grant(&backend, &long).await);
    let mut short = another(&long);
    short.ttl = harness.short();
    grant(&backend, &short).await;
    let renewed = renew(&backend, &lease, harness.short()).await;
    assert!(matches!(renewed, Renewed::Renewed(_)), "{renewed:?}");
    harness.pass(harness.past_short()).await;
    assert!(
        is_held(&backend, &resource).await,
        "a renewal has made the lease shorter"
    );
    assert_eq!(
        give_back(&backend, &lease, &short).await,
        Released::Released
    );
    assert!(is_held(&backend, &resource).await);
    assert_eq!(give_back(&backend, &lease, &long).await, Released::Released);
}

/// Clause 16: a lease that ran out is lost for all of its holds, and the acquisition with it.
pub async fn holds_are_lost_together(harness: &impl Harness) {
    if !claims(&harness.backend(), Extension::Holds) {
        return;
    }
    for _ in 0..TRIES {
        if are_lost_together(harness).await.is_some() {
            return;
        }
    }
    panic!("{TOO_SLOW}");
}

/// One try. `None` if the lease ended before it had its second hold.
async fn are_lost_together(harness: &impl Harness) -> Option<()> {
    let (backend, resource) = (harness.backend(), resource("holds-lost"));
    let first = request(&resource, harness.short());
    let granted = grant(&backend, &first).await;
    let lease = sequencer(&first, granted);
    let second = another(&first);
    let answer = backend.acquire(&second).await;
    if backend.runtime().now() >= granted.lease.deadline() {
        return None;
    }
    assert!(matches!(answer, Ok(Attempt::Granted(_))), "{answer:?}");
    harness.pass(harness.past_short()).await;
    for lost in [&first, &second] {
        assert_eq!(give_back(&backend, &lease, lost).await, Released::NotHolder);
    }
    let error = backend.acquire(&another(&first)).await;
    let error = error.expect_err("the acquisition has ended");
    assert_eq!(error.kind(), ErrorKind::Released);
    Some(())
}

/// Another attempt of the same acquisition.
fn another(request: &AcquireRequest) -> AcquireRequest {
    let AttemptRef {
        resource, holder, ..
    } = &request.attempt;
    let mut another = request.clone();
    another.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), *holder);
    another
}

async fn give_back(backend: &LockService, lease: &Sequencer, request: &AcquireRequest) -> Released {
    let answer = backend.release_hold(lease, request.attempt.id).await;
    answer.expect("the service answers")
}

async fn renew(backend: &LockService, lease: &Sequencer, ttl: Ttl) -> Renewed {
    let sequencer = lease.clone();
    let answer = backend.renew(&[RenewRequest::new(sequencer, ttl)]).await;
    let only = answer.into_iter().next().expect("one answer per lease");
    only.expect("the service answers")
}
