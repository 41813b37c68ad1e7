//! A service that is lifted or retired half way: whoever does it dies after the first step, or is
//! refused the second one.

use e2e::servers::zookeeper;
use lock_core::{ErrorKind, FencingToken, LockManager, Outcome, Ttl};
use zookeeper_client::{Acls, CreateMode};

use crate::world::Namespace;

const TTL: Ttl = Ttl::secs(15);

async fn next_token(locks: &LockManager) -> FencingToken {
    let guard = locks.acquire("r").ttl(TTL).await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// Some remember the floor of before. Others read the new one, and are served first.
#[tokio::test]
async fn tokens_rise_when_nobody_is_told_that_the_service_was_lifted() {
    let namespace = Namespace::fresh(zookeeper().await);
    let early = namespace.connect().await;
    let mut highest = next_token(&early).await;
    for _ in 0..2 {
        // What is left of an operator who dies before he has told anybody.
        let lifted = (highest.get() + 1_000_000).to_string();
        let service = format!("/{}/service", namespace.prefix);
        let observer = namespace.observer().await;
        let written = observer.set_data(&service, lifted.as_bytes(), None).await;
        written.unwrap();
        let late = namespace.connect().await;
        for locks in [&late, &early, &late, &early] {
            let token = next_token(locks).await;
            assert!(token > highest, "{token} after {highest}");
            highest = token;
        }
    }
}

/// One of the lock directories is not for him.
#[tokio::test]
async fn an_operator_who_is_refused_half_way_is_not_told_that_nothing_has_changed() {
    let namespace = Namespace::fresh(zookeeper().await);
    let operator = namespace.connect().await;
    let last = next_token(&operator).await;
    let observer = namespace.observer().await;
    let read_only = CreateMode::Persistent.with_acls(Acls::anyone_read());
    let directory = namespace.directory("s");
    let created = observer.create(&directory, b"", &read_only).await;
    created.unwrap();
    let floor = FencingToken::new(last.get() + 1_000_000).unwrap();
    let errors = [
        operator.retire().await.unwrap_err(),
        operator.reinstate(floor).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        assert!(!error.is_retryable(), "{error}");
    }
    assert!(next_token(&operator).await >= floor);
}
