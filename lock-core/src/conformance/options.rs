use std::{num::NonZeroU32, time::Duration};

use super::{
    Harness, LONG, PATIENCE, TOO_SLOW, TRIES, claims, grant, is_held, release, request, resource,
    sequencer, served, settle, waiting,
};
use crate::{
    AcquireRequest, Attempt, ErrorKind, Extension, Forced, LockBackend, Metadata, Outcome,
    Released, RenewRequest, Renewed, ResourceName, Wait,
};

/// Long enough to be observed, shorter than a case may take.
const DELAY: Duration = Duration::from_millis(600);

/// By how much the clocks of service and client may differ over a case.
const IMPRECISE: Duration = Duration::from_millis(50);

/// Clause 13: an inspection shows the note of the present holder, however it was granted.
pub async fn metadata_is_shown(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("metadata"));
    if !claims(&*backend, Extension::Metadata) {
        return;
    }
    let mut first = request(&resource, LONG);
    first.metadata = note(r#"node 7 "über": 100 % | a:b,c"#);
    let lease = grant(&*backend, &first).await;
    assert_eq!(shown(&*backend, &resource).await, first.metadata);

    let mut next = waiting(&resource, Wait::Forever);
    next.metadata = note("in line");
    let hand_on = async {
        settle(harness).await;
        assert_eq!(
            shown(&*backend, &resource).await,
            first.metadata,
            "that of a waiter"
        );
        release(&*backend, &first, lease).await;
    };
    let (lease, ()) = tokio::join!(served(&*backend, &next), hand_on);
    assert_eq!(shown(&*backend, &resource).await, next.metadata);
    release(&*backend, &next, lease).await;

    let silent = request(&resource, LONG);
    let lease = grant(&*backend, &silent).await;
    assert_eq!(
        shown(&*backend, &resource).await,
        None,
        "that of an earlier holder"
    );
    release(&*backend, &silent, lease).await;
}

/// Clause 14: after a lease ran out nobody gets the resource for some time, and then the next
/// waiter.
pub async fn lock_delay_follows_expiry(harness: &impl Harness) {
    if !claims(&*harness.backend(), Extension::LockDelay) {
        return;
    }
    for _ in 0..TRIES {
        if delay_follows_expiry(harness).await.is_some() {
            return;
        }
    }
    panic!("{TOO_SLOW}");
}

/// One try. Nothing if the delay was over before there was an answer.
async fn delay_follows_expiry(harness: &impl Harness) -> Option<()> {
    let (backend, clock) = (harness.backend(), harness.clock());
    let resource = resource("lock-delay");
    let least = harness.short().get() + DELAY - IMPRECISE;
    let mut first = request(&resource, harness.short());
    first.lock_delay = DELAY;
    let asked = clock.now();
    let lease = sequencer(&first, grant(&*backend, &first).await);
    harness.pass(harness.past_short()).await;
    assert!(
        !is_held(&*backend, &resource).await,
        "the delay is no lease"
    );
    let renewal = RenewRequest::new(lease.clone(), LONG);
    let late = backend.renew(&[renewal]).await.remove(0);
    assert_eq!(late.expect("the service answers"), Renewed::NotHolder);
    let late = backend.release(&lease).await.expect("the service answers");
    assert_eq!(late, Released::NotHolder, "it had ended before the release");
    if claims(&*backend, Extension::ForceRelease) {
        let forced = backend.force_release(&resource, lease.token()).await;
        assert_eq!(forced.expect("the service answers"), Forced::NotHeld);
    }
    let error = backend.acquire(&first).await.expect_err("it has ended");
    assert_eq!(error.kind(), ErrorKind::Released);
    let early = backend.acquire(&request(&resource, LONG)).await;
    if clock.now().since(asked) >= least {
        return None;
    }
    assert!(
        matches!(early, Ok(Attempt::Held { retry_after }) if !retry_after.is_zero()),
        "{early:?}"
    );
    let second = waiting(&resource, Wait::Forever);
    let (next, ()) = tokio::join!(served(&*backend, &second), harness.pass(DELAY));
    assert!(next.token > lease.token());
    let waited = clock.now().since(asked);
    assert!(waited >= least, "granted after {waited:?}");
    release(&*backend, &second, next).await;
    Some(())
}

