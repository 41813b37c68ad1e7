use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use super::{
    Harness, LONG, TOO_SLOW, TRIES, grant, is_held, release, request, resource, sequencer, settle,
};
use lock_core::{
    Attempt, ErrorKind, ResourceName,
    backend::{AttemptRef, RenewRequest, Renewed, TokioRuntime},
};

/// A service that counts whole milliseconds may keep a lease for one millisecond longer than its
/// answer says.
const ROUNDING: Duration = Duration::from_millis(1);

/// The delay after which a case looks at an answer.
const LATE: Duration = Duration::from_millis(100);

/// Clause 1: a later grant has a greater token, however the earlier grant ended.
pub async fn order(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("order"));
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let released = request(&resource, LONG);
        let lease = grant(&backend, &released).await;
        tokens.push(lease.token);
        release(&backend, &released, lease).await;

        let expired = request(&resource, harness.short());
        tokens.push(grant(&backend, &expired).await.token);
        harness.pass(harness.past_short()).await;

        let cancelled = request(&resource, LONG);
        tokens.push(grant(&backend, &cancelled).await.token);
        backend
            .cancel(&cancelled.attempt)
            .await
            .expect("the service answers");
    }
    assert!(
        tokens.is_sorted_by(|earlier, later| earlier < later),
        "{tokens:?}"
    );
}

/// Clause 2: while a lease lives, no other holder gets the resource. Other resources are free.
pub async fn exclusion(harness: &impl Harness) {
    let (backend, held) = (harness.backend(), resource("held"));
    let first = request(&held, LONG);
    let lease = grant(&backend, &first).await;
    for _ in 0..3 {
        let second = backend
            .acquire(&request(&held, LONG))
            .await
            .expect("the service answers");
        let Attempt::Held { retry_after } = second else {
            panic!("granted twice")
        };
        assert!(
            retry_after <= LONG.get() + ROUNDING && !retry_after.is_zero(),
            "{retry_after:?}"
        );
    }
    let other = request(&resource("other"), LONG);
    let other_lease = grant(&backend, &other).await;
    release(&backend, &other, other_lease).await;
    release(&backend, &first, lease).await;
}

/// Clause 3: an acquisition that is sent again gets the same grant, and gains no time.
pub async fn replay(harness: &impl Harness) {
    for _ in 0..TRIES {
        if is_replayed(harness).await.is_some() {
            return;
        }
    }
    panic!("{TOO_SLOW}");
}

/// One try. `None` if the lease ended before there was an answer.
async fn is_replayed(harness: &impl Harness) -> Option<()> {
    let backend = harness.backend();
    let runtime = backend.runtime();
    let resource = resource("replay");
    let first = request(&resource, harness.short());
    let asked = runtime.now();
    let lease = grant(&backend, &first).await;
    // The first deadline is counted from before its request. The lease is counted from the arrival
    // of the request.
    let took = runtime.now().since(asked) + ROUNDING;
    let most = std::cmp::max(took, harness.short().get() / 4);
    harness.pass(harness.short().get() / 2).await;
    let mut again = first.clone();
    again.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), first.attempt.holder);
    for repeated in [&first, &again, &again] {
        let answer = backend.acquire(repeated).await;
        if runtime.now() >= lease.lease.deadline() {
            return None;
        }
        let Ok(Attempt::Granted(answer)) = answer else {
            panic!("it lives, and yet: {answer:?}")
        };
        assert_eq!(answer.token, lease.token);
        let gained = answer.lease.deadline().since(lease.lease.deadline());
        assert!(gained < most, "a replay has gained {gained:?}");
    }
    harness
        .pass(harness.past_short() - harness.short().get() / 2)
        .await;
    assert!(
        !is_held(&backend, &resource).await,
        "a replay has extended the lease"
    );
    Some(())
}

/// Clause 4: an acquisition that was released, or ran out, cannot acquire the resource again.
pub async fn ended_acquisition_stays_ended(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("ended"));
    let released = request(&resource, LONG);
    let lease = grant(&backend, &released).await;
    release(&backend, &released, lease).await;
    let expired = request(&resource, harness.short());
    grant(&backend, &expired).await;
    harness.pass(harness.past_short()).await;
    // The expired acquisition comes first, because then only its own request has seen its lease
    // end.
    for ended in [expired, released] {
        let mut again = ended.clone();
        again.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), ended.attempt.holder);
        for late in [&ended, &again] {
            let error = backend.acquire(late).await.expect_err("it has ended");
            assert_eq!(error.kind(), ErrorKind::Released);
        }
    }
    assert!(!is_held(&backend, &resource).await);
}

