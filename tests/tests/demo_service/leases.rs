//! `/v1/leases/{resource}`

use std::pin::pin;

use futures_util::future::select;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::gateway::{Gateway, send};

/// Catches: an answer that shows the holder to others, a renewal without a bound, or a repeated
/// release that is an error.
#[tokio::test]
async fn a_lease_is_acquired_inspected_renewed_and_released() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let gateway = Gateway::start_with(&["--store", &store, "--issuer", "eu-1"]).await;
    let granted = gateway
        .acquire("account:1", json!({ "ttl_ms": 20_000 }))
        .await;
    assert_eq!(granted.status, StatusCode::CREATED);
    assert_eq!(granted.body["resource"], "account:1");
    assert_eq!(granted.body["issuer"], "eu-1");
    assert_eq!(granted.body["ttl_ms"], 20_000);
    let token = granted.body["fencing_token"].as_str().unwrap();
    let holder = granted.body["holder"].as_str().unwrap();
    assert!(token.starts_with(&format!("{};res=\"account:1\"", granted.body["token"])));

    let seen = send(gateway.request(Method::GET, "/v1/leases/account:1")).await;
    assert_eq!(seen.status, StatusCode::OK);
    assert_eq!(seen.body["lease"]["token"], granted.body["token"]);
    assert!(seen.body["lease"]["remaining_ms"].as_u64().unwrap() <= 20_000);
    assert!(
        !seen.body.to_string().contains(holder),
        "the holder is a secret: {seen:?}"
    );

    let renew = gateway.request(Method::PUT, "/v1/leases/account:1");
    let renew = renew.header("fencing-token", token);
    let refused = send(renew.json(&json!({ "ttl_ms": 300_001 }))).await;
    refused.assert_problem(422, "request-unprocessable");
    let renewed = gateway.renew("account:1", token).await;
    assert_eq!(renewed.status, StatusCode::OK);
    assert!(
        renewed.body["remaining_ms"].as_u64().unwrap() > 20_000,
        "{renewed:?}"
    );

    assert_eq!(
        gateway.release("account:1", token).await.status,
        StatusCode::NO_CONTENT
    );
    let again = gateway.release("account:1", token).await;
    assert_eq!(
        again.status,
        StatusCode::NO_CONTENT,
        "a release may be sent again"
    );
    gateway
        .renew("account:1", token)
        .await
        .assert_problem(412, "lease-ended");
    let seen = send(gateway.request(Method::GET, "/v1/leases/account:1")).await;
    assert_eq!(seen.body["lease"], Value::Null);
}

#[tokio::test]
async fn a_held_lease_is_a_conflict_that_says_when_to_come_back() {
    let gateway = Gateway::start().await;
    gateway.token("r", 30_000).await;
    let held = gateway
        .acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 50 }))
        .await;
    held.assert_problem(409, "lock-held");
    let retry_after: u64 = held.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=30).contains(&retry_after));
    assert!(held.body["retry_after_ms"].as_u64().unwrap() <= 30_000);
}

#[tokio::test]
async fn a_lease_that_its_client_does_not_renew_ends() {
    let gateway = Gateway::start().await;
    let first = gateway.token("r", 200).await;
    // The request waits inside the lock service until the first lease has run out.
    let next = gateway
        .acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 20_000 }))
        .await;
    assert_eq!(next.status, StatusCode::CREATED, "{next:?}");
    gateway
        .renew("r", &first)
        .await
        .assert_problem(412, "lease-ended");
    gateway
        .release("r", &first)
        .await
        .assert_problem(412, "lease-ended");
}

#[tokio::test]
async fn only_so_many_wait_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let gateway = Gateway::start_with(&["--store", &store, "--max-waiting", "1"]).await;
    let first = gateway.token("r", 60_000).await;
    // Of two clients that ask to wait, either one gets the only place.
    let (one, other) = (
        gateway.acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 50_000 })),
        gateway.acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 50_000 })),
    );
    let (one, other) = (pin!(one), pin!(other));
    let (refused, waiting) = select(one, other).await.into_inner();
    refused.assert_problem(503, "lock-service-unavailable");
    assert!(refused.headers.contains_key("retry-after"));
    // Others are not affected, and the place is free again after the wait.
    let held = gateway.acquire("r", json!({ "ttl_ms": 1000 })).await;
    held.assert_problem(409, "lock-held");
    gateway.release("r", &first).await;
    assert_eq!(waiting.await.status, StatusCode::CREATED);
    let next = gateway
        .acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 20_000 }))
        .await;
    assert_eq!(next.status, StatusCode::CREATED, "{next:?}");
}

#[tokio::test]
async fn a_client_that_goes_away_leaves_the_queue() {
    let gateway = Gateway::start().await;
    let first = gateway.token("r", 60_000).await;
    let leaver = gateway
        .request(Method::POST, "/v1/leases/r")
        .json(&json!({ "ttl_ms": 60_000, "wait_ms": 60_000 }));
    tokio::select! {
        answer = leaver.send() => panic!("{answer:?}"),
        () = gateway.until_waiting("r", 1) => {}
    }
    gateway.until_waiting("r", 0).await;

    gateway.release("r", &first).await;
    // If the client who left were still in line, it would now have the lease for a minute.
    let next = gateway
        .acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 20_000 }))
        .await;
    assert_eq!(next.status, StatusCode::CREATED, "{next:?}");
}

/// The gateway has read neither the client's second request nor the end of its connection.
#[tokio::test]
async fn a_client_that_goes_away_with_a_request_behind_leaves_the_queue_too() {
    let gateway = Gateway::start().await;
    let first = gateway.token("r", 60_000).await;
    let body = json!({ "ttl_ms": 60_000, "wait_ms": 60_000 }).to_string();
    let requests = format!(
        "POST /v1/leases/r HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
        body.len(),
    );
    let mut leaver = TcpStream::connect(gateway.addr()).await.unwrap();
    leaver.write_all(requests.as_bytes()).await.unwrap();
    gateway.until_waiting("r", 1).await;
    drop(leaver);
    gateway.until_waiting("r", 0).await;

    gateway.release("r", &first).await;
    let next = gateway
        .acquire("r", json!({ "ttl_ms": 1000, "wait_ms": 20_000 }))
        .await;
    assert_eq!(next.status, StatusCode::CREATED, "{next:?}");
}
