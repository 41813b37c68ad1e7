//! `/v1/accounts/{id}/transfers`: one transaction, two fences.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::gateway::{Gateway, send};

const TRANSFERS: &str = "/v1/accounts/1/transfers";

/// Accounts 1 and 2 with 100 each, and the tokens of both.
async fn two_accounts(gateway: &Gateway) -> (String, String) {
    let mut tokens = Vec::new();
    for id in ["1", "2"] {
        let token = gateway.token(&format!("account:{id}"), 60_000).await;
        let path = format!("/v1/accounts/{id}");
        let written = gateway.write(&path, Some(&token), 100).await;
        assert_eq!(written.status, 200, "{written:?}");
        tokens.push(token);
    }
    (tokens[0].clone(), tokens[1].clone())
}

fn transfer(gateway: &Gateway, from: &str, to: &str, body: Value) -> RequestBuilder {
    gateway
        .request(Method::POST, TRANSFERS)
        .header("fencing-token", from)
        .header("fencing-token-to", to)
        .json(&body)
}

async fn balances(gateway: &Gateway) -> [Option<i64>; 2] {
    [gateway.balance("1").await, gateway.balance("2").await]
}

#[tokio::test]
async fn a_transfer_is_made_under_both_fences() {
    let gateway = Gateway::start().await;
    let (from, to) = two_accounts(&gateway).await;
    let made = send(transfer(
        &gateway,
        &from,
        &to,
        json!({ "to": "2", "amount": 30 }),
    ))
    .await;
    assert_eq!(made.status, 200, "{made:?}");
    let number = from.split(';').next().unwrap();
    assert_eq!(made.headers["fencing-accepted"], number);
    let accounts = json!({
        "from": { "id": "1", "balance": 70 },
        "to": { "id": "2", "balance": 130 },
    });
    assert_eq!(made.body, accounts);
    assert_eq!(balances(&gateway).await, [Some(70), Some(130)]);
}

#[tokio::test]
async fn either_stale_token_is_named_and_nothing_is_moved() {
    let gateway = Gateway::start().await;
    let (from, to) = two_accounts(&gateway).await;
    gateway.release("account:1", &from).await;
    gateway.release("account:2", &to).await;
    let newer_from = gateway.token("account:1", 60_000).await;
    let newer_to = gateway.token("account:2", 60_000).await;
    for (from, to, stale) in [
        (&from, &newer_to, "account:1"),
        (&newer_from, &to, "account:2"),
    ] {
        let body = json!({ "to": "2", "amount": 30 });
        let refused = send(transfer(&gateway, from, to, body)).await;
        refused.assert_problem(412, "fencing-token-stale");
        assert_eq!(refused.body["resource"], stale);
        assert!(refused.headers.contains_key("fencing-high-water"));
        assert!(!refused.headers.contains_key("fencing-accepted"));
    }
    assert_eq!(balances(&gateway).await, [Some(100), Some(100)]);
    let body = json!({ "to": "2", "amount": 30 });
    let made = send(transfer(&gateway, &newer_from, &newer_to, body)).await;
    assert_eq!(made.status, 200, "{made:?}");
}

/// As strictly as the first: missing, twice, malformed, forged, of another account.
#[tokio::test]
async fn the_second_token_is_looked_at_as_the_first() {
    let gateway = Gateway::start().await;
    let (from, to) = two_accounts(&gateway).await;
    let body = json!({ "to": "2", "amount": 30 });
    let without = gateway
        .request(Method::POST, TRANSFERS)
        .header("fencing-token", &from)
        .json(&body);
    let missing = send(without).await;
    missing.assert_problem(428, "fencing-token-required");
    assert_eq!(missing.body["header"], "fencing-token-to");
    let forged = to.replacen(|digit: char| digit.is_ascii_digit(), "9", 1);
    for (second, status, kind) in [
        ("34", 400, "fencing-token-malformed"),
        (forged.as_str(), 403, "fencing-token-not-accepted"),
        (from.as_str(), 403, "fencing-token-wrong-resource"),
    ] {
        let refused = send(transfer(&gateway, &from, second, body.clone())).await;
        refused.assert_problem(status, kind);
        assert_eq!(refused.body["header"], "fencing-token-to");
        if kind.ends_with("wrong-resource") {
            let named = [
                &refused.body["token_resource"],
                &refused.body["request_resource"],
            ];
            assert_eq!(named, ["account:1", "account:2"]);
        }
    }
    let twice = transfer(&gateway, &from, &to, body.clone()).header("fencing-token-to", &to);
    send(twice)
        .await
        .assert_problem(400, "fencing-token-malformed");
    // And the first is the one of the path.
    send(transfer(&gateway, &to, &to, body))
        .await
        .assert_problem(403, "fencing-token-wrong-resource");
    assert_eq!(balances(&gateway).await, [Some(100), Some(100)]);
}

