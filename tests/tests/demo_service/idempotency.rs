//! An acquire whose answer got lost is sent again, and finds its lease.

use e2e::servers::redis;
use reqwest::{Method, RequestBuilder};
use serde_json::json;

use crate::{
    gateway::{Gateway, send},
    keys::{KeyFile, new_key, reload},
};

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

/// Any difference counts, and at every gateway, because the store remembers the request of the key.
#[tokio::test]
async fn a_key_that_comes_with_another_body_is_refused_at_every_gateway() {
    let world = KeyFile::on(redis().await.url());
    world.write_keys(&[&new_key("k1")]);
    let gateways = [world.gateway().await, world.gateway().await];
    let resource = format!("account:{:x}", rand::random::<u64>());
    let first = send(acquire(&gateways[0], &resource, KEY)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let others = [
        json!({ "ttl_ms": 300_000 }),
        json!({ "ttl_ms": 60_000, "wait_ms": 1000 }),
        json!({ "ttl_ms": 60_000, "metadata": "another note" }),
    ];
    let refused = async |gateway| {
        for body in &others {
            send(acquire(gateway, &resource, KEY).json(body))
                .await
                .assert_problem(422, "idempotency-key-reused");
        }
    };
    for gateway in &gateways {
        refused(gateway).await;
        // The same request in another form finds the lease unchanged.
        let body = r#"{ "wait_ms": 0, "ttl_ms": 60000 }"#;
        let request = acquire(gateway, &resource, KEY).body(body);
        let again = send(request).await;
        assert_eq!(again.status, 201, "{again:?}");
        assert_eq!(again.body["fencing_token"], first.body["fencing_token"]);
        assert!(again.body["remaining_ms"].as_u64().unwrap() <= 60_000);
    }
    let token = first.body["fencing_token"].as_str().unwrap();
    assert_eq!(gateways[0].release(&resource, token).await.status, 204);
    refused(&gateways[1]).await;
    send(acquire(&gateways[1], &resource, KEY))
        .await
        .assert_problem(409, "idempotency-key-spent");
    // The same key of another caller, or for another resource, is another key.
    let of_somebody_else = acquire(&gateways[1], &resource, KEY).bearer_auth("somebody else");
    let body = json!({ "ttl_ms": 1000 });
    assert_eq!(send(of_somebody_else.json(&body)).await.status, 201);
    let elsewhere = acquire(&gateways[1], &format!("{resource}-2"), KEY);
    assert_eq!(send(elsewhere.json(&body)).await.status, 201);
}

/// A gateway that has read its keys again behaves like a gateway that was started afterwards.
#[tokio::test]
async fn keys_are_known_everywhere_after_a_change_of_signing_keys() {
    let world = KeyFile::on(redis().await.url());
    let (old, new) = (new_key("old"), new_key("new"));
    world.write_keys(&[&old, &new]);
    let mut running = world.gateway().await;
    let before = format!("account:{:x}", rand::random::<u64>());
    let under_the_old = send(acquire(&running, &before, OTHER_KEY)).await;
    assert_eq!(under_the_old.status, 201, "{under_the_old:?}");
    world.write_keys(&[&new, &old]);
    assert_eq!(reload(&mut running).await, "new");
    // The holder is derived from the first key, so a repeated request finds its own lease as that
    // of another holder.
    send(acquire(&running, &before, OTHER_KEY))
        .await
        .assert_problem(409, "lock-held");
    let started = world.gateway().await;
    let resource = format!("account:{:x}", rand::random::<u64>());
    let first = send(acquire(&running, &resource, KEY)).await;
    assert_eq!(first.status, 201, "{first:?}");
    let again = send(acquire(&started, &resource, KEY)).await;
    assert_eq!(again.status, 201, "{again:?}");
    assert_eq!(again.body["token"], first.body["token"]);

    // The old signing key is deleted, and nothing changes.
    world.write_keys(&[&new]);
    assert_eq!(reload(&mut running).await, "new");
    let again = send(acquire(&running, &resource, KEY)).await;
    assert_eq!(again.body["token"], first.body["token"], "{again:?}");
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
