use super::{
    Harness, LONG, PATIENCE, claims, grant, is_held, release, request, resource, sequencer, settle,
    waiting,
};
use crate::{
    Attempt, ErrorKind, Extension, FencingToken, LockBackend, Outcome, Released, RenewRequest,
    Renewed, ResourceName, Standing, Wait,
};

/// Clause 20: no token is drawn, leases go on, and the last token is no less than any issued one.
pub async fn a_retired_service_grants_nothing(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("retired"));
    if !claims(&*backend, Extension::Retire) {
        return;
    }
    let held = request(&resource, LONG);
    let lease = grant(&*backend, &held).await;
    let standing = backend.standing().await.expect("the service answers");
    assert!(!standing.retired && standing.last >= Some(lease.token));

    let retired = backend.retire().await.expect("the service answers");
    assert!(retired.retired && retired.last >= Some(lease.token));
    for again in [backend.retire().await, backend.standing().await] {
        let again = again.expect("the service answers");
        assert!(again.retired, "it is for good");
        assert_eq!(again.last, retired.last, "it is for good");
    }
    refuses(&*backend, &self::resource("retired-other")).await;
    let look = backend.acquire(&request(&resource, LONG)).await;
    assert!(
        matches!(look, Ok(Attempt::Held { .. })),
        "it is held: {look:?}"
    );

    assert_eq!(grant(&*backend, &held).await.token, lease.token, "a replay");
    let renewal = RenewRequest::new(sequencer(&held, lease), LONG);
    let renewed = backend.renew(&[renewal]).await.remove(0);
    assert!(matches!(renewed, Ok(Renewed::Renewed(_))), "{renewed:?}");
    release(&*backend, &held, lease).await;
    assert!(!is_held(&*backend, &resource).await);
    refuses(&*backend, &resource).await;
    if backend.capabilities().has(Extension::Together) {
        let together = [request(&resource, LONG)];
        let error = backend.acquire_together(&together).await;
        let error = error.expect_err("it is retired");
        assert_eq!(error.kind(), ErrorKind::Retired, "{error}");
    }
}

/// Clause 20: leases that were acquired together are replayed after the service was retired.
pub async fn a_retired_service_replays_several(harness: &impl Harness) {
    let backend = harness.backend();
    let capabilities = backend.capabilities();
    if !capabilities.has(Extension::Retire) || !claims(&*backend, Extension::Together) {
        return;
    }
    let names = ["{retired-pair}:1", "{retired-pair}:2"];
    let pair = names.map(|name| request(&self::resource(name), LONG));
    let together = async || {
        let answer = backend.acquire_together(&pair).await;
        let grants = answer.expect("the service answers").granted();
        let grants = grants.expect("they are free, or ours");
        grants.iter().map(|grant| grant.token).collect::<Vec<_>>()
    };
    let tokens = together().await;
    let retired = backend.retire().await.expect("the service answers");
    assert_eq!(together().await, tokens, "a replay");
    let standing = backend.standing().await.expect("the service answers");
    // Not the whole standing: a limit that follows the clock rises meanwhile.
    let drawn = |standing: Standing| (standing.retired, standing.last);
    assert_eq!(drawn(standing), drawn(retired), "a replay draws no token");
}

/// Clause 20: a waiter of a retired service is told so when it would be its turn, unless it gets a
/// token that was drawn before.
pub async fn waiters_of_a_retired_service_are_told(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("retired-line"));
    if !claims(&*backend, Extension::Retire) {
        return;
    }
    let first = request(&resource, LONG);
    let lease = grant(&*backend, &first).await;
    let waiters = [(); 3].map(|()| waiting(&resource, Wait::Forever));
    let end = async {
        settle(harness).await;
        let retired = backend.retire().await.expect("the service answers");
        let released = backend.release(&sequencer(&first, lease)).await;
        assert_eq!(released.expect("the service answers"), Released::Released);
        retired
    };
    let told = async |request| {
        let answer = tokio::time::timeout(PATIENCE, backend.acquire(request)).await;
        let answer = answer.expect("a waiter that nobody tells");
        if let Ok(Attempt::Granted(grant)) = &answer {
            release(&*backend, request, *grant).await;
        }
        answer
    };
    let [one, two, three] = &waiters;
    let (one, two, three, retired) = tokio::join!(told(one), told(two), told(three), end);
    for answer in [one, two, three] {
        match answer {
            Ok(Attempt::Granted(grant)) => assert!(Some(grant.token) <= retired.last),
            Ok(Attempt::Held { .. }) => panic!("it would wait for ever"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Retired, "{error}"),
        }
    }
    assert!(!is_held(&*backend, &resource).await);
    refuses(&*backend, &resource).await;
}

/// Clause 20: after reinstating, every resource goes on above the floor and above all earlier
/// tokens.
pub async fn a_reinstated_service_is_above_its_floor(harness: &impl Harness) {
    let (backend, known) = (harness.backend(), resource("reinstated"));
    if !claims(&*backend, Extension::Retire) {
        return;
    }
    let first = request(&known, LONG);
    let lease = grant(&*backend, &first).await;
    release(&*backend, &first, lease).await;
    let last = last(backend.retire().await.expect("the service answers"));
    let error = backend.reinstate(FencingToken::MAX).await;
    let error = error.expect_err("no floor can be that high");
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::FloorImplausible, Outcome::NotApplied)
    );
    refuses(&*backend, &known).await;

    // It tells beforehand. Where counters follow the clock, the limit rises while we look at it.
    let limit = backend.standing().await.expect("the service answers");
    let limit = limit.greatest_floor;
    if let Some(limit) = limit
        && let Ok(beyond) = FencingToken::new(limit.get() + 1_000_000_000)
    {
        let error = backend.reinstate(beyond).await;
        let error = error.expect_err("it is beyond the limit");
        assert_eq!(error.kind(), ErrorKind::FloorImplausible);
        refuses(&*backend, &known).await;
    }

    // A floor that it has passed already lowers nothing.
    backend.reinstate(lease.token).await.expect("a fine floor");
    assert!(token_of(&*backend, &known).await > last);
    let floor = FencingToken::new(last.get() + 1_000_000).expect("in range");
    assert!(limit.is_none_or(|limit| floor <= limit));
    for _ in 0..2 {
        let standing = backend.reinstate(floor).await.expect("a fine floor");
        assert!(!standing.retired);
    }
    for resource in [known, resource("reinstated-other")] {
        assert!(token_of(&*backend, &resource).await >= floor);
    }
}

async fn refuses(backend: &dyn LockBackend, resource: &ResourceName) {
    for wait in [Wait::Never, Wait::Forever] {
        let error = backend.acquire(&waiting(resource, wait)).await;
        let error = error.expect_err("it is retired");
        assert_eq!(
            (error.kind(), error.outcome()),
            (ErrorKind::Retired, Outcome::NotApplied),
            "{error}"
        );
        assert!(!is_held(backend, resource).await);
    }
}

/// A token that is drawn now.
async fn token_of(backend: &dyn LockBackend, resource: &ResourceName) -> FencingToken {
    let request = request(resource, LONG);
    let lease = grant(backend, &request).await;
    release(backend, &request, lease).await;
    lease.token
}

fn last(standing: Standing) -> FencingToken {
    standing.last.expect("it has issued tokens")
}
