//! The routes of a gateway for operators.

use e2e::{observer::until, servers::Redis};
use reqwest::Method;
use serde_json::json;

use crate::gateway::{Answer, Gateway, send};

const ADMIN_TOKEN: &str = "0123456789abcdef";
const LEASES: &str = "/v1/admin/leases";

async fn gateway_with_operators(store: &tempfile::TempDir) -> Gateway {
    let store = format!("sqlite:{}", store.path().join("accounts.db").display());
    Gateway::start_with(&["--store", &store, "--admin-token", ADMIN_TOKEN]).await
}

/// Sends a request as an operator.
async fn ask(gateway: &Gateway, method: Method, path: &str) -> Answer {
    send(gateway.request(method, path).bearer_auth(ADMIN_TOKEN)).await
}

async fn get(gateway: &Gateway, path: &str) -> Answer {
    send(gateway.request(Method::GET, path)).await
}

#[tokio::test]
async fn only_operators_are_let_in_and_only_where_there_are_any() {
    let without = Gateway::start().await;
    let answer = ask(&without, Method::GET, LEASES).await;
    answer.assert_problem(404, "route-unknown");

    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway_with_operators(&folder).await;
    gateway.token("r", 60_000).await;
    for (method, path) in [
        (Method::GET, LEASES),
        (Method::DELETE, "/v1/admin/leases/r"),
    ] {
        let request = || gateway.request(method.clone(), path);
        let wrong = [
            request(),
            request().bearer_auth("0123456789abcdeF"),
            request().bearer_auth(""),
            request().basic_auth("admin", Some(ADMIN_TOKEN)),
        ];
        for request in wrong {
            let answer = send(request).await;
            answer.assert_problem(401, "not-authenticated");
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    let inspected = get(&gateway, "/v1/leases/r").await;
    assert!(inspected.body["lease"].is_object(), "{inspected:?}");
    // The name of a scheme may be in any case (RFC 9110, 11.1).
    for scheme in ["bearer", "BEARER ", "Bearer"] {
        let credentials = format!("{scheme} {ADMIN_TOKEN}");
        let request = gateway.request(Method::GET, LEASES);
        let answer = send(request.header("authorization", credentials)).await;
        assert_eq!(answer.status, 200, "{scheme}: {answer:?}");
    }
}

/// Catches: a lease that is ended while its token is still valid, or a list that shows the holder.
#[tokio::test]
async fn an_operator_sees_the_holders_and_shuts_one_out() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = gateway_with_operators(&folder).await;
    let body = json!({ "ttl_ms": 60_000, "metadata": "worker 7" });
    let granted = gateway.acquire("account:1", body).await;
    let token = granted.body["fencing_token"].as_str().unwrap();
    gateway.write("/v1/accounts/1", Some(token), 5).await;

    let listed = ask(&gateway, Method::GET, LEASES).await;
    let leases = listed.body["leases"].as_array().unwrap();
    assert_eq!(leases.len(), 1, "{listed:?}");
    assert_eq!(leases[0]["resource"], "account:1");
    assert_eq!(leases[0]["lease"]["token"], granted.body["token"]);
    assert_eq!(leases[0]["lease"]["metadata"], "worker 7");
    let holder = granted.body["holder"].as_str().unwrap();
    assert!(!listed.body.to_string().contains(holder), "{listed:?}");

    let ended = ask(&gateway, Method::DELETE, "/v1/admin/leases/account:1").await;
    assert_eq!(ended.body["released"], true, "{ended:?}");
    assert_eq!(ended.body["token"], granted.body["token"]);
    let refused = gateway.write("/v1/accounts/1", Some(token), 666).await;
    refused.assert_problem(412, "fencing-token-stale");
    assert_eq!(gateway.balance("1").await, Some(5));

    let again = ask(&gateway, Method::DELETE, "/v1/admin/leases/account:1").await;
    assert_eq!(again.body, json!({ "released": false }));
}

/// Catches: a recorder that is installed too late for the counters of the crates.
#[tokio::test]
async fn the_counters_of_the_crates_are_exported() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    // The task that forgets marks holds a lease of its own.
    let never = ["--forget-after", "never"];
    let arguments = [&["--lock", "memory:", "--store", &store][..], &never].concat();
    let gateway = Gateway::start_with(&arguments).await;
    gateway.token("r", 60_000).await;
    gateway.acquire("r", json!({ "ttl_ms": 1000 })).await;
    let metrics = gateway
        .request(Method::GET, "/metrics")
        .send()
        .await
        .unwrap();
    assert_eq!(
        metrics.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = metrics.text().await.unwrap();
    for line in [
        "# TYPE palisade_grants_total counter",
        "palisade_grants_total{backend=\"memory\"} 1",
        "palisade_acquire_timeouts_total{backend=\"memory\"} 1",
        "palisade_acquire_wait_seconds_bucket{backend=\"memory\",le=\"+Inf\"} 1",
        "palisade_store_refusals_total{reason=\"duplicate\"} 0",
    ] {
        assert!(
            text.lines().any(|it| it == line),
            "{line} is not in\n{text}"
        );
    }
}

#[tokio::test]
async fn a_gateway_without_its_lock_service_is_alive_and_not_ready() {
    let redis = Redis::start().await;
    let gateway = Gateway::start_on(redis.url()).await;
    let token = gateway.open_account().await;
    let ready = get(&gateway, "/readyz").await;
    assert_eq!(ready.status, 200, "{ready:?}");
    redis.kill().await;
    until("it knows", async || {
        get(&gateway, "/readyz").await.status == 503
    })
    .await;
    let mut ready = get(&gateway, "/readyz").await.body;
    let reasons = ready["reasons"].take();
    assert!(reasons[0].as_str().unwrap().contains("redis"), "{reasons}");
    let expected = json!({
        "lock_service": false, "store": true, "shutting_down": false, "reasons": null
    });
    assert_eq!(ready, expected);
    assert_eq!(get(&gateway, "/healthz").await.status, 200);
    // A holder of a lease goes on writing, because the store decides about it without the lock
    // service.
    let written = gateway.write("/v1/accounts/1", Some(&token), 6).await;
    assert_eq!(written.status, 200, "{written:?}");
    let acquire = gateway
        .acquire("account:2", json!({ "ttl_ms": 1000 }))
        .await;
    let renewal = gateway.renew("account:1", &token).await;
    for refused in [acquire, renewal] {
        refused.assert_problem(503, "lock-service-unavailable");
        assert_eq!(refused.headers["retry-after"], "1");
    }
}
