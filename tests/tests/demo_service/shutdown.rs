//! How the gateway ends.

use reqwest::Method;
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::gateway::{Gateway, send};

#[tokio::test]
async fn sigterm_sends_waiting_clients_away_and_ends_well() {
    let mut gateway = Gateway::start().await;
    gateway.token("r", 60_000).await;
    let body = json!({ "ttl_ms": 1000, "wait_ms": 60_000 });
    let request = gateway.request(Method::POST, "/v1/leases/r").json(&body);
    let waiting = send(request);
    let terminate = async {
        // Connections are served in their order: when these have been answered, the request that
        // waits has long been read.
        for id in ["1", "2", "3"] {
            assert_eq!(gateway.balance(id).await, None);
        }
        kill_process(gateway.process.id(), Signal::TERM).unwrap();
    };
    let (answer, ()) = tokio::join!(waiting, terminate);
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(
        answer.body["type"],
        "urn:palisade:problem:lock-service-unavailable"
    );
    assert!(answer.headers.contains_key("retry-after"));
    let line = gateway.process.line().await.unwrap();
    assert_eq!(line, "terminated (SIGTERM): finishing what is under way");
    assert_eq!(gateway.process.finish().await.code(), Some(0));
}

#[tokio::test]
async fn ctrl_c_ends_an_idle_gateway_at_once() {
    let mut gateway = Gateway::start().await;
    assert_eq!(gateway.balance("1").await, None); // and leaves a connection open
    kill_process(gateway.process.id(), Signal::INT).unwrap();
    assert_eq!(gateway.process.finish().await.code(), Some(0));
}
