use std::net::Ipv4Addr;

use axum::{Router, body::Bytes, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    time::{Instant, sleep},
};

use super::*;
use crate::own_name::{HostNames, OwnNames};

/// The bytes that a connection buffers, and an answer that is longer than a slow client reads in
/// time.
const LITTLE: usize = 64 << 10;
const MUCH: usize = 1 << 20;

/// Connections to a long answer at `/much` and none at `/never`. They have no sockets, because the
/// kernel needs real time, and a paused clock would jump forward meanwhile.
fn connections() -> Connections {
    let much = Bytes::from(vec![0; MUCH]);
    let router = Router::new()
        .route("/much", get(async move || much.clone()))
        .route("/never", get(std::future::pending::<()>));
    let names = OwnNames::at(Ipv4Addr::LOCALHOST.into(), HostNames::default());
    Connections::new(
        Edge::new(router, names),
        Limits::default(),
        UnderWay::default(),
    )
}

/// Sends requests, one behind the other, on a new connection.
async fn ask(connections: &mut Connections, paths: &[&str]) -> DuplexStream {
    let (mut client, server) = duplex(LITTLE);
    connections.open(server, (), ());
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
    }
    client
}

/// Reads the beginning of an answer.
async fn head_of(client: &mut DuplexStream) {
    client.read_exact(&mut [0; 12]).await.unwrap();
}

/// Reads a part of the answer, again and again.
async fn sip(mut client: DuplexStream) {
    let mut part = vec![0; LITTLE];
    while client.read_exact(&mut part).await.is_ok() {
        sleep(Duration::from_secs(4)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_delays_the_end_by_20_seconds_and_makes_it_no_failure() {
    let mut connections = connections();
    let mut client = ask(&mut connections, &["/much", "/never", "/much"]).await;
    head_of(&mut client).await;
    let asked = Instant::now();
    let (ended, ()) = tokio::join!(
        async {
            let ended = connections.drain().await;
            assert_eq!(asked.elapsed(), DRAIN_TIME_MAX);
            ended
        },
        sip(client),
    );
    ended.unwrap();
}

/// Catches: an end that waits for ever, or calls a write that was cut off a success.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_done_in_20_seconds_makes_the_end_a_failure() {
    let mut connections = connections();
    let never = ask(&mut connections, &["/never"]).await;
    // This connection is accepted after the other one, whose request is under way by now.
    let mut much = ask(&mut connections, &["/much"]).await;
    head_of(&mut much).await;
    drop(much);
    let asked = Instant::now();
    let ended = connections.drain().await;
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(asked.elapsed(), DRAIN_TIME_MAX);
    drop(never);
}

/// Otherwise each client without a token could make a connection use much more memory than a body.
/// Catches: the default bound of the library, which is eight times as much.
#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_long_is_refused_early() {
    let mut connections = connections();
    for (length, expected) in [(HEAD_LEN_MAX - 1024, "200"), (HEAD_LEN_MAX + 1024, "431")] {
        let mut client = ask(&mut connections, &[]).await;
        let value = "x".repeat(length);
        let request = format!("GET /much HTTP/1.1\r\nhost: localhost\r\nx-long: {value}\r\n\r\n");
        // A write that fails has filled the buffer of a connection that is refused.
        let (_sent, mut head) = (client.write_all(request.as_bytes()).await, [0; 12]);
        client.read_exact(&mut head).await.unwrap();
        let head = String::from_utf8_lossy(&head);
        assert!(head.ends_with(expected), "{length}: {head}");
    }
}
