use super::{Harness, LONG, grant, is_held, release, request, resource};
use lock_core::{ErrorKind, FencingToken, Outcome};

/// Clause 10: a granted token is at least the floor, and later ones are above it.
pub async fn floor(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("floor"));
    let first = request(&resource, LONG);
    let before = grant(&backend, &first).await;
    release(&backend, &first, before).await;

    let floor = FencingToken::new(before.token.get() + 1000).expect("in range");
    let mut lifted = request(&resource, LONG);
    lifted.floor = Some(floor);
    let lease = grant(&backend, &lifted).await;
    assert!(
        lease.token >= floor,
        "{} is below the floor {floor}",
        lease.token
    );
    assert_eq!(
        grant(&backend, &lifted).await.token,
        lease.token,
        "a replay is no second grant"
    );
    release(&backend, &lifted, lease).await;

    let mut already_above = request(&resource, LONG);
    already_above.floor = Some(before.token);
    let next = grant(&backend, &already_above).await;
    assert!(
        next.token > lease.token,
        "a floor that is passed already lowers nothing"
    );
    release(&backend, &already_above, next).await;
}

/// Clause 10: an implausible floor is refused, and raises no resource's tokens.
pub async fn implausible_floor(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("implausible"));
    let first = request(&resource, LONG);
    let before = grant(&backend, &first).await;
    release(&backend, &first, before).await;
    let mut poisoned = request(&resource, LONG);
    poisoned.floor = Some(FencingToken::MAX);
    let error = backend
        .acquire(&poisoned)
        .await
        .expect_err("no floor can be that high");
    assert_eq!(
        (error.kind(), error.outcome()),
        (ErrorKind::FloorImplausible, Outcome::NotApplied)
    );
    let next = request(&resource, LONG);
    let after = grant(&backend, &next).await;
    // The token is far below the implausible floor: it has grown by a few seconds of the clock, and
    // has not jumped to the greatest token.
    assert!(
        after.token.get() - before.token.get() < 100_000 * 60,
        "the counter was dragged along"
    );
    release(&backend, &next, after).await;
}

/// Clause 11: a refused request leaves nothing, whatever the reason.
pub async fn refused_input_leaves_nothing(harness: &impl Harness) {
    let (backend, resource) = (harness.backend(), resource("refused"));
    let released = request(&resource, LONG);
    let lease = grant(&backend, &released).await;
    release(&backend, &released, lease).await;
    let mut poisoned = request(&resource, LONG);
    poisoned.floor = Some(FencingToken::MAX);
    for refused in [released, poisoned] {
        let error = backend
            .acquire(&refused)
            .await
            .expect_err("it cannot be granted");
        assert_eq!(error.outcome(), Outcome::NotApplied);
        assert!(!is_held(&backend, &resource).await);
    }
    let next = request(&resource, LONG);
    let lease = grant(&backend, &next).await;
    release(&backend, &next, lease).await;
}
