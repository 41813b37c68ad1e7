use std::net::SocketAddr;

use axum::{body::Bytes, routing::get};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::{Instant, sleep},
};

use super::*;

/// More than all that operating systems keep for a connection, and one part of it.
const MUCH: usize = 64 << 20;
const LITTLE: usize = 4 << 20;

/// Serves a long answer at `/much` and none at `/never`, with what closes it and what it comes to.
async fn serving() -> (
    SocketAddr,
    watch::Sender<bool>,
    impl Future<Output = io::Result<()>>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let much = Bytes::from(vec![0; MUCH]);
    let router = Router::new()
        .route("/much", get(async move || much.clone()))
        .route("/never", get(std::future::pending::<()>));
    let (closing, is_closing) = watch::channel(false);
    (addr, closing, serve(listener, router, is_closing, 100))
}

/// Sends requests one behind the other, and reads nothing.
async fn ask(addr: SocketAddr, paths: &[&str]) -> TcpStream {
    let mut client = TcpStream::connect(addr).await.unwrap();
    for path in paths {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
    }
    client
}

/// Reads a part of the answer, and goes on to do so now and then.
async fn sip(mut client: TcpStream) {
    let mut part = vec![0; LITTLE];
    while client.read_exact(&mut part).await.is_ok() {
        sleep(Duration::from_secs(4)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_reads_too_slowly_delays_the_end_by_20_seconds_and_makes_it_no_failure() {
    let (addr, closing, serving) = serving().await;
    let ending = async {
        let mut client = ask(addr, &["/much", "/never", "/much"]).await;
        client.read_exact(&mut [0; 12]).await.unwrap();
        closing.send_replace(true);
        let asked = Instant::now();
        sip(client).await;
        asked.elapsed()
    };
    let (ended, took) = tokio::join!(serving, ending);
    ended.unwrap();
    assert!((20..25).contains(&took.as_secs()), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_done_in_20_seconds_makes_the_end_a_failure() {
    let (addr, closing, serving) = serving().await;
    let ending = async {
        let mut much = ask(addr, &["/much"]).await;
        much.read_exact(&mut [0; 12]).await.unwrap();
        // Accepted before that one, so it is under way.
        closing.send_replace(true);
        Instant::now()
    };
    let never = ask(addr, &["/never"]).await;
    let (ended, asked) = tokio::join!(serving, ending);
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(asked.elapsed(), DRAIN_TIME_MAX);
    drop(never);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_within_20_seconds_is_whole() {
    let (addr, closing, serving) = serving().await;
    let ending = async {
        let mut client = ask(addr, &["/much"]).await;
        let mut head = [0; 12];
        client.read_exact(&mut head).await.unwrap();
        closing.send_replace(true);
        sleep(Duration::from_secs(10)).await;
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert!(rest.len() > MUCH, "{} bytes", rest.len());
    };
    let (ended, ()) = tokio::join!(serving, ending);
    ended.unwrap();
}