/// Clause 14: a release leaves no delay, and neither does a cancelled attempt.
pub async fn lock_delay_ends_with_release(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("lock-delay-release"));
    if !claims(&*backend, Extension::LockDelay) {
        return;
    }
    let delayed = || {
        let mut request = request(&resource, LONG);
        request.lock_delay = LONG.get();
        request
    };
    let released = delayed();
    let lease = grant(&*backend, &released).await;
    release(&*backend, &released, lease).await;
    let cancelled = delayed();
    grant(&*backend, &cancelled).await;
    backend
        .cancel(&cancelled.attempt)
        .await
        .expect("the service answers");
    let last = request(&resource, LONG);
    let lease = grant(&*backend, &last).await;
    release(&*backend, &last, lease).await;
}

/// Clause 15: a full queue takes no more waiters, and a refused one leaves nothing.
pub async fn queue_limit(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("queue-limit"));
    if !claims(&*backend, Extension::QueueLimit) {
        return;
    }
    let limited = |wait, most| {
        let mut request = waiting(&resource, wait);
        request.max_waiters = Some(most);
        request
    };
    let first = request(&resource, LONG);
    let lease = grant(&*backend, &first).await;
    let second = limited(Wait::Forever, 1);
    let third = limited(Wait::Forever, 1);
    let meanwhile = async {
        settle(harness).await;
        let inspection = backend
            .inspect(&resource)
            .await
            .expect("the service answers");
        assert_eq!(inspection.waiters, Some(1));
        assert_full(&*backend, &third).await;
        let look = backend.acquire(&limited(Wait::Never, 1)).await;
        assert!(matches!(look, Ok(Attempt::Held { .. })), "{look:?}");
        release(&*backend, &first, lease).await;
    };
    let (lease, ()) = tokio::join!(served(&*backend, &second), meanwhile);
    release(&*backend, &second, lease).await;
    assert!(
        !is_held(&*backend, &resource).await,
        "granted to one that was refused"
    );
}

/// Clause 16: tokens that were reserved are never granted to others.
pub async fn reserved_tokens_are_nobody_elses(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("reserve"));
    if !claims(&*backend, Extension::Reserve) {
        return;
    }
    let single = request(&resource, LONG);
    let lease = grant(&*backend, &single).await;
    assert_eq!(lease.reserved, 1);
    release(&*backend, &single, lease).await;

    let mut several = request(&resource, LONG);
    several.reserve = NonZeroU32::new(5).expect("not zero");
    let granted = grant(&*backend, &several).await;
    assert!(granted.token > lease.token);
    assert_eq!(granted.reserved, 5);
    let again = grant(&*backend, &several).await;
    assert_eq!((again.token, again.reserved), (granted.token, 5));
    release(&*backend, &several, granted).await;

    let next = request(&resource, LONG);
    let lease = grant(&*backend, &next).await;
    assert!(
        lease.token.get() >= granted.token.get() + 5,
        "a reserved token was granted"
    );
    release(&*backend, &next, lease).await;
}

fn note(text: &str) -> Option<Metadata> {
    Some(Metadata::new(text).expect("a fine note"))
}

async fn shown(backend: &dyn LockBackend, resource: &ResourceName) -> Option<Metadata> {
    let inspection = backend.inspect(resource).await;
    let holder = inspection.expect("the service answers").holder;
    holder.expect("it is held").metadata
}

async fn assert_full(backend: &dyn LockBackend, request: &AcquireRequest) {
    let answer = tokio::time::timeout(PATIENCE, backend.acquire(request)).await;
    let error = answer.expect("it waits").expect_err("the line is full");
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::QueueFull, Outcome::NotApplied)
    );
}
