//! `/v1/leases`: several leases for one client, all of them or none.

use std::time::{Duration, Instant};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway, send};

/// How long the first leases are held before the last one is free.
const HELD: Duration = Duration::from_secs(3);

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap()
}

fn request(gateway: &Gateway, body: &Value) -> RequestBuilder {
    gateway.request(Method::POST, "/v1/leases").json(body)
}

async fn acquire(gateway: &Gateway, body: &Value) -> Answer {
    send(request(gateway, body)).await
}

fn tokens(granted: &Answer) -> Vec<String> {
    assert_eq!(granted.status, 201, "{granted:?}");
    let leases = granted.body["leases"].as_array().unwrap().iter();
    leases
        .map(|lease| lease["fencing_token"].as_str().unwrap().to_owned())
        .collect()
}

async fn is_held(gateway: &Gateway, resource: &str) -> bool {
    let path = format!("/v1/leases/{resource}");
    let seen = send(gateway.request(Method::GET, &path)).await;
    !seen.body["lease"].is_null()
}

/// What they are for: one transaction under both, with tokens that the store knows.
#[tokio::test]
async fn several_leases_are_granted_as_they_are_named_and_are_good_for_a_transfer() {
    let gateway = Gateway::start().await;
    for id in ["1", "2"] {
        let path = format!("/v1/unfenced/accounts/{id}");
        assert_eq!(gateway.write(&path, None, 100).await.status, 200);
    }
    let asked = json!({ "resources": ["account:2", "account:1"], "ttl_ms": 60_000 });
    let granted = acquire(&gateway, &asked).await;
    let leases = granted.body["leases"].as_array().unwrap();
    let named: Vec<_> = leases.iter().map(|lease| &lease["resource"]).collect();
    assert_eq!(named, ["account:2", "account:1"]);
    let tokens = tokens(&granted);
    let transfer = gateway
        .request(Method::POST, "/v1/accounts/2/transfers")
        .header("fencing-token", &tokens[0])
        .header("fencing-token-to", &tokens[1])
        .json(&json!({ "to": "1", "amount": 30 }));
    let made = send(transfer).await;
    assert_eq!(made.status, 200, "{made:?}");
    assert_eq!(gateway.balance("1").await, Some(130));
    // Each is a lease like any other.
    assert_eq!(gateway.renew("account:2", &tokens[0]).await.status, 200);
    assert_eq!(gateway.release("account:2", &tokens[0]).await.status, 204);
    assert!(is_held(&gateway, "account:1").await);
}

#[tokio::test]
async fn if_one_of_several_is_held_none_is() {
    let gateway = Gateway::start().await;
    let other = gateway.token("b", 60_000).await;
    let asked = json!({ "resources": ["c", "a", "b"], "ttl_ms": 60_000, "wait_ms": 100 });
    let refused = acquire(&gateway, &asked).await;
    refused.assert_problem(409, "lock-held");
    assert_eq!(refused.body["resource"], "b");
    // What was acquired before is given back, by a release that follows shortly.
    let free = json!({ "resources": ["a", "c"], "ttl_ms": 60_000, "wait_ms": 30_000 });
    assert_eq!(tokens(&acquire(&gateway, &free).await).len(), 2);
    assert_eq!(gateway.release("b", &other).await.status, 204);
}

/// While the last one is waited for, the first ones outlast their ttl.
#[tokio::test]
async fn the_first_of_several_is_renewed_while_the_last_is_waited_for() {
    let gateway = Gateway::start().await;
    let last = gateway.token("z", 60_000).await;
    let asked = json!({ "resources": ["a", "z"], "ttl_ms": 1500, "wait_ms": 60_000 });
    let waiting = acquire(&gateway, &asked);
    let freeing = async {
        while !is_held(&gateway, "a").await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Twice its ttl: somebody else would have it by then.
        let thief = json!({ "ttl_ms": 1000, "wait_ms": 3000 });
        let thief = gateway.acquire("a", thief).await;
        thief.assert_problem(409, "lock-held");
        assert_eq!(gateway.release("z", &last).await.status, 204);
    };
    let (granted, ()) = tokio::join!(waiting, freeing);
    assert_eq!(tokens(&granted).len(), 2);
}

/// However long the first ones were held before the last one was granted.
#[tokio::test]
async fn of_several_leases_each_lasts_as_long_from_the_answer_on_as_it_says() {
    let gateway = Gateway::start().await;
    let last = gateway.token("z", 60_000).await;
    let asked = json!({ "resources": ["z", "a", "m"], "ttl_ms": 60_000, "wait_ms": 60_000 });
    let waiting = acquire(&gateway, &asked);
    let freeing = async {
        while !is_held(&gateway, "m").await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(HELD).await;
        let freed = Instant::now();
        assert_eq!(gateway.release("z", &last).await.status, 204);
        freed
    };
    let (granted, freed) = tokio::join!(waiting, freeing);
    tokens(&granted);
    let mut told = Vec::new();
    for lease in granted.body["leases"].as_array().unwrap() {
        let left = lease["remaining_ms"].as_u64().unwrap();
        // The ttl counts from the answer, not from when the first of them was acquired.
        assert!(
            left <= 60_000 && left > 60_000 - millis(HELD),
            "{granted:?}"
        );
        told.push(left);
        let path = format!("/v1/leases/{}", lease["resource"].as_str().unwrap());
        let seen = send(gateway.request(Method::GET, &path)).await;
        let seen = seen.body["lease"]["remaining_ms"].as_u64().unwrap();
        let since = millis(freed.elapsed());
        // Both times are rounded down.
        assert!(
            seen + since + 2 >= left,
            "{seen} ms after {since} ms: {granted:?}"
        );
    }
    // They were renewed together.
    let apart = told.iter().max().unwrap() - told.iter().min().unwrap();
    assert!(apart < millis(HELD) / 2, "{granted:?}");
}