#[tokio::test]
async fn what_cannot_be_transferred_is_not() {
    let gateway = Gateway::start().await;
    let (from, to) = two_accounts(&gateway).await;
    gateway
        .write("/v1/unfenced/accounts/2", None, 999_999_999_999_950)
        .await;
    for (body, status, kind) in [
        (
            json!({ "to": "2", "amount": 101 }),
            409,
            "balance-out-of-range",
        ),
        (
            json!({ "to": "2", "amount": 60 }),
            409,
            "balance-out-of-range",
        ),
        (
            json!({ "to": "2", "amount": 0 }),
            422,
            "request-unprocessable",
        ),
        (
            json!({ "to": "2", "amount": -1 }),
            422,
            "request-unprocessable",
        ),
        (
            json!({ "to": "2", "amount": i64::MIN }),
            422,
            "request-unprocessable",
        ),
        (
            json!({ "to": "2", "amount": 1.5 }),
            422,
            "request-unprocessable",
        ),
        (
            json!({ "to": "1", "amount": 1 }),
            422,
            "request-unprocessable",
        ),
        (
            json!({ "to": "a b", "amount": 1 }),
            400,
            "request-malformed",
        ),
        (json!({ "amount": 1 }), 422, "request-unprocessable"),
    ] {
        let refused = send(transfer(&gateway, &from, &to, body)).await;
        refused.assert_problem(status, kind);
    }
    let unopened = gateway.token("account:3", 60_000).await;
    let body = json!({ "to": "3", "amount": 1 });
    let refused = send(transfer(&gateway, &from, &unopened, body)).await;
    refused.assert_problem(404, "account-unknown");
    assert_eq!(refused.body["id"], "3");
    let untouched = [Some(100), Some(999_999_999_999_950)];
    assert_eq!(balances(&gateway).await, untouched);
}

/// The twin: one transaction too, and a client whose leases have ended gets in.
#[tokio::test]
async fn an_unfenced_transfer_is_made_by_whoever_asks() {
    let gateway = Gateway::start().await;
    let (from, to) = two_accounts(&gateway).await;
    gateway.release("account:1", &from).await;
    gateway.release("account:2", &to).await;
    gateway.token("account:1", 60_000).await;
    let body = json!({ "to": "2", "amount": 30 });
    let refused = send(transfer(&gateway, &from, &to, body.clone())).await;
    refused.assert_problem(412, "fencing-token-stale");
    let unfenced = |body: &Value| {
        let path = "/v1/unfenced/accounts/1/transfers";
        gateway.request(Method::POST, path).json(body)
    };
    let made = send(unfenced(&body)).await;
    assert_eq!(made.status, 200, "{made:?}");
    assert!(!made.headers.contains_key("fencing-accepted"));
    assert_eq!(made.body["to"], json!({ "id": "2", "balance": 130 }));
    for (body, status, kind) in [
        (
            json!({ "to": "2", "amount": 71 }),
            409,
            "balance-out-of-range",
        ),
        (json!({ "to": "3", "amount": 1 }), 404, "account-unknown"),
        (
            json!({ "to": "1", "amount": 1 }),
            422,
            "request-unprocessable",
        ),
    ] {
        send(unfenced(&body)).await.assert_problem(status, kind);
    }
    assert_eq!(balances(&gateway).await, [Some(70), Some(130)]);
}

/// Many at once, there and back, by the holder of both: no money is made or lost, and none of them
/// waits for another in a circle.
#[tokio::test]
async fn transfers_there_and_back_at_once_keep_the_sum() {
    let database = e2e::servers::postgres_database().await;
    let gateway = Gateway::start_with(&["--store", database.url()]).await;
    let (one, two) = two_accounts(&gateway).await;
    let back = |amount: i64| {
        gateway
            .request(Method::POST, "/v1/accounts/2/transfers")
            .header("fencing-token", &two)
            .header("fencing-token-to", &one)
            .json(&json!({ "to": "1", "amount": amount }))
    };
    let transfers = (1..=20).flat_map(|_| {
        let there = transfer(&gateway, &one, &two, json!({ "to": "2", "amount": 3 }));
        [send(there), send(back(2))]
    });
    for made in futures_util::future::join_all(transfers).await {
        assert_eq!(made.status, 200, "{made:?}");
    }
    assert_eq!(balances(&gateway).await, [Some(80), Some(120)]);
}
