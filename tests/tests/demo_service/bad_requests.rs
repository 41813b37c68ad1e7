//! Every other wrong request: refused as the client's mistake, with nothing written.

use reqwest::{Method, RequestBuilder};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::gateway::{Gateway, send};

const JSON: &str = "application/json";

fn with_body(
    request: RequestBuilder,
    media_type: &str,
    body: impl Into<Vec<u8>>,
) -> RequestBuilder {
    request.header("content-type", media_type).body(body.into())
}

#[tokio::test]
async fn a_wrong_body_is_refused() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let token = gateway.token("account:1", 60_000).await;
    gateway.write("/v1/accounts/1", Some(&token), 5).await;
    let deep = format!("{{\"balance\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    for (status, media_type, body) in [
        (400, JSON, ""),
        (400, JSON, "{\"balance\":"),
        (400, JSON, "balance=5"),
        (422, JSON, deep.as_str()),
        (413, JSON, &" ".repeat(20_000)),
        (415, "text/plain", "{\"balance\":666}"),
        (422, JSON, "{}"),
        (422, JSON, "[]"),
        (422, JSON, "[666]"),
        (422, JSON, "{\"balance\":\"666\"}"),
        (422, JSON, "{\"balance\":666.0}"),
        (422, JSON, "{\"balance\":-1}"),
        (422, JSON, "{\"balance\":1000000000000000}"),
        (422, JSON, "{\"balance\":18446744073709551616}"),
        (422, JSON, "{\"balance\":666,\"balance\":666}"),
        (422, JSON, "{\"balance\":666,\"bonus\":1}"),
    ] {
        for path in ["/v1/accounts/1", "/v1/unfenced/accounts/1"] {
            let request = gateway
                .request(Method::PUT, path)
                .header("fencing-token", &token);
            let answer = send(with_body(request, media_type, body)).await;
            let shown = body.get(..60).unwrap_or(body);
            assert_eq!(answer.status, status, "{path} {shown:?}: {answer:?}");
            answer.assert_any_problem();
            if status == 415 {
                answer.assert_problem(415, "media-type-unsupported");
            }
        }
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}

#[tokio::test]
async fn a_wrong_request_for_a_lease_is_refused_and_nothing_is_held() {
    let gateway = Gateway::start().await;
    for (status, body) in [
        (400, ""),
        (400, "{"),
        (422, "{}"),
        (422, "{\"ttl_ms\":0}"),
        (422, "{\"ttl_ms\":99}"),
        (422, "{\"ttl_ms\":-1000}"),
        (422, "{\"ttl_ms\":300001}"),
        (422, "{\"ttl_ms\":315576000000}"),
        (422, "{\"ttl_ms\":1000.5}"),
        (422, "{\"ttl_ms\":\"1000\"}"),
        (422, "{\"ttl_ms\":null}"),
        (422, "{\"ttl_ms\":1000,\"wait_ms\":60001}"),
        (422, "{\"ttl_ms\":1000,\"wait_ms\":18446744073709551615}"),
        (422, "{\"ttl_ms\":1000,\"patience\":1}"),
        (422, "{\"ttl_ms\":1000,\"ttl_ms\":1000}"),
        (422, "[1000]"),
        (422, "[1000,0,\"a note\"]"),
        (422, "{\"ttl_ms\":1e300}"),
        (422, "{\"ttl_ms\":1000,\"metadata\":7}"),
        (400, "{\"ttl_ms\":1000,\"metadata\":\"\\ud800\"}"),
        (400, "{\"ttl_ms\":1000} {}"),
    ] {
        let request = gateway.request(Method::POST, "/v1/leases/r");
        let answer = send(with_body(request, JSON, body)).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        answer.assert_any_problem();
    }
    let note = "{\"ttl_ms\":1000,\"metadata\":\"two\\nlines\"}";
    let request = gateway.request(Method::POST, "/v1/leases/r");
    let answer = send(with_body(request, JSON, note)).await;
    let detail = answer.body["detail"].as_str().unwrap_or_default();
    assert_eq!(answer.status, 422, "{answer:?}");
    assert!(detail.contains("control characters"), "{answer:?}");
    let seen = send(gateway.request(Method::GET, "/v1/leases/r")).await;
    assert!(seen.body["lease"].is_null(), "{seen:?}");
}