/// Clause 4: only the acquisition of one resource ends. Its holder may acquire other resources.
pub async fn a_holder_may_acquire_other_resources(harness: &impl Harness) {
    let (backend, first) = (harness.backend(), resource("several"));
    let kept = ResourceName::new(format!("{{{first}}}:kept")).expect("it is short");
    let second = ResourceName::new(format!("{{{first}}}:second")).expect("it is short");
    let released = request(&first, LONG);
    let of_same = |resource: ResourceName| {
        let mut request = request(&resource, LONG);
        request.attempt = AttemptRef::new(&TokioRuntime, resource, released.attempt.holder);
        request
    };
    let (kept, second) = (of_same(kept), of_same(second));
    let kept_grant = grant(&backend, &kept).await;
    let lease = grant(&backend, &released).await;
    release(&backend, &released, lease).await;
    assert!(is_held(&backend, &kept.attempt.resource).await);
    assert_eq!(grant(&backend, &kept).await.token, kept_grant.token);
    let next = grant(&backend, &second).await;
    release(&backend, &second, next).await;
    release(&backend, &kept, kept_grant).await;
}

/// Clause 5: a lease that is not renewed ends, and a lease that is renewed goes on.
pub async fn expiry(harness: &impl Harness) {
    for _ in 0..TRIES {
        if goes_on_and_ends(harness).await.is_some() {
            return;
        }
    }
    panic!("{TOO_SLOW}");
}

/// One try. `None` if the lease ended before there was an answer.
async fn goes_on_and_ends(harness: &impl Harness) -> Option<()> {
    let backend = harness.backend();
    let runtime = backend.runtime();
    let resource = resource("expiry");
    let first = request(&resource, harness.short());
    let lease = grant(&backend, &first).await;
    harness.pass(harness.short().get() / 2).await;
    let renewal = RenewRequest::new(sequencer(&first, lease), harness.short());
    let renewed = backend
        .renew(std::slice::from_ref(&renewal))
        .await
        .remove(0);
    if runtime.now() >= lease.lease.deadline() {
        return None;
    }
    let Ok(Renewed::Renewed(renewed)) = renewed else {
        panic!("it lives, and yet: {renewed:?}")
    };
    harness.pass(harness.short().get() / 2).await;
    let held = is_held(&backend, &resource).await;
    if runtime.now() >= renewed.deadline() {
        return None;
    }
    assert!(held, "it was renewed");
    harness.pass(harness.past_short()).await;
    let second = request(&resource, LONG);
    let next = grant(&backend, &second).await;
    assert!(next.token > lease.token);
    Some(())
}

/// Clause 12: the deadline is at most a ttl after the request, however late its answer is seen.
pub async fn deadline_counts_from_request(harness: &impl Harness) {
    let backend = harness.backend();
    let runtime = backend.runtime();
    let resource = resource("deadline");
    // The set-up of a first acquire, such as creating a counter, must not be measured here.
    let warm_up = request(&resource, LONG);
    let lease = grant(&backend, &warm_up).await;
    release(&backend, &warm_up, lease).await;
    let first = request(&resource, LONG);
    let mut acquire = pin!(backend.acquire(&first));
    let begun = runtime.now();
    let answer = poll_fn(|cx| Poll::Ready(acquire.as_mut().poll(cx))).await;
    // A task of the backend may send the request.
    settle(harness).await;
    let sent = runtime.now();
    let answer = match answer {
        Poll::Ready(answer) => answer,
        Poll::Pending => {
            harness.pass(LATE).await;
            acquire.await
        }
    };
    // The service granted the lease some time between the request and this moment.
    let granted_until = runtime.now() + LONG.get() + ROUNDING;
    let lease = answer
        .expect("the service answers")
        .granted()
        .expect("it is free")
        .lease;
    assert!(
        lease.deadline() <= sent + LONG.get(),
        "counted from the answer"
    );
    assert!(
        lease.deadline() + LATE > begun + LONG.get(),
        "counted from long before"
    );
    assert!(lease.renew_by() < lease.deadline());
    harness.pass(LATE).await;
    let again = grant(&backend, &first).await;
    assert!(
        again.lease.deadline() <= granted_until,
        "a replay claims more than there is"
    );
}
