//! The fault proxy does only its own fault to a connection.

use std::{io, time::Duration};

use e2e::{
    proxy::{Fault, Proxy},
    servers::redis,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

const SILENCE: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that writes commands and reads replies, without knowing which reply belongs to which
/// command.
struct Client(TcpStream);

impl Client {
    async fn of(proxy: &Proxy) -> Self {
        let url = proxy.url("redis");
        Self(TcpStream::connect(&url["redis://".len()..]).await.unwrap())
    }

    async fn send(&mut self, command: &str) {
        let words: Vec<_> = command.split(' ').collect();
        let mut message = format!("*{}\r\n", words.len());
        for word in words {
            message.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.write_all(message.as_bytes()).await.unwrap();
    }

    async fn reads(&mut self) -> io::Result<String> {
        let mut buffer = vec![0; 64 * 1024];
        let read = timeout(PATIENCE, self.0.read(&mut buffer)).await.unwrap()?;
        Ok(String::from_utf8(buffer[..read].to_vec()).unwrap())
    }

    async fn says(&mut self, command: &str) -> String {
        self.send(command).await;
        self.reads().await.unwrap()
    }

    async fn hears_nothing(&mut self) {
        let heard = timeout(SILENCE, self.0.read(&mut [0; 1024])).await;
        assert!(heard.is_err(), "{heard:?}");
    }
}

async fn proxied() -> (Proxy, Client) {
    let proxy = Proxy::start(redis().await.url()).await;
    let mut client = Client::of(&proxy).await;
    assert_eq!(client.says("PING").await, "+PONG\r\n");
    (proxy, client)
}

/// A key of this test, and a client that looks at the key without the proxy.
async fn beside() -> (String, Client) {
    let direct = redis().await.url();
    let stream = TcpStream::connect(&direct["redis://".len()..])
        .await
        .unwrap();
    (format!("k{:016x}", rand::random::<u64>()), Client(stream))
}

/// Catches: late requests that never come, so that no test meets one.
#[tokio::test]
async fn held_requests_arrive_when_they_are_let_go_although_their_client_is_gone() {
    let (proxy, mut client) = proxied().await;
    let (key, mut direct) = beside().await;
    proxy.inflict(Fault::HoldRequests);
    client.send(&format!("INCR {key}")).await;
    client.hears_nothing().await;
    drop(client);
    assert_eq!(direct.says(&format!("GET {key}")).await, "$-1\r\n");
    proxy.let_go();
    while direct.says(&format!("GET {key}")).await != "$1\r\n1\r\n" {}
}

/// Catches: a fault that loses the messages which it should hold.
#[tokio::test]
async fn held_replies_and_black_holes_pass_everything_on_when_they_are_let_go() {
    for (fault, served) in [(Fault::HoldReplies, true), (Fault::BlackHole, false)] {
        let (proxy, mut client) = proxied().await;
        let (key, mut direct) = beside().await;
        proxy.inflict(fault);
        client.send(&format!("INCR {key}")).await;
        client.hears_nothing().await;
        let there = direct.says(&format!("EXISTS {key}")).await;
        assert_eq!(there, if served { ":1\r\n" } else { ":0\r\n" });
        proxy.let_go();
        assert_eq!(client.reads().await.unwrap(), ":1\r\n");
    }
}

/// Catches: answers that are taken for those of other requests.
#[tokio::test]
async fn a_connection_that_has_lost_a_message_stays_dead() {
    for (fault, served) in [(Fault::DropReplies, true), (Fault::DropRequests, false)] {
        let (proxy, mut client) = proxied().await;
        let (key, mut direct) = beside().await;
        proxy.inflict_on(0, fault);
        client.send(&format!("INCR {key}")).await;
        client.hears_nothing().await;
        proxy.let_go();
        client.send("PING").await;
        client.hears_nothing().await;
        assert_eq!(proxy.dropped(), 2);
        let there = direct.says(&format!("EXISTS {key}")).await;
        assert_eq!(there, if served { ":1\r\n" } else { ":0\r\n" });
    }
}

/// Catches: a fault test whose fault hits something else.
#[tokio::test]
async fn a_trap_hits_its_own_message_on_its_own_connection() {
    let (proxy, mut client) = proxied().await;
    let mut other = Client::of(&proxy).await;
    let (key, mut direct) = beside().await;
    let at_reply = proxy.at_reply_to(&key, Fault::DropReplies);
    let never = proxy.at_request("no such text", Fault::Reset);
    assert_eq!(client.says("ECHO a").await, "$1\r\na\r\n");
    other.send("ECHO b").await;
    other.send(&format!("INCR {key}")).await;
    // Requests are pipelined before and after the trapped one. The earlier reply passes.
    other.send("ECHO c").await;
    assert_eq!(other.reads().await.unwrap(), "$1\r\nb\r\n");
    other.hears_nothing().await;
    assert_eq!(direct.says(&format!("GET {key}")).await, "$1\r\n1\r\n");
    assert_eq!(at_reply.connection(), Some(1));
    assert!(!never.has_sprung());
    // The trap springs once.
    assert_eq!(client.says(&format!("INCR {key}")).await, ":2\r\n");

    let at_request = proxy.at_request(&key, Fault::DropRequests);
    client.send(&format!("INCR {key}")).await;
    client.hears_nothing().await;
    assert_eq!(at_request.connection(), Some(0));
    assert_eq!(direct.says(&format!("GET {key}")).await, "$1\r\n2\r\n");
}

/// Catches: a lost push that breaks its connection.
#[tokio::test]
async fn a_push_is_lost_alone() {
    let (proxy, mut client) = proxied().await;
    let (channel, mut direct) = beside().await;
    assert!(client.says("HELLO 3").await.starts_with('%'));
    assert!(
        client
            .says(&format!("SUBSCRIBE {channel}"))
            .await
            .starts_with('>')
    );
    let lost = proxy.at_push("first", Fault::DropPushes);
    assert_eq!(
        direct.says(&format!("PUBLISH {channel} first")).await,
        ":1\r\n"
    );
    client.hears_nothing().await;
    assert!(lost.has_sprung());
    assert_eq!(client.says("ECHO a").await, "$1\r\na\r\n");
    proxy.let_go();
    direct.says(&format!("PUBLISH {channel} second")).await;
    assert!(client.reads().await.unwrap().contains("second"));
}
