//! Clients that read their answers slowly or never.

use std::time::Duration;

use rustix::process::{Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::gateway::Gateway;

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(100);

/// Asks for a larger answer than any socket keeps, and reads nothing of it.
async fn ask_for_much(gateway: &Gateway) -> TcpStream {
    let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
    let request = "GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let requests = request.repeat(8);
    stream.write_all(requests.as_bytes()).await.unwrap();
    stream
}

/// Reads the first bytes of an answer: the gateway has begun to send it.
async fn begin_to_read(stream: &mut TcpStream) -> Vec<u8> {
    let mut beginning = vec![0; 12];
    stream.read_exact(&mut beginning).await.unwrap();
    assert_eq!(beginning, b"HTTP/1.1 200");
    beginning
}

/// How many answers there are in these bytes. Each answer has to be complete.
#[track_caller]
fn whole_answers(mut bytes: &[u8]) -> usize {
    let mut answers = 0;
    while !bytes.is_empty() {
        let end = bytes.windows(4).position(|it| it == b"\r\n\r\n");
        let (head, rest) = bytes.split_at(end.expect("the head ends") + 4);
        let head = String::from_utf8(head.to_vec()).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.unwrap().parse().unwrap();
        assert!(length > 1_000_000, "an answer that any socket keeps");
        let left = rest.len();
        assert!(left >= length, "{left} bytes of {length}, after {answers}");
        bytes = &rest[length..];
        answers += 1;
    }
    answers
}

/// A client that does not read cannot keep its connection for ever.
#[tokio::test]
async fn a_client_that_reads_nothing_gives_its_place_to_others() {
    let gateway = Gateway::start_with_silence("1s", &["--max-connections", "1"]).await;
    let mut stalled = ask_for_much(&gateway).await;
    begin_to_read(&mut stalled).await;
    let balance = timeout(PATIENCE, gateway.balance("1")).await;
    assert_eq!(balance.expect("others are never served"), None);
    drop(stalled);
}

/// The answer of a client that goes on reading, however late, is sent to its end.
#[tokio::test]
async fn an_answer_that_is_read_slowly_is_not_cut_off_at_the_end() {
    let mut gateway = Gateway::start().await;
    let mut slow = ask_for_much(&gateway).await;
    let mut answers = begin_to_read(&mut slow).await;
    kill_process(gateway.process.id(), Signal::TERM).unwrap();
    let line = gateway.process.line().await.unwrap();
    assert_eq!(line, "terminated (SIGTERM): finishing requests under way");
    // This is far longer than a connection without a request may stay.
    let early = timeout(Duration::from_secs(3), gateway.process.finish()).await;
    assert!(early.is_err(), "it does not wait for the client: {early:?}");
    slow.read_to_end(&mut answers).await.unwrap();
    assert!((1..8).contains(&whole_answers(&answers)));
    assert_eq!(gateway.process.finish().await.code(), Some(0));
}
