//! Spans for a collector of OpenTelemetry, in a binary with the feature `otel`.

use std::{process::Stdio, time::Duration};

use axum::{Router, body::Bytes, routing::post};
use e2e::warden::workspace_binary;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::TcpListener,
    process::Command,
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

const TRACE: [u8; 16] = *b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd\x84\x48\xeb\x21\x1c\x80\x31\x9c";
const PARENT: [u8; 8] = *b"\xb7\xad\x6b\x71\x69\x20\x33\x31";
const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The bodies that a collector gets by OTLP over HTTP, its URL, and its task.
async fn collector() -> (mpsc::UnboundedReceiver<Bytes>, String, JoinSet<()>) {
    let (send, received) = mpsc::unbounded_channel();
    let take = async move |body: Bytes| send.send(body).unwrap();
    let routes = Router::new().route("/v1/traces", post(take));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = JoinSet::from_iter([async move { axum::serve(listener, routes).await.unwrap() }]);
    (received, url, serving)
}

/// Catches: a trace that ends where the gateway begins.
#[tokio::test]
async fn a_request_is_part_of_the_trace_that_its_header_names() {
    let (mut received, collector, _serving) = collector().await;
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let mut gateway = Command::new(workspace_binary("palisade").unwrap())
        .args(["serve", "--addr=127.0.0.1:0", "--store", &store])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        .env("OTEL_BSP_SCHEDULE_DELAY", "50")
        .env("OTEL_SERVICE_NAME", "") // counts as unset
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut says = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let line = says.next_line().await.unwrap().unwrap();
    let url = line.split(' ').find(|word| word.starts_with("http://"));
    let lease = format!("{}/v1/leases/account:1", url.unwrap());
    let inspect = reqwest::Client::new().get(lease);
    inspect
        .header("traceparent", TRACEPARENT)
        .send()
        .await
        .unwrap();

    let has = |body: &Bytes, what: &[u8]| body.windows(what.len()).any(|bytes| bytes == what);
    let ours = async {
        loop {
            let body = received.recv().await.unwrap();
            if has(&body, &TRACE) {
                return body;
            }
        }
    };
    let spans = timeout(Duration::from_secs(20), ours).await.unwrap();
    assert!(has(&spans, &PARENT));
    for word in ["request", "/v1/leases/account:1", "palisade"] {
        assert!(has(&spans, word.as_bytes()), "{word}");
    }
    assert!(!has(&spans, b"unknown_service"));
}
