//! Bodies that are too long, and bodies of another media type than their header says.

use std::fs;

use reqwest::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, tcp::OwnedWriteHalf},
};

use crate::gateway::{Gateway, send};

const HUGE: usize = 64 << 20;

/// The most memory that the gateway has ever had, in kilobytes.
fn peak_memory(gateway: &Gateway) -> u64 {
    let path = format!("/proc/{}/status", gateway.process.id().as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.parse().unwrap()
}

/// Sends as many bytes as the other side takes.
async fn pour(to: &mut OwnedWriteHalf, prefix: &[u8], suffix: &[u8]) {
    let piece = [prefix, &vec![b' '; 1 << 16], suffix].concat();
    for _ in 0..HUGE >> 16 {
        if to.write_all(&piece).await.is_err() {
            return;
        }
    }
}

/// The body is really sent, with a length and without one.
#[tokio::test]
async fn a_body_of_64_mib_is_413_and_is_not_kept_in_memory() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let token = gateway.open_account().await;
    let before = peak_memory(&gateway);
    let length = format!("content-length: {HUGE}");
    let chunk = format!("{:x}\r\n", 1 << 16);
    for path in [
        "/v1/accounts/1",
        "/v1/unfenced/accounts/1",
        "/v1/leases/account:2",
    ] {
        let method = if path.contains("leases") {
            "POST"
        } else {
            "PUT"
        };
        for (length, prefix, suffix) in [
            (length.as_str(), "", ""),
            ("transfer-encoding: chunked", chunk.as_str(), "\r\n"),
        ] {
            let head = format!(
                "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                 fencing-token: {token}\r\n{length}\r\n\r\n"
            );
            let stream = TcpStream::connect(gateway.addr()).await.unwrap();
            let (mut from, mut to) = stream.into_split();
            to.write_all(head.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            // Bytes that are poured after the answer may make the other side reset the connection.
            let (_end, ()) = tokio::join!(
                from.read_to_end(&mut answer),
                pour(&mut to, prefix.as_bytes(), suffix.as_bytes())
            );
            let answer = String::from_utf8(answer).unwrap();
            let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 413 ");
            assert!(refused, "{method} {path} {length}: {answer}");
        }
    }
    let grown = peak_memory(&gateway) - before;
    assert!(grown < 16 << 10, "{grown} kB more than before");
    assert_eq!(gateway.balance("1").await, Some(5));
    let lease = send(gateway.request(Method::GET, "/v1/leases/account:2")).await;
    assert!(lease.body["lease"].is_null(), "{lease:?}");
}

/// 10 kB of gzip that unpacks to 10 MB. The gateway does not unpack it.
fn gzip_bomb() -> Vec<u8> {
    // A stored block would not be small. These are the bytes that `head -c 10M /dev/zero | gzip -9`
    // writes.
    let output = std::process::Command::new("sh")
        .args(["-c", "head -c 10485760 /dev/zero | gzip -9"])
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stdout.len() < 16 << 10,
        "{output:?}"
    );
    output.stdout
}

#[tokio::test]
async fn a_body_in_another_coding_or_charset_is_refused() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let token = gateway.open_account().await;
    let json = b"{\"balance\":666}".to_vec();
    let utf_16: Vec<u8> = json.iter().flat_map(|byte| [*byte, 0]).collect();
    let latin_1 = b"{\"balance\":666,\"note\":\"\xe4\"}".to_vec();
    let with_mark = [b"\xef\xbb\xbf", json.as_slice()].concat();
    for (coding, media_type, body) in [
        ("gzip", "application/json", gzip_bomb()),
        ("identity", "application/json; charset=utf-16", utf_16),
        ("identity", "application/json; charset=iso-8859-1", latin_1),
        ("identity", "application/json", with_mark),
        (
            "identity",
            "application/x-www-form-urlencoded",
            b"balance=666".to_vec(),
        ),
        ("identity", "application/jsonx", json.clone()),
        ("identity", "", json),
    ] {
        for path in ["/v1/accounts/1", "/v1/unfenced/accounts/1"] {
            let request = gateway
                .request(Method::PUT, path)
                .header("content-encoding", coding)
                .header("content-type", media_type)
                .header("fencing-token", &token)
                .body(body.clone());
            let answer = send(request).await;
            answer.assert_any_problem();
            let status = answer.status.as_u16();
            assert!(
                [400, 415, 422].contains(&status),
                "{coding} {media_type}: {answer:?}"
            );
        }
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}
