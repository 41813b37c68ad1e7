//! The floor is raised while others come, wait and go.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use e2e::servers::etcd;
use futures_util::future::join_all;
use lock_core::{
    FencingToken, Holder, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackendExt, TokioRuntime},
};
use tokio::time::timeout;

use crate::world::{Load, PATIENCE, backend, manager, named, prefix, sections};

const RAISES: u64 = 12;
const RAISE: u64 = 1_000_000;
const TTL: Ttl = Ttl::secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floors_that_are_raised_under_load_keep_tokens_in_order() {
    let (server, prefix) = (etcd().await, prefix());
    let (load, stop) = (Arc::new(Load::default()), Arc::new(AtomicBool::new(false)));
    let mut tasks = Vec::new();
    for number in 0..3_u64 {
        let locks = manager(&server.url(), &prefix).await;
        // Other clients raise the floor, so the floor that this client knows may be too low.
        for part in 0..2 {
            let first = 1 + (number * 2 + part) * 100_000;
            tasks.push(sections(&load, &locks, first, TTL, &stop));
        }
    }
    let raiser = manager(&server.url(), &prefix).await;
    let mut last = raiser.acquire("warm-up").await.unwrap().token().get();
    for raise in 1..=RAISES {
        let floor = FencingToken::new(last + RAISE).unwrap();
        let number = 10_000_001 + raise * 8;
        let raised = load.section_above(&raiser, number, TTL, Some(floor));
        timeout(PATIENCE, raised).await.expect("its turn");
        let after = raiser.acquire("other").await.unwrap();
        assert!(after.token() >= floor, "the floor is for all of them");
        last = after.token().get();
    }
    stop.store(true, Ordering::Relaxed);
    for task in timeout(PATIENCE, join_all(tasks)).await.expect("stuck") {
        task.unwrap();
    }
    load.assert_sound();
}

/// A client that reads the floor after it has acquired would compute a wrong token.
#[tokio::test]
async fn a_floor_that_rises_changes_no_token_that_was_drawn() {
    let (server, prefix) = (etcd().await, prefix());
    let url = server.url();
    let (one, other) = (backend(&url, &prefix).await, backend(&url, &prefix).await);
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    let request = AcquireRequest::new(attempt, Ttl::secs(60));
    let first = one.acquire(&request).await.unwrap().granted().unwrap();
    let raiser = manager(&url, &prefix).await;
    let floor = FencingToken::new(first.token.get() + RAISE).unwrap();
    let raised = raiser.acquire("other").at_least(floor).await.unwrap();
    assert!(raised.token() >= floor);
    for backend in [&one, &other] {
        // A client learns the new floor from a look that fails. A new client has read it when it
        // connected.
        let look = backend.acquire(&fresh("r")).await.unwrap();
        assert!(look.granted().is_none(), "it is held");
        let again = backend.acquire(&request).await.unwrap().granted().unwrap();
        assert_eq!(again.token, first.token);
    }
}

fn fresh(resource: &str) -> AcquireRequest {
    let attempt = AttemptRef::new(&TokioRuntime, named(resource), Holder::random());
    AcquireRequest::new(attempt, Ttl::secs(60))
}

#[tokio::test]
async fn a_floor_that_was_deleted_is_made_anew_above_what_was_issued() {
    let (server, prefix) = (etcd().await, prefix());
    let locks = manager(&server.url(), &prefix).await;
    let before = locks.acquire("r").await.unwrap();
    let token = before.token();
    before.release().await.unwrap();
    server.ctl(&["del", &format!("{prefix}/floor")]).await;
    let after = locks.acquire("r").await.unwrap();
    assert!(after.token() > token);
}

#[tokio::test]
async fn a_floor_that_is_no_number_is_an_error_and_not_overwritten() {
    let (server, prefix) = (etcd().await, prefix());
    let key = format!("{prefix}/floor");
    server.ctl(&["put", &key, "a dozen"]).await;
    let error = palisade::connect(server.url())
        .prefix(&prefix)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), lock_core::ErrorKind::CounterBroken);
    let read = server.ctl(&["get", "--print-value-only", &key]).await;
    assert_eq!(read.trim(), "a dozen");
}
