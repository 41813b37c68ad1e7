//! A client that is refused before its body has left must not send its next request on a connection
//! that the gateway closes.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Duration, timeout},
};

use crate::gateway::Gateway;

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(30);

const BODY: &str = "{\"balance\":666}";

/// The heads of requests that are refused whatever their body is, and the status for each.
fn refused(token: &str) -> Vec<(String, &'static str)> {
    let put = |path: &str, more: &str| {
        format!(
            "PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}"
        )
    };
    let (account, forged) = ("/v1/accounts/1", token.replace("kid=", "kid=x"));
    vec![
        (put(account, ""), "428"),
        (put(account, "fencing-token: nonsense\r\n"), "400"),
        (put(account, &format!("fencing-token: {forged}\r\n")), "403"),
        (put(account, "").replace("localhost", "evil.example"), "421"),
        (put("/v1/accounts/1", "").replace("PUT", "PATCH"), "405"),
        (put("/v1/leases/account:1", ""), "428"),
        (put("/v1/unfenced/accounts/1", ""), "404"),
        (put("/v1/admin/leases", ""), "404"),
        (put("/nothing", ""), "404"),
    ]
}

/// Sends this, and returns the head of the answer.
async fn answer(stream: &mut TcpStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.unwrap();
    let read = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.split_once("content-length: ").unwrap().1;
        let length = length.split_once("\r\n").unwrap().0.parse().unwrap();
        stream.read_exact(&mut vec![0; length]).await.unwrap();
        head
    };
    timeout(PATIENCE, read).await.unwrap()
}

fn says_close(head: &str) -> bool {
    head.contains("\r\nconnection: close\r\n")
}

async fn is_closed(mut stream: TcpStream) -> bool {
    let next = timeout(PATIENCE, stream.read(&mut [0])).await.unwrap();
    next.is_ok_and(|read| read == 0)
}

#[tokio::test]
async fn a_refusal_before_the_body_has_arrived_says_that_it_closes_the_connection() {
    let gateway = Gateway::start().await;
    let token = gateway.open_account().await;
    for (head, status) in refused(&token) {
        let chunked = "transfer-encoding: chunked\r\n\r\n";
        for rest in ["content-length: 15\r\n\r\n", chunked] {
            let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
            let answer = answer(&mut stream, &format!("{head}{rest}")).await;
            assert!(
                answer.starts_with(&format!("http/1.1 {status} ")),
                "{answer}"
            );
            assert!(says_close(&answer), "{head}{rest}: {answer}");
            assert!(is_closed(stream).await, "{head}");
        }
        // A part of the body makes no difference.
        let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
        let begun = format!("{head}content-length: 15\r\n\r\n{}", &BODY[..5]);
        assert!(says_close(&answer(&mut stream, &begun).await), "{begun}");
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}

/// Otherwise every refusal would cost its client a connection.
#[tokio::test]
async fn a_refusal_of_a_whole_request_keeps_the_connection() {
    let gateway = Gateway::start().await;
    let token = gateway.open_account().await;
    let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
    for (head, status) in refused(&token) {
        let whole = format!("{head}content-length: {}\r\n\r\n{BODY}", BODY.len());
        for request in [whole, format!("{head}\r\n")] {
            let answer = answer(&mut stream, &request).await;
            assert!(
                answer.starts_with(&format!("http/1.1 {status} ")),
                "{answer}"
            );
            assert!(!says_close(&answer), "{request}: {answer}");
        }
    }
    let get = "GET /v1/accounts/1 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let read = answer(&mut stream, get).await;
    assert!(read.starts_with("http/1.1 200 "), "{read}");
    assert_eq!(gateway.balance("1").await, Some(5));
}

/// The client waits for an answer before it sends its body, and the refusal is this answer.
#[tokio::test]
async fn a_client_that_asks_before_it_sends_its_body_is_refused_without_being_asked_for_it() {
    let gateway = Gateway::start().await;
    let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
    let request = "PUT /v1/accounts/1 HTTP/1.1\r\nhost: localhost\r\ncontent-length: 15\r\n\
                   expect: 100-continue\r\n\r\n";
    let refused = answer(&mut stream, request).await;
    assert!(refused.starts_with("http/1.1 428 "), "{refused}");
    assert!(says_close(&refused), "{refused}");
    assert!(is_closed(stream).await);
}
