//! `/v1/jobs/{id}/{slot}` and its unfenced twin.

use reqwest::{Method, StatusCode, header::CONTENT_TYPE};
use serde_json::json;

use crate::gateway::{Answer, Gateway, send};

const SLOT: &str = "2026-11-27T02:00:00Z";

async fn run(gateway: &Gateway, base: &str, slot: &str, token: Option<&str>, body: &str) -> Answer {
    let request = gateway.request(Method::PUT, &format!("{base}/1/{slot}"));
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = request.body(body.to_owned());
    send(match token {
        Some(token) => request.header("Fencing-Token", token),
        None => request,
    })
    .await
}

/// A later holder of the job finds it done, and the former holder is refused. The unfenced twin
/// does the job again and again.
/// Catches: progress outside of the fenced transaction, or a slot that is not compared.
#[tokio::test]
async fn a_job_is_done_once_for_a_slot() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let add = r#"{"add": 5}"#;
    let stale = gateway.token("job:1", 60_000).await;
    gateway.release("job:1", &stale).await;
    let current = gateway.token("job:1", 60_000).await;
    for ran in [true, false] {
        let done = run(&gateway, "/v1/jobs", SLOT, Some(&current), add).await;
        assert_eq!(done.status, StatusCode::OK, "{done:?}");
        assert_eq!(done.body, json!({ "ran": ran, "balance": 5 }));
        assert!(done.headers.contains_key("fencing-accepted"));
    }
    let other_slot = run(&gateway, "/v1/jobs", "invoice-7", Some(&current), add).await;
    assert_eq!(other_slot.body, json!({ "ran": true, "balance": 10 }));
    let late = run(&gateway, "/v1/jobs", "later", Some(&stale), add).await;
    late.assert_problem(412, "fencing-token-stale");
    assert_eq!(gateway.balance("1").await, Some(10));
    let unfenced = run(&gateway, "/v1/unfenced/jobs", SLOT, Some(&stale), add).await;
    assert_eq!(unfenced.body, json!({ "ran": true, "balance": 15 }));
}

/// Catches: a slot that counts as done although its work failed.
#[tokio::test]
async fn bad_requests_for_jobs_are_problems() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let token = gateway.token("job:1", 60_000).await;
    let other = gateway.token("account:1", 60_000).await;
    let add = r#"{"add": 5}"#;
    for (slot, token, body, status, problem) in [
        (SLOT, None, add, 428, "fencing-token-required"),
        (SLOT, Some(&other), add, 403, "fencing-token-wrong-resource"),
        (
            SLOT,
            Some(&token),
            r#"{"add": -1}"#,
            422,
            "request-unprocessable",
        ),
        (
            SLOT,
            Some(&token),
            r#"{"take": 1}"#,
            422,
            "request-unprocessable",
        ),
        ("a%20b", Some(&token), add, 400, "request-malformed"),
    ] {
        let told = run(&gateway, "/v1/jobs", slot, token.map(String::as_str), body).await;
        told.assert_problem(status, problem);
    }
    assert_eq!(gateway.balance("1").await, None);

    // The amount is more than an account holds, so the slot stays due.
    let all = r#"{"add": 999999999999999}"#;
    for (base, token) in [("/v1/jobs", Some(&token)), ("/v1/unfenced/jobs", None)] {
        let token = token.map(String::as_str);
        run(&gateway, base, "first", token, add).await;
        let told = run(&gateway, base, "second", token, all).await;
        told.assert_problem(422, "request-unprocessable");
        let told = run(&gateway, base, "second", token, add).await;
        assert_eq!(told.body["ran"], true, "{told:?}");
    }
    assert_eq!(gateway.balance("1").await, Some(20));
}
