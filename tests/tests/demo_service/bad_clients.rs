//! Clients that go away in the middle, and two clients that send the same request at once.

use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::gateway::{Gateway, send};

/// Sends half a body, and then ends the connection, with and without closing it properly.
#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_has_written_nothing() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    let token = gateway.open_account().await;
    for path in ["/v1/accounts/1", "/v1/unfenced/accounts/1"] {
        let request = format!(
            "PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             fencing-token: {token}\r\ncontent-length: 15\r\n\r\n{{\"balance\":666"
        );
        for end in [2, request.len() / 2, request.len()] {
            let mut polite = TcpStream::connect(gateway.addr()).await.unwrap();
            polite.write_all(&request.as_bytes()[..end]).await.unwrap();
            polite.shutdown().await.unwrap();
            let mut answer = String::new();
            polite.read_to_string(&mut answer).await.unwrap();
            assert!(
                answer.is_empty() || answer.starts_with("HTTP/1.1 4"),
                "{answer}"
            );

            let mut rude = TcpStream::connect(gateway.addr()).await.unwrap();
            rude.write_all(&request.as_bytes()[..end]).await.unwrap();
            rude.set_zero_linger().unwrap();
            drop(rude);
        }
    }
    assert_eq!(gateway.balance("1").await, Some(5));
}

/// One of two requests is first. The other finds the same lease, or learns that it is held.
#[tokio::test]
async fn two_requests_with_one_key_at_once_get_one_lease() {
    let gateway = Gateway::start().await;
    for round in 0..10 {
        let key = format!("9b6c5f0e-2d4a-4c1f-8e7d-{round:012}");
        let acquire = || {
            let path = format!("/v1/leases/account:{round}");
            let request = gateway.request(Method::POST, &path);
            let request = request.header("idempotency-key", &key);
            send(request.json(&json!({ "ttl_ms": 60_000 })))
        };
        let (one, two) = tokio::join!(acquire(), acquire());
        let granted: Vec<_> = [&one, &two]
            .into_iter()
            .filter(|answer| answer.status == 201)
            .map(|answer| &answer.body["fencing_token"])
            .collect();
        assert!(!granted.is_empty(), "{one:?} {two:?}");
        assert!(
            granted.iter().all(|token| *token == granted[0]),
            "{granted:?}"
        );
        for answer in [&one, &two] {
            if answer.status != 201 {
                answer.assert_any_problem();
            }
        }
    }
}
