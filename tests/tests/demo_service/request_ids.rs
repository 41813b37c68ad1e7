//! `X-Request-Id`: in the answer, and in every line of the log that is about the request.

use reqwest::Method;
use serde_json::{Value, json};

use crate::gateway::{Answer, Gateway, send};

fn id(answer: &Answer) -> &str {
    let mut ids = answer.headers.get_all("x-request-id").iter();
    let id = ids.next().unwrap().to_str().unwrap();
    assert!(ids.next().is_none(), "{answer:?}");
    id
}

async fn with_id(gateway: &Gateway, path: &str, id: &str) -> Answer {
    send(
        gateway
            .request(Method::GET, path)
            .header("x-request-id", id),
    )
    .await
}

/// Catches: an answer without an id, or with one that the client made up to forge a log.
#[tokio::test]
async fn a_request_keeps_its_id_and_one_without_gets_one() {
    let gateway = Gateway::start().await;
    for path in ["/healthz", "/v1/accounts/1", "/nowhere", "/v1/leases/%00"] {
        assert_eq!(
            id(&with_id(&gateway, path, "abc-1").await),
            "abc-1",
            "{path}"
        );
        let one = send(gateway.request(Method::GET, path)).await;
        let other = send(gateway.request(Method::GET, path)).await;
        assert_eq!(id(&one).len(), 36, "{path}: {one:?}");
        assert_ne!(id(&one), id(&other));
    }
    assert_eq!(id(&with_id(&gateway, "/healthz", "a b").await).len(), 36);
}

/// The lines of the log about one request, as JSON.
fn lines_of(log: &str, id: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    });
    lines
        .filter(|line| line["span"]["request_id"] == id)
        .collect()
}

/// Catches: a failure in a task of its own that does not name its request.
#[tokio::test]
async fn every_line_of_a_request_has_its_id() {
    let database = e2e::servers::postgres_database().await;
    let arguments = [
        "--store",
        database.url(),
        "--log-format",
        "json",
        "--log",
        "info,palisade=debug",
    ];
    let gateway = Gateway::start_with_log(&arguments).await;
    let token = gateway.token("account:1", 60_000).await;
    assert_eq!(
        with_id(&gateway, "/v1/accounts/1", "quiet-1").await.status,
        404
    );
    // A write that fails in a task of its own, with a reason for the operator only.
    use sqlx::{Connection, Executor};
    let mut connection = sqlx::PgConnection::connect(database.url()).await.unwrap();
    connection
        .execute("ALTER TABLE demo_accounts RENAME TO elsewhere")
        .await
        .unwrap();
    let write = gateway
        .request(Method::PUT, "/v1/accounts/1")
        .header("x-request-id", "broken-1")
        .header("fencing-token", &token)
        .json(&json!({ "balance": 1 }));
    send(write)
        .await
        .assert_problem(500, "fencing-service-fault");

    let log = gateway.logged("\"status\":500").await;
    let quiet = lines_of(&log, "quiet-1");
    assert_eq!(quiet.len(), 1, "{log}");
    assert_eq!(quiet[0]["status"], 404);
    assert_eq!(quiet[0]["span"]["path"], "/v1/accounts/1");
    let broken = lines_of(&log, "broken-1");
    let reason = broken.iter().find(|line| line["level"] == "ERROR");
    let reason = reason.unwrap_or_else(|| panic!("the reason is not told: {log}"));
    assert!(reason.to_string().contains("demo_accounts"), "{reason}");
    let holder = token.split("hld=\"").nth(1).unwrap().get(..32).unwrap();
    assert!(!log.contains(holder), "the holder is a secret: {log}");
}
