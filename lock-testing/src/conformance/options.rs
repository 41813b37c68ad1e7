use super::{
    Harness, LONG, PATIENCE, claims, grant, inspection, is_held, release, request, resource,
    served, settle, settle_in_line, waiting,
};
use lock_core::{
    Attempt, ErrorKind, Extension, Metadata, Outcome, ResourceName,
    backend::{AcquireRequest, LockService, Wait},
};

/// Clause 13: an inspection shows the note of the present holder, however it was granted.
pub async fn metadata_is_shown(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("metadata"));
    if !claims(&backend, Extension::Metadata) {
        return;
    }
    let mut first = request(&resource, LONG);
    first.metadata = note(r#"node 7 "über": 100 % | a:b,c"#);
    let lease = grant(&backend, &first).await;
    assert_eq!(shown(&backend, &resource).await, first.metadata);

    let mut next = waiting(&resource, Wait::Forever);
    next.metadata = note("in line");
    let hand_on = async {
        settle(harness).await;
        assert_eq!(
            shown(&backend, &resource).await,
            first.metadata,
            "that of a waiter"
        );
        release(&backend, &first, lease).await;
    };
    let (lease, ()) = tokio::join!(served(&backend, &next), hand_on);
    assert_eq!(shown(&backend, &resource).await, next.metadata);
    release(&backend, &next, lease).await;

    let silent = request(&resource, LONG);
    let lease = grant(&backend, &silent).await;
    assert_eq!(
        shown(&backend, &resource).await,
        None,
        "that of an earlier holder"
    );
    release(&backend, &silent, lease).await;
}

/// Clause 15: a full queue takes no more waiters, and a refused waiter leaves nothing.
pub async fn queue_limit(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("queue-limit"));
    if !claims(&backend, Extension::QueueLimit) {
        return;
    }
    let limited = |wait, most| {
        let mut request = waiting(&resource, wait);
        request.max_waiters = Some(most);
        request
    };
    let first = request(&resource, LONG);
    let lease = grant(&backend, &first).await;
    let second = limited(Wait::Forever, 1);
    let third = limited(Wait::Forever, 1);
    let meanwhile = async {
        settle_in_line(harness, &backend, &resource).await;
        let inspection = inspection(&backend, &resource).await;
        assert_eq!(inspection.waiters, Some(1));
        assert_full(&backend, &third).await;
        let look = backend.acquire(&limited(Wait::Never, 1)).await;
        assert!(matches!(look, Ok(Attempt::Held { .. })), "{look:?}");
        release(&backend, &first, lease).await;
    };
    let (lease, ()) = tokio::join!(served(&backend, &second), meanwhile);
    release(&backend, &second, lease).await;
    assert!(
        !is_held(&backend, &resource).await,
        "granted to one that was refused"
    );
}

fn note(text: &str) -> Option<Metadata> {
    Some(Metadata::new(text).expect("a fine note"))
}

async fn shown(backend: &LockService, resource: &ResourceName) -> Option<Metadata> {
    let holder = inspection(backend, resource).await.holder;
    holder.expect("it is held").metadata
}

async fn assert_full(backend: &LockService, request: &AcquireRequest) {
    let answer = tokio::time::timeout(PATIENCE, backend.acquire(request)).await;
    let error = answer.expect("it waits").expect_err("the line is full");
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::QueueFull, Outcome::NotApplied)
    );
}
