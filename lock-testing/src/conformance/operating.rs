use super::{
    Harness, LONG, claims, grant, is_held, release, request, resource, sequencer, served, settle,
    waiting,
};
use lock_core::{
    ErrorKind, Extension, Listed, Outcome, Released, ResourceName,
    backend::{AttemptRef, Forced, LockService, RenewRequest, Renewed, TokioRuntime, Wait},
};

/// Clause 17: a forced release ends a lease permanently, and draws a token above it that no holder
/// gets.
pub async fn force_release_revokes(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("force"));
    if !claims(&backend, Extension::ForceRelease) {
        return;
    }
    assert_eq!(
        force(&backend, &resource, 1).await,
        Forced::NotHeld,
        "it is free"
    );
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let wrong = force(&backend, &resource, lease.token.get() + 1).await;
    assert_eq!(wrong, Forced::NotHeld);
    assert!(
        is_held(&backend, &resource).await,
        "the token was not compared"
    );

    let revocation = match force(&backend, &resource, lease.token.get()).await {
        Forced::Ended { revocation } => revocation,
        Forced::NotHeld => panic!("it is held"),
    };
    assert!(revocation > lease.token);
    assert!(!is_held(&backend, &resource).await);
    let ended = sequencer(&first, lease);
    let renewal = RenewRequest::new(ended.clone(), LONG);
    let late = backend.renew(&[renewal]).await.remove(0);
    assert_eq!(late.expect("the service answers"), Renewed::NotHolder);
    let late = backend
        .release(&ended, true)
        .await
        .expect("the service answers");
    assert_eq!(late, Released::NotHolder);
    let mut again = first.clone();
    again.attempt = AttemptRef::new(&TokioRuntime, resource.clone(), first.attempt.holder);
    for late in [&first, &again] {
        let error = backend.acquire(late).await.expect_err("it has ended");
        assert_eq!(error.kind(), ErrorKind::Released);
    }

    let next = request(&resource, LONG);
    let granted = grant(&backend, &next).await;
    assert!(
        granted.token > revocation,
        "the revocation would shut out the next holder"
    );
    let late = force(&backend, &resource, lease.token.get()).await;
    assert!(
        [Forced::NotHeld, Forced::Ended { revocation }].contains(&late),
        "{late:?}"
    );
    assert!(is_held(&backend, &resource).await, "it was the next one's");
    release(&backend, &next, granted).await;
}

/// Clause 17: a waiter gets a resource whose lease was ended by force.
pub async fn force_release_hands_on(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("force-hand-on"));
    if !claims(&backend, Extension::ForceRelease) {
        return;
    }
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let next = waiting(&resource, Wait::Forever);
    let end = async {
        settle(harness).await;
        force(&backend, &resource, lease.token.get()).await
    };
    let (granted, forced) = tokio::join!(served(&backend, &next), end);
    let Forced::Ended { revocation } = forced else {
        panic!("it was held")
    };
    assert!(lease.token < revocation && revocation < granted.token);
    release(&backend, &next, granted).await;
}

/// Clause 18: a list shows held resources, each as an inspection shows it, and no secret.
pub async fn list_shows_what_is_held(harness: &impl Harness) {
    let backend = harness.backend();
    if !claims(&backend, Extension::List) {
        return;
    }
    let names = ["listed-1", "listed-2", "released"].map(resource);
    let mut held = Vec::new();
    for name in &names {
        let request = request(name, LONG);
        let lease = grant(&backend, &request).await;
        held.push((request, lease));
    }
    let (released, lease) = held.pop().expect("three of them");
    release(&backend, &released, lease).await;

    let listed = backend.list().await.expect("the service answers");
    for (request, lease) in &held {
        let inspection = &entry(&listed, &request.attempt.resource)
            .expect("it is held")
            .inspection;
        let holder = inspection.holder.as_ref().expect("it is held");
        assert_eq!(holder.token, lease.token);
        assert_eq!(holder.fingerprint, request.attempt.holder.fingerprint());
        assert!(holder.remaining <= LONG.get() && !holder.remaining.is_zero());
        assert!(!format!("{listed:?}").contains(&request.attempt.holder.expose()));
    }
    assert_eq!(entry(&listed, &released.attempt.resource), None);
    for (request, lease) in held {
        release(&backend, &request, lease).await;
    }
}

/// Every method that a backend does not claim answers that it is unsupported, and changes nothing.
pub async fn an_extension_that_is_not_claimed_is_unsupported(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("unclaimed"));
    let held = request(&resource, LONG);
    let lease = grant(&backend, &held).await;
    let sequencer = sequencer(&held, lease);
    let several = [request(&self::resource("unclaimed-2"), LONG)];
    let answers = [
        (
            Extension::Holds,
            backend
                .release_hold(
                    &sequencer,
                    AttemptRef::new(&TokioRuntime, resource.clone(), held.attempt.holder).id,
                )
                .await
                .err(),
        ),
        (
            Extension::ForceRelease,
            backend
                .force_release(&resource, lease.token.next().expect("not the last"))
                .await
                .err(),
        ),
        (Extension::List, backend.list().await.err()),
        (
            Extension::Together,
            backend.acquire_together(&several).await.err(),
        ),
    ];
    for (extension, error) in answers {
        if backend.capabilities().has(extension) {
            assert!(error.is_none(), "{extension:?} is claimed: {error:?}");
        } else {
            let error = error.expect("it is not claimed");
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{extension:?}");
            assert_eq!(error.outcome(), Outcome::NotApplied, "{extension:?}");
        }
    }
    release(&backend, &held, lease).await;
}

async fn force(backend: &LockService, resource: &ResourceName, token: u64) -> Forced {
    let token = token.try_into().expect("a token");
    let answer = backend.force_release(resource, token).await;
    answer.expect("the service answers")
}

fn entry<'a>(listed: &'a [Listed], resource: &ResourceName) -> Option<&'a Listed> {
    listed.iter().find(|entry| entry.resource == *resource)
}
