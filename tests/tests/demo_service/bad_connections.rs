//! Clients that hold on to connections: the gateway closes these, and serves other clients as
//! before.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{interval, timeout},
};

use crate::gateway::{Gateway, send};

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(100);

/// Opens a connection and sends these bytes.
async fn open(gateway: &Gateway, beginning: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
    stream.write_all(beginning.as_bytes()).await.unwrap();
    stream
}

/// Sends the same bytes again and again until the other side closes, and returns its answer.
async fn drip(stream: TcpStream, drop: &[u8], every: Duration) -> String {
    let (mut from, mut to) = stream.into_split();
    let dripping = async {
        let mut ticks = interval(every);
        loop {
            ticks.tick().await;
            if to.write_all(drop).await.is_err() {
                break;
            }
        }
    };
    let reading = async {
        let mut answer = Vec::new();
        // A reset after the answer is an end, too.
        let _end = from.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    };
    let answer = async {
        tokio::select! {
            answer = reading => answer,
            () = async { dripping.await; std::future::pending().await } => unreachable!(),
        }
    };
    timeout(PATIENCE, answer).await.unwrap()
}

/// "Slow-loris": heads of requests that come byte by byte and never end.
#[tokio::test]
async fn heads_that_never_end_are_given_up_and_others_are_served_meanwhile() {
    let gateway = Gateway::start_with_silence("2s", &[]).await;
    let mut attackers = Vec::new();
    for _ in 0..200 {
        let stream = open(
            &gateway,
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ",
        )
        .await;
        attackers.push(drip(stream, b"z", Duration::from_millis(200)));
    }
    let mut attack = std::pin::pin!(join_all(attackers));
    let mut served = 0_u32;
    let answers = loop {
        tokio::select! {
            answers = attack.as_mut() => break answers,
            health = send(gateway.request(Method::GET, "/healthz")) => {
                assert_eq!(health.status, 200);
                served += 1;
            }
        }
    };
    assert!(served > 10, "only {served} requests were served meanwhile");
    for answer in answers {
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 408 "),
            "{answer}"
        );
    }
}

/// A body that keeps coming is still too late in the end.
#[tokio::test]
async fn bodies_that_never_end_are_408_and_nothing_is_written() {
    let gateway = Gateway::start_with_silence("2s", &["--request-timeout", "3s"]).await;
    let token = gateway.open_account().await;
    let put = |length: &str| {
        format!(
            "PUT /v1/accounts/1 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             fencing-token: {token}\r\n{length}\r\n\r\n"
        )
    };
    let declared = put("content-length: 1000");
    let chunked = put("transfer-encoding: chunked");
    for (head, drop) in [(declared, &b" "[..]), (chunked, b"1\r\n \r\n")] {
        let stream = open(&gateway, &head).await;
        let answer = drip(stream, drop, Duration::from_millis(50)).await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        assert!(
            answer.contains("urn:palisade:problem:request-timeout"),
            "{answer}"
        );
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}

/// A client that connects and sends nothing costs a place, for a while.
#[tokio::test]
async fn thousands_of_idle_connections_do_not_keep_others_out() {
    // More files than a process may have open unless it asks for more.
    const IDLE: usize = 1500;
    allow_open_files(2 * IDLE as u64);
    let gateway = Gateway::start_with_silence("4s", &[]).await;
    let token = gateway.token("account:1", 60_000).await;
    let mut idle = Vec::new();
    for number in 0..IDLE {
        // Some clients send nothing at all, some begin and then stop.
        let beginning = [
            "",
            "GET /healthz HTT",
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\n",
        ];
        idle.push(open(&gateway, beginning[number % beginning.len()]).await);
    }
    let write = gateway.write("/v1/accounts/1", Some(&token), 5);
    let written = timeout(PATIENCE, write).await.unwrap();
    assert_eq!(written.status, 200, "{written:?}");
    let ends = join_all(idle.into_iter().map(|mut stream| async move {
        let mut answer = Vec::new();
        let _end = stream.read_to_end(&mut answer).await;
        answer
    }));
    for answer in timeout(PATIENCE, ends).await.unwrap() {
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 408 "),
            "{answer}"
        );
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}

/// Allows so many open files for this process, and for the processes that it starts.
fn allow_open_files(number: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < number) {
        let current = Some(maximum.map_or(number, |maximum| std::cmp::min(number, maximum)));
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    }
}

/// Sends a request on a connection and reads the answer, which has a length.
async fn ask(stream: &mut TcpStream) -> String {
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nok\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

/// Catches: a bound on connections that is not kept, or a place that is not given back. A client
/// that comes when all places are taken is served when one is free again.
#[tokio::test]
async fn more_connections_than_may_be_open_wait_until_others_are_closed() {
    let gateway = Gateway::start_with_silence("15s", &["--max-connections", "2"]).await;
    let mut first = open(&gateway, "").await;
    let mut second = open(&gateway, "").await;
    for connection in [&mut first, &mut second] {
        assert!(ask(connection).await.starts_with("HTTP/1.1 200 "));
    }
    let mut third = open(&gateway, "").await;
    let mut asking = std::pin::pin!(ask(&mut third));
    let early = timeout(Duration::from_millis(300), asking.as_mut()).await;
    assert!(early.is_err(), "a third connection is served: {early:?}");
    // Clients that have a place are served all the while.
    assert!(ask(&mut second).await.starts_with("HTTP/1.1 200 "));
    drop(first);
    let answer = timeout(PATIENCE, asking).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
