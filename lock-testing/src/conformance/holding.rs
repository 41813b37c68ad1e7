use super::{
    Harness, LONG, TOO_SLOW, TRIES, grant, inspection, is_held, release, request, resource,
    sequencer,
};
use lock_core::{
    FencingToken, Holder, Released, Sequencer, Ttl,
    backend::{AcquireRequest, Grant, LockService, Moment, RenewRequest, Renewed},
};

/// Two copies of the sequencer: one with another token, and one with another holder.
fn impostors(lease: &Sequencer) -> [Sequencer; 2] {
    let with = |token, holder| {
        Sequencer::new(
            lease.issuer().clone(),
            lease.resource().clone(),
            token,
            holder,
        )
    };
    let next: FencingToken = lease.token().next().expect("not the last");
    [
        with(next, lease.holder()),
        with(lease.token(), Holder::random()),
    ]
}

/// Clause 6: a renewal neither renews nor creates a lease that is not held.
pub async fn renew_never_creates(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("renew"));
    let first = request(&resource, harness.short());
    let lease = sequencer(&first, grant(&backend, &first).await);
    let renewal = |lease: &Sequencer| RenewRequest::new(lease.clone(), LONG);
    let renewals = impostors(&lease).each_ref().map(renewal);
    for answer in backend.renew(&renewals).await {
        assert_eq!(answer.expect("the service answers"), Renewed::NotHolder);
    }
    harness.pass(harness.past_short()).await;
    assert!(
        !is_held(&backend, &resource).await,
        "an impostor has renewed the lease"
    );
    // A service may have a fast path for a renewal to the same ttl.
    for ttl in [LONG, harness.short()] {
        let late = [RenewRequest::new(lease.clone(), ttl)];
        let late = backend.renew(&late).await.remove(0);
        assert_eq!(late.expect("the service answers"), Renewed::NotHolder);
        assert!(
            !is_held(&backend, &resource).await,
            "a late renewal has made a lease"
        );
    }
}

/// Clause 6: a renewal to a shorter ttl leaves the end that the grant, or another renewal, has
/// promised.
pub async fn a_renewal_shortens_nothing(harness: &impl Harness) {
    for _ in 0..TRIES {
        if is_not_shortened(harness).await.is_some() {
            return;
        }
    }
    panic!("{TOO_SLOW}");
}

/// One try. `None` if a lease ended before its renewal.
async fn is_not_shortened(harness: &impl Harness) -> Option<()> {
    let backend = harness.backend();
    let of_grant = Promised::by(&backend, LONG, &[harness.short()]).await?;
    // A backend that keeps the length of the grant says so in its answer, and has not promised
    // more.
    let lengths = [LONG, harness.short()];
    let of_renewal = Promised::by(&backend, harness.short(), &lengths).await?;
    harness.pass(harness.past_short()).await;
    let now = backend.runtime().now();
    assert!(now < of_grant.until, "it was granted for long");
    for promised in [of_grant, of_renewal] {
        if now < promised.until {
            let resource = &promised.request.attempt.resource;
            assert!(is_held(&backend, resource).await, "{resource}: shortened");
            release(&backend, &promised.request, promised.grant).await;
        }
    }
    Some(())
}

/// A lease, and the latest end that was promised.
struct Promised {
    request: AcquireRequest,
    grant: Grant,
    until: Moment,
}

impl Promised {
    /// A lease that was granted for this ttl, and then renewed to other ttls. `None` if it ended
    /// before that.
    async fn by(backend: &LockService, ttl: Ttl, renewals: &[Ttl]) -> Option<Self> {
        let request = request(&resource("promised"), ttl);
        let grant = grant(backend, &request).await;
        let mut until = grant.lease.deadline();
        for ttl in renewals {
            let renewal = RenewRequest::new(sequencer(&request, grant), *ttl);
            match backend.renew(&[renewal]).await.remove(0) {
                Ok(Renewed::Renewed(lease)) => until = std::cmp::max(until, lease.deadline()),
                _ if backend.runtime().now() >= until => return None,
                answer => panic!("it is held, and yet: {answer:?}"),
            }
        }
        Some(Self {
            request,
            grant,
            until,
        })
    }
}

/// Clause 7: a release ends its own lease and no other lease, and may be sent again.
pub async fn release_only_own(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("release"));
    let first = request(&resource, LONG);
    let lease = sequencer(&first, grant(&backend, &first).await);
    for impostor in impostors(&lease) {
        let answer = backend
            .release(&impostor, true)
            .await
            .expect("the service answers");
        assert_eq!(answer, Released::NotHolder);
    }
    assert!(
        is_held(&backend, &resource).await,
        "an impostor has released the lease"
    );
    for _ in 0..2 {
        let answer = backend
            .release(&lease, true)
            .await
            .expect("the service answers");
        assert_eq!(answer, Released::Released);
    }
    let second = request(&resource, LONG);
    let next = grant(&backend, &second).await;
    backend
        .release(&lease, true)
        .await
        .expect("the service answers");
    assert!(
        is_held(&backend, &resource).await,
        "a late release has ended another's lease"
    );
    release(&backend, &second, next).await;
}

/// An inspection shows token, time left and a fingerprint, and never the holder.
pub async fn inspection_shows_no_secret(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("inspect"));
    assert_eq!(inspection(&backend, &resource).await.holder, None);
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let inspection = inspection(&backend, &resource).await;
    assert!(!format!("{inspection:?}").contains(&first.attempt.holder.expose()));
    let holder = inspection.holder.expect("it is held");
    assert_eq!(holder.fingerprint, first.attempt.holder.fingerprint());
    assert_eq!(holder.token, lease.token);
    assert!(holder.remaining <= LONG.get() && !holder.remaining.is_zero());
    release(&backend, &first, lease).await;
}
