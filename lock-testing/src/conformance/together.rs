use super::{Harness, LONG, claims, grant, is_held, release, request, resource};
use lock_core::{
    Attempt, ErrorKind, Extension, Holder, Outcome, ResourceName,
    backend::{AcquireRequest, AttemptRef, Grant, LockService, TokioRuntime},
};

/// The number of names that are tried to find a resource in another part of the service.
const NAMES_MAX: usize = 1000;

/// Clause 14: while another holder has one resource, none is granted. After that all are granted.
pub async fn together_is_all_or_none(harness: &impl Harness) {
    let backend = harness.backend();
    if !claims(&backend, Extension::Together) {
        return;
    }
    let requests = requests(&of_one_place());
    let mut rival = request(&requests[1].attempt.resource, LONG);
    let earlier = grant(&backend, &rival).await;
    for _ in 0..2 {
        let answer = backend.acquire_together(&requests).await;
        let Ok(Attempt::Held { retry_after }) = answer else {
            panic!("one of them is held, and yet: {answer:?}")
        };
        assert!(!retry_after.is_zero());
        assert_held(&backend, &requests, [false, true, false]).await;
    }
    release(&backend, &rival, earlier).await;

    let grants = granted(&backend, &requests).await;
    assert_held(&backend, &requests, [true; 3]).await;
    assert!(grants[1].token > earlier.token);
    for (request, grant) in requests.iter().zip(grants) {
        rival = self::request(&request.attempt.resource, LONG);
        let look = backend.acquire(&rival).await;
        assert!(matches!(look, Ok(Attempt::Held { .. })), "{look:?}");
        release(&backend, request, grant).await;
        let next = self::grant(&backend, &rival).await;
        assert!(next.token > grant.token);
        release(&backend, &rival, next).await;
    }
}

/// Clause 14: an acquisition that is sent again gets the same grants, but nothing after one of them
/// was released. Each release can be sent again.
pub async fn together_is_replayed(harness: &impl Harness) {
    let backend = harness.backend();
    if !claims(&backend, Extension::Together) {
        return;
    }
    let requests = requests(&of_one_place());
    let grants = granted(&backend, &requests).await;
    for (again, grant) in granted(&backend, &requests).await.iter().zip(&grants) {
        assert_eq!(again.token, grant.token);
    }
    release(&backend, &requests[2], grants[2]).await;
    let late = backend.acquire_together(&requests).await;
    let error = late.expect_err("a part of it has ended");
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::Released, Outcome::NotApplied)
    );
    assert_held(&backend, &requests, [true, true, false]).await;
    for _ in 0..2 {
        for (request, grant) in requests.iter().zip(&grants) {
            release(&backend, request, *grant).await;
        }
    }
}

/// Clause 14: resources that one step cannot reach are refused before anything happens.
pub async fn together_compares_places(harness: &impl Harness) {
    let backend = harness.backend();
    if !claims(&backend, Extension::Together) {
        return;
    }
    let one = resource("part");
    let names = std::iter::repeat_with(|| resource("other-part"));
    let mut others = names.take(NAMES_MAX);
    let elsewhere = others.find(|name| backend.part_of(name) != backend.part_of(&one));
    // Some services have a single part, but may still keep resources in several places.
    let other = elsewhere.unwrap_or_else(|| resource("other-part"));
    let requests = self::requests(&[one, other]);
    match backend.acquire_together(&requests).await {
        Ok(Attempt::Granted(grants)) => {
            assert_held(&backend, &requests, [true; 2]).await;
            for (request, grant) in requests.iter().zip(grants) {
                release(&backend, request, grant).await;
            }
        }
        refused => {
            let error = refused.expect_err("they are free");
            assert_eq!(
                (error.kind(), error.outcome()),
                (ErrorKind::InvalidInput, Outcome::NotApplied)
            );
            assert_held(&backend, &requests, [false; 2]).await;
        }
    }
}

/// Clause 14: a resource that is named twice is refused.
pub async fn together_names_each_once(harness: &impl Harness) {
    let backend = harness.backend();
    if !claims(&backend, Extension::Together) {
        return;
    }
    let one = resource("twice");
    let requests = requests(&[one.clone(), one.clone()]);
    let refused = backend.acquire_together(&requests).await;
    let error = refused.expect_err("only one of its tokens could be of use");
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::InvalidInput, Outcome::NotApplied)
    );
    assert!(!is_held(&backend, &one).await);
}

/// Clause 14: the attempts of a caller that has gone are cancelled one by one, and its late request
/// gains nothing.
pub async fn together_is_cancelled_one_by_one(harness: &impl Harness) {
    let backend = harness.backend();
    if !claims(&backend, Extension::Together) {
        return;
    }
    for sent_before in [true, false] {
        let requests = requests(&of_one_place());
        if sent_before {
            granted(&backend, &requests).await;
        }
        for request in &requests {
            let cancelled = backend.cancel(&request.attempt).await;
            cancelled.expect("the service answers");
            assert!(!is_held(&backend, &request.attempt.resource).await);
        }
        let late = backend.acquire_together(&requests).await;
        assert!(late.is_err(), "a late request was granted");
        assert_held(&backend, &requests, [false; 3]).await;
    }
}

/// Three names that every service keeps in one place.
fn of_one_place() -> [ResourceName; 3] {
    let tag = format!("{{{:016x}}}", rand::random::<u64>());
    ["a", "b", "c"].map(|name| resource(&format!("{tag}:{name}")))
}

/// The requests of one acquisition of all these resources.
fn requests(resources: &[ResourceName]) -> Vec<AcquireRequest> {
    let mut attempt = AttemptRef::new(&TokioRuntime, resources[0].clone(), Holder::random());
    let request = |resource: &ResourceName| {
        attempt.resource = resource.clone();
        AcquireRequest::new(attempt.clone(), LONG)
    };
    resources.iter().map(request).collect()
}

async fn granted(backend: &LockService, requests: &[AcquireRequest]) -> Vec<Grant> {
    let answer = backend.acquire_together(requests).await;
    let grants = answer.expect("the service answers").granted();
    let grants = grants.expect("they are free");
    assert_eq!(grants.len(), requests.len());
    grants
}

async fn assert_held<const N: usize>(
    backend: &LockService,
    requests: &[AcquireRequest],
    held: [bool; N],
) {
    for (number, (request, expected)) in requests.iter().zip(held).enumerate() {
        let held = is_held(backend, &request.attempt.resource).await;
        assert_eq!(held, expected, "resource {number}");
    }
}