#[tokio::test]
async fn a_wrong_name_is_refused() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let long = "x".repeat(300);
    let huge = "x".repeat(10_000);
    for (status, name) in [
        (404, ""),
        (400, "%00"),
        (400, "%ff"),
        (400, "%F0%9F%A6%80"),
        (400, "a%20b"),
        (400, "%22"),
        (400, long.as_str()),
        (400, huge.as_str()),
        (404, "a/b"),
    ] {
        for path in ["/v1/accounts/", "/v1/unfenced/accounts/", "/v1/leases/"] {
            let answer = send(gateway.request(Method::GET, &format!("{path}{name}"))).await;
            assert_eq!(answer.status, status, "{path}{name}: {answer:?}");
            answer.assert_any_problem();
        }
    }
    // Legal as the name of a lease, but not as the id of an account.
    for name in [
        "%2F",
        "'%3B%20DROP%20TABLE%20demo_accounts",
        "%7Btag%7D",
        "a%3Bb",
    ] {
        let answer = send(gateway.request(Method::GET, &format!("/v1/accounts/{name}"))).await;
        answer.assert_problem(400, "request-malformed");
    }
    for name in ["%2F", "%7Btag%7D", "a%3Bb=c", "'%3B--"] {
        let answer = send(gateway.request(Method::GET, &format!("/v1/leases/{name}"))).await;
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
    }
}

/// Sends bytes, and returns what comes back until the other side closes.
async fn raw(gateway: &Gateway, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn broken_http_neither_writes_nor_hurts() {
    let gateway = Gateway::start().await;
    let token = gateway.token("account:1", 60_000).await;
    gateway.write("/v1/accounts/1", Some(&token), 5).await;
    let put = |headers: &str, body: &str| {
        format!(
            "PUT /v1/accounts/1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: {JSON}\r\n\
             fencing-token: {token}\r\n{headers}\r\n\r\n{body}"
        )
    };
    for request in [
        put("content-length: 100", "{\"balance\":666}"),
        put("content-length: abc", "{\"balance\":666}"),
        put(
            "content-length: 15\r\ncontent-length: 16",
            "{\"balance\":666}",
        ),
        put("transfer-encoding: chunked", "f\r\n{\"balance\":666}\r\n"),
        put(
            "transfer-encoding: chunked",
            "zz\r\n{\"balance\":666}\r\n0\r\n\r\n",
        ),
        put("content-length: 15\r\nbad header: x", "{\"balance\":666}"),
        put("content-length: 15\r\nx: \0", "{\"balance\":666}"),
        put("content-length: 15", "{\"balance\":666}").replacen("hld=\"", "hld=\"\0", 1),
        put("content-length: 15", "{\"balance\":666}").replacen("/accounts/1", "/accounts/..", 1),
        put("content-length: 15", "{\"balance\":666}").replacen(
            "/accounts/1",
            "/accounts/%2e%2e",
            1,
        ),
        put("content-length: 15", "{\"balance\":666}").replacen("/1 HTTP", "/1/../1 HTTP", 1),
        put("content-length: 15", "{\"balance\":666}").replacen("HTTP/1.1", "HTTP/9.9", 1),
        put("content-length: 15", "{\"balance\":666}").replacen("/accounts/1", "/accounts/1 x", 1),
        put("content-length: 15", "{\"balance\":666}").replacen(
            "/accounts/1",
            &format!("/accounts/1?{}", "q".repeat(100_000)),
            1,
        ),
        put(
            &format!("x: {}\r\ncontent-length: 15", "h".repeat(1 << 20)),
            "{\"balance\":666}",
        ),
        put(
            &format!("{}content-length: 15", "x: y\r\n".repeat(1000)),
            "{\"balance\":666}",
        ),
        put("content-length: 15", "{\"balance\":666}").replacen("/v1/accounts/1", "*", 1),
        "OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        "CONNECT x:1 HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        // This is the beginning of HTTP/2, which the gateway does not speak.
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\0\0\0\0\r\n\r\n".to_owned(),
    ] {
        let answer = raw(&gateway, request.as_bytes()).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 4");
        assert!(refused, "{request:?}: {answer}");
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}
