//! An acquire whose answer got lost is sent again, and finds its lease.

use e2e::servers::redis;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::gateway::{Gateway, send};

const KEY: &str = "9b6c5f0e-2d4a-4c1f-8e7d-6c5b4a392817";
const OTHER_KEY: &str = "00000000-2d4a-4c1f-8e7d-6c5b4a392817";

fn acquire(gateway: &Gateway, resource: &str, key: &str) -> RequestBuilder {
    let request = gateway.request(Method::POST, &format!("/v1/leases/{resource}"));
    request
        .header("idempotency-key", key)
        .json(&json!({ "ttl_ms": 60_000 }))
}

#[tokio::test]
async fn the_same_key_finds_the_same_lease_until_it_ends() {
    let gateway = Gateway::start().await;
    let first = send(acquire(&gateway, "account:1", KEY)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = send(acquire(&gateway, "account:1", KEY)).await;
    assert_eq!(again.status, 201, "{again:?}");
    assert_eq!(again.body["fencing_token"], first.body["fencing_token"]);
    let left = |answer: &crate::gateway::Answer| answer.body["remaining_ms"].as_u64().unwrap();
    assert!(
        left(&again) <= left(&first),
        "a repeated request extends nothing"
    );

    send(acquire(&gateway, "account:1", OTHER_KEY))
        .await
        .assert_problem(409, "lock-held");
    let of_somebody_else = acquire(&gateway, "account:1", KEY).bearer_auth("somebody else");
    send(of_somebody_else)
        .await
        .assert_problem(409, "lock-held");
    let elsewhere = send(acquire(&gateway, "account:2", KEY)).await;
    assert_ne!(elsewhere.body["holder"], first.body["holder"]);

    let token = first.body["fencing_token"].as_str().unwrap();
    assert_eq!(gateway.release("account:1", token).await.status, 204);
    send(acquire(&gateway, "account:1", KEY))
        .await
        .assert_problem(409, "idempotency-key-spent");
    assert_eq!(
        send(acquire(&gateway, "account:1", OTHER_KEY)).await.status,
        201
    );
}

#[tokio::test]
async fn a_key_is_known_at_every_gateway_with_the_same_signing_keys() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, "k1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let lock = redis().await.url();
    let without_keys = ["--lock", lock, "--store", &store];
    let with_keys = [
        &without_keys[..],
        &["--signing-keys", keys.to_str().unwrap()],
    ]
    .concat();
    let resource = format!("account:{:x}", rand::random::<u64>());
    let one = Gateway::start_with(&with_keys).await;
    let two = Gateway::start_with(&with_keys).await;
    let first = send(acquire(&one, &resource, KEY)).await;
    let again = send(acquire(&two, &resource, KEY)).await;
    assert_eq!(again.status, 201, "{again:?}");
    assert_eq!(again.body["fencing_token"], first.body["fencing_token"]);
    // The control: without the same secret it is somebody else's.
    let three = Gateway::start_with(&without_keys).await;
    send(acquire(&three, &resource, KEY))
        .await
        .assert_problem(409, "lock-held");
}

#[tokio::test]
async fn a_key_that_could_be_anybodys_is_refused() {
    let gateway = Gateway::start().await;
    for key in ["", "1", "order-42", &"k".repeat(256)] {
        send(acquire(&gateway, "r", key))
            .await
            .assert_problem(400, "request-malformed");
    }
    let two = acquire(&gateway, "r", KEY).header("idempotency-key", OTHER_KEY);
    send(two).await.assert_problem(400, "request-malformed");
    assert_eq!(send(acquire(&gateway, "r", KEY)).await.status, 201);
}
