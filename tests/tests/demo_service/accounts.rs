//! `/v1/accounts/{id}` and its unfenced twin.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::gateway::{Gateway, send};

const FENCED: &str = "/v1/accounts/1";
const UNFENCED: &str = "/v1/unfenced/accounts/1";

/// Two tokens of one account: the second has overtaken the first.
async fn stale_and_current(gateway: &Gateway) -> (String, String) {
    let stale = gateway.token("account:1", 60_000).await;
    gateway.release("account:1", &stale).await;
    (stale, gateway.token("account:1", 60_000).await)
}

#[tokio::test]
async fn a_stale_token_is_refused_and_changes_nothing() {
    let gateway = Gateway::start().await;
    let (stale, current) = stale_and_current(&gateway).await;
    let written = gateway.write(FENCED, Some(&current), 5).await;
    assert_eq!(written.status, StatusCode::OK, "{written:?}");
    let number = current.split(';').next().unwrap();
    assert_eq!(written.headers["fencing-accepted"], number);
    assert_eq!(written.body, json!({ "id": "1", "balance": 5 }));

    let refused = gateway.write(FENCED, Some(&stale), 666).await;
    refused.assert_problem(412, "fencing-token-stale");
    assert!(refused.headers.contains_key("fencing-high-water"));
    assert!(!refused.headers.contains_key("fencing-accepted"));
    assert_eq!(gateway.balance("1").await, Some(5));
    let written = gateway.write(FENCED, Some(&current), 6).await;
    assert_eq!(
        written.status,
        StatusCode::OK,
        "the refusal disturbed the holder: {written:?}"
    );
}

#[tokio::test]
async fn an_account_that_was_never_opened_is_unknown() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    for path in [FENCED, UNFENCED] {
        let unknown = send(gateway.request(Method::GET, path)).await;
        unknown.assert_problem(404, "account-unknown");
        assert_eq!(unknown.body["id"], "1");
    }
}

/// Catches: a read that looks at no token, or a cache that gives its answer to another client.
#[tokio::test]
async fn a_stale_read_with_a_token_is_refused_too() {
    let gateway = Gateway::start().await;
    let (stale, current) = stale_and_current(&gateway).await;
    gateway.write(FENCED, Some(&current), 5).await;
    let read = async |method, token: &str| {
        let request = gateway.request(method, FENCED);
        send(request.header("fencing-token", token)).await
    };
    let head = read(Method::HEAD, &current).await;
    let current = read(Method::GET, &current).await;
    assert_eq!(
        (head.status, current.status),
        (StatusCode::OK, StatusCode::OK)
    );
    assert_eq!(current.body["balance"], 5);
    assert!(current.headers.contains_key("fencing-accepted"));
    // No cache gives that answer to another client.
    assert_eq!(current.headers["cache-control"], "no-store");
    assert_eq!(current.headers["vary"], "fencing-token");
    let head = read(Method::HEAD, &stale).await;
    assert_eq!(head.status, StatusCode::PRECONDITION_FAILED);
    let refused = read(Method::GET, &stale).await;
    refused.assert_problem(412, "fencing-token-stale");
}

#[tokio::test]
async fn a_token_of_another_resource_is_refused() {
    let gateway = Gateway::start().await;
    let other = gateway.token("account:2", 60_000).await;
    let refused = gateway.write(FENCED, Some(&other), 5).await;
    refused.assert_problem(403, "fencing-token-wrong-resource");
    let disguised = gateway.write("/v1/accounts/%31", Some(&other), 5).await;
    disguised.assert_problem(403, "fencing-token-wrong-resource");
    // The answer shows the id as it was understood, not as it was written.
    for answer in [refused, disguised] {
        assert_eq!(answer.body["token_resource"], "account:2");
        assert_eq!(answer.body["request_resource"], "account:1");
    }
    assert_eq!(gateway.balance("1").await, None);
}

#[tokio::test]
async fn a_token_that_was_never_claimed_is_refused() {
    let gateway = Gateway::start_unsigned().await;
    let token = gateway.token("account:1", 60_000).await;
    let (number, rest) = token.split_once(';').unwrap();
    let ahead = format!("{};{rest}", number.parse::<u64>().unwrap() + 1);
    let refused = gateway.write(FENCED, Some(&ahead), 5).await;
    refused.assert_problem(412, "fencing-token-not-claimed");
    let forged = format!(
        "{number};res=\"account:1\";iss=\"sqlite\";hld=\"{:032x}\"",
        1
    );
    let refused = gateway.write(FENCED, Some(&forged), 5).await;
    refused.assert_problem(409, "fencing-token-holder-conflict");
    assert_eq!(gateway.balance("1").await, None);
}

#[tokio::test]
async fn the_refusal_of_a_write_without_a_token_says_what_is_missing() {
    let gateway = Gateway::start().await;
    let refused = gateway.write(FENCED, None, 5).await;
    refused.assert_problem(428, "fencing-token-required");
    assert_eq!(gateway.balance("1").await, None);
}
