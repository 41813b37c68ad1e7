//! A service mounts the router beside an endpoint of its own, without the server of the gateway.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{Request, StatusCode, request::Builder},
    routing::put,
};
use fenced_http::{Fenced, FencingLayer, Scope};
use fenced_store::{FencedLocks, SqliteFencedStore};
use palisade_gateway::{Gateway, KeyTable, Setup};
use serde_json::Value;
use sqlx::{Executor, Sqlite, SqlitePool, sqlite::SqliteConnectOptions};
use tower_service::Service;

async fn ask(router: &mut Router, request: Builder, body: &str) -> (StatusCode, Value) {
    let request = request.header("content-type", "application/json");
    let request = request.body(Body::from(body.to_owned())).unwrap();
    let answer = router.call(request).await.unwrap();
    let status = answer.status();
    let body = to_bytes(answer.into_body(), 1 << 16).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap_or_default())
}

/// Catches: a handler that needs an extension of the request that only the server of the gateway
/// adds.
#[tokio::test]
async fn a_service_that_mounts_the_router_is_guarded_by_its_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConnectOptions::new()
        .filename(folder.path().join("store.db"))
        .create_if_missing(true);
    let pool = SqlitePool::connect_with(file).await.unwrap();
    pool.execute(<Sqlite as KeyTable>::CREATE).await.unwrap();
    let store = SqliteFencedStore::new(pool);
    store.migrate().await.unwrap();
    let locks = palisade::connect("memory:").await.unwrap();
    let gateway = Gateway::new(FencedLocks::new(locks, store), Setup::default());

    let scope = Scope::path("/reports/", "report:");
    let ours = put(async |fenced: Fenced| fenced.token().to_string())
        .route_layer(FencingLayer::required(gateway.tokens(), scope));
    let mut service = gateway.router().route("/reports/{id}", ours);

    let acquire =
        Request::post("/v1/leases/report:1").header("idempotency-key", "0123456789abcdef");
    let (status, lease) = ask(&mut service, acquire, r#"{"ttl_ms": 60000}"#).await;
    assert_eq!(status, StatusCode::CREATED, "{lease}");
    let (status, _) = ask(&mut service, Request::put("/reports/1"), "").await;
    assert_eq!(status, StatusCode::PRECONDITION_REQUIRED);
    let token = lease["fencing_token"].as_str().unwrap();
    let write = Request::put("/reports/1").header("fencing-token", token);
    let (status, told) = ask(&mut service, write, "").await;
    assert_eq!((status, told), (StatusCode::OK, lease["token"].clone()));
}
