//! A service that is retired, or not, half way.

use e2e::servers::Etcd;
use lock_core::{ErrorKind, FencingToken, LockBackend, Outcome};

use crate::world::{backend, prefix};

/// Its user may change the floor, which is the first step, and not what comes after it.
#[tokio::test]
async fn an_operator_who_fails_at_the_second_step_is_not_told_that_nothing_has_changed() {
    let (mut server, prefix) = (Etcd::start().await, prefix());
    let user = server.ask_for_login(&format!("{prefix}/floor")).await;
    let operator = backend(&server.url_of(&user), &prefix).await;
    let last = operator.standing().await.unwrap().last.unwrap();
    let errors = [
        operator.retire().await.unwrap_err(),
        operator
            .reinstate(FencingToken::new(last.get() + 1_000_000).unwrap())
            .await
            .unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
        assert!(!error.is_retryable(), "{error}");
    }
    let standing = operator.standing().await.unwrap();
    assert!(!standing.retired && standing.last.unwrap().get() >= last.get() + 1_000_000);
}