/// Named in whatever order, they are taken in one.
#[tokio::test]
async fn clients_that_ask_for_the_same_leases_do_not_wait_in_a_circle() {
    let gateway = Gateway::start().await;
    let rounds = async |first: &str, second: &str| {
        for _ in 0..20 {
            let asked =
                json!({ "resources": [first, second], "ttl_ms": 60_000, "wait_ms": 60_000 });
            let tokens = tokens(&acquire(&gateway, &asked).await);
            for (resource, token) in [first, second].into_iter().zip(tokens) {
                assert_eq!(gateway.release(resource, &token).await.status, 204);
            }
        }
    };
    tokio::join!(rounds("a", "b"), rounds("b", "a"), rounds("a", "b"));
}

#[tokio::test]
async fn an_acquire_of_several_that_is_sent_again_finds_its_leases() {
    let gateway = Gateway::start().await;
    let asked = json!({ "resources": ["a", "b"], "ttl_ms": 60_000 });
    let key = "9b6c5f0e-2d4a-4c1f-8e7d-6c5b4a392817";
    let again = async || send(request(&gateway, &asked).header("idempotency-key", key)).await;
    let first = tokens(&again().await);
    assert_eq!(tokens(&again().await), first);
    acquire(&gateway, &asked)
        .await
        .assert_problem(409, "lock-held");
    for (resource, token) in ["a", "b"].into_iter().zip(first) {
        assert_eq!(gateway.release(resource, &token).await.status, 204);
    }
    again().await.assert_problem(409, "idempotency-key-spent");
}

/// What was taken is given back, and the key may ask for all of them again, with greater tokens.
#[tokio::test]
async fn a_key_of_several_is_good_for_another_try_when_one_was_held() {
    let gateway = Gateway::start().await;
    let other = gateway.token("b", 60_000).await;
    let asked = json!({ "resources": ["a", "b"], "ttl_ms": 60_000 });
    let key = "9b6c5f0e-2d4a-4c1f-8e7d-6c5b4a392818";
    let again =
        async |body: &Value| send(request(&gateway, body).header("idempotency-key", key)).await;
    let refused = again(&asked).await;
    refused.assert_problem(409, "lock-held");
    assert_eq!(refused.body["resource"], "b");
    // Somebody else has it meanwhile, so it was given back.
    let between = json!({ "ttl_ms": 60_000, "wait_ms": 30_000 });
    let between = gateway.acquire("a", between).await;
    let token = between.body["fencing_token"].as_str().unwrap();
    assert_eq!(gateway.release("a", token).await.status, 204);
    let less = json!({ "resources": ["a"], "ttl_ms": 60_000 });
    again(&less)
        .await
        .assert_problem(422, "idempotency-key-reused");

    assert_eq!(gateway.release("b", &other).await.status, 204);
    let granted = again(&asked).await;
    let both = tokens(&granted);
    let later = granted.body["leases"][0]["token"].as_u64();
    assert!(later > between.body["token"].as_u64(), "{granted:?}");
    assert_eq!(tokens(&again(&asked).await), both);
    for (resource, token) in ["a", "b"].into_iter().zip(both) {
        assert_eq!(gateway.release(resource, &token).await.status, 204);
    }
    again(&asked)
        .await
        .assert_problem(409, "idempotency-key-spent");
}

#[tokio::test]
async fn what_cannot_be_several_leases_is_refused() {
    let gateway = Gateway::start().await;
    let many: Vec<_> = (0..17).map(|number| format!("r{number}")).collect();
    for (resources, status, kind) in [
        (json!([]), 422, "request-unprocessable"),
        (json!(["a", "b", "a"]), 422, "request-unprocessable"),
        (json!(many), 422, "request-unprocessable"),
        (json!("a"), 422, "request-unprocessable"),
        (json!(["a", ""]), 400, "request-malformed"),
        (json!(["a b"]), 400, "request-malformed"),
    ] {
        let body = json!({ "resources": resources, "ttl_ms": 60_000 });
        let refused = acquire(&gateway, &body).await;
        refused.assert_problem(status, kind);
    }
    for (ttl_ms, wait_ms) in [(99, 0), (300_001, 0), (1000, 60_001)] {
        let body = json!({ "resources": ["a"], "ttl_ms": ttl_ms, "wait_ms": wait_ms });
        let refused = acquire(&gateway, &body).await;
        refused.assert_problem(422, "request-unprocessable");
    }
    assert!(!is_held(&gateway, "a").await);
}
