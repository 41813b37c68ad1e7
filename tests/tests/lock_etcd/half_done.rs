//! A service that is retired, or not, half way.

use e2e::{
    proxy::{Fault, Proxy},
    servers::{Etcd, EtcdUser, until},
};
use lock_core::{Error, ErrorKind, FencingToken, LockBackend, Outcome, etcd::EtcdBackend};

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

/// What an operator is told whose request is carried out by a node that is not heard of any more.
/// When he sends it to another one, what he has changed himself is in the way. By the time he hears
/// of that, he may not even look.
async fn told<F>(server: &Etcd, user: &EtcdUser, prefix: &str, operate: F) -> Error
where
    F: AsyncFnOnce(&EtcdBackend) -> Error,
{
    let [one, other] = [
        Proxy::start(&server.url()).await,
        Proxy::start(&server.url()).await,
    ];
    let [first, second] = [&one, &other].map(|proxy| proxy.url("etcd"));
    let nodes = format!(
        "{},{}",
        &first["etcd://".len()..],
        &second["etcd://".len()..]
    );
    let url = server.url_of(user).replace(server.addresses()[0], &nodes);
    let operator = backend(&url, prefix).await;
    // The key, and a value behind it: it is written, and not just asked for.
    let write = "/floor\u{12}";
    let lost = one.at_request(write, Fault::DropReplies);
    let held = other.at_request(write, Fault::HoldReplies);
    let deny = async {
        until("it is sent again", || async { held.has_sprung() }).await;
        let denied = [
            "role",
            "revoke-permission",
            "--prefix=true",
            "locking",
            prefix,
        ];
        server.ctl(&denied).await;
        other.let_go();
    };
    let (error, ()) = tokio::join!(operate(&operator), deny);
    assert!(lost.has_sprung());
    error
}

#[tokio::test]
async fn an_operator_whose_request_was_sent_twice_is_not_told_that_nothing_has_changed() {
    let (mut server, prefix) = (Etcd::start().await, prefix());
    let user = server.ask_for_login(&prefix).await;
    let floor = format!("{prefix}/floor");
    let retired = async || {
        let floor = server.ctl(&["get", "--print-value-only", &floor]).await;
        floor.starts_with("retired")
    };
    let retire = async |operator: &EtcdBackend| operator.retire().await.unwrap_err();
    let error = told(&server, &user, &prefix, retire).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert!(retired().await);
    let allowed = [
        "role",
        "grant-permission",
        "--prefix=true",
        "locking",
        "readwrite",
        &prefix,
    ];
    server.ctl(&allowed).await;
    let reinstate = async |operator: &EtcdBackend| {
        let last = operator.standing().await.unwrap().last.unwrap();
        operator.reinstate(last).await.unwrap_err()
    };
    let error = told(&server, &user, &prefix, reinstate).await;
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(error.outcome(), Outcome::Unknown, "{error}");
    assert!(!retired().await);
}
