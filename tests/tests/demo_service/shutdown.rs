//! How the gateway ends.

use std::time::{Duration, Instant};

use reqwest::Method;
use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::gateway::{Gateway, send};

#[tokio::test]
async fn sigterm_sends_waiting_clients_away_and_ends_well() {
    let mut gateway = Gateway::start().await;
    gateway.token("r", 60_000).await;
    let body = json!({ "ttl_ms": 1000, "wait_ms": 60_000 });
    let request = gateway.request(Method::POST, "/v1/leases/r").json(&body);
    let waiting = send(request);
    let terminate = async {
        gateway.until_waiting("r", 1).await;
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
    assert_eq!(line, "terminated (SIGTERM): finishing requests under way");
    assert_eq!(gateway.process.finish().await.code(), Some(0));
}

/// The beginnings of a request that never becomes whole.
/// Catches: Ctrl-C that waits for clients which send nothing more.
#[tokio::test]
async fn half_a_request_does_not_delay_the_end() {
    let mut gateway = Gateway::start().await;
    let mut clients = Vec::new();
    for half in [
        "",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /heal",
    ] {
        let mut client = TcpStream::connect(gateway.addr()).await.unwrap();
        client.write_all(half.as_bytes()).await.unwrap();
        clients.push(client);
    }
    // Connections are accepted in their order. When this one has been answered, the earlier ones
    // have been accepted, too.
    assert_eq!(gateway.balance("1").await, None);
    let asked = Instant::now();
    kill_process(gateway.process.id(), Signal::INT).unwrap();
    assert_eq!(gateway.process.finish().await.code(), Some(0));
    assert!(
        asked.elapsed() < Duration::from_secs(10),
        "it waited for them"
    );
}

/// A request whose body is still on its way has begun, so it is read and answered.
/// Catches: an end that cuts off a request which has begun.
#[tokio::test]
async fn a_request_whose_body_is_on_its_way_is_still_answered() {
    let mut gateway = Gateway::start_with_unfenced_twins().await;
    let head = "PUT /v1/unfenced/accounts/1 HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
                content-type: application/json\r\ncontent-length: 13\r\n\r\n";
    let mut client = TcpStream::connect(gateway.addr()).await.unwrap();
    client.write_all(head.as_bytes()).await.unwrap();
    // The gateway asks for the body: now the request is under way.
    let mut go_on = [0; 25];
    client.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    kill_process(gateway.process.id(), Signal::TERM).unwrap();
    let line = gateway.process.line().await.unwrap();
    assert_eq!(line, "terminated (SIGTERM): finishing requests under way");
    client.write_all(b"{\"balance\":5}").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(gateway.process.finish().await.code(), Some(0));
}
