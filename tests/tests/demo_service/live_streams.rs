//! The stream that the live page follows, after a break.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::gateway::{Gateway, send};

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(60);

const CHANGES: &str = "/live/changes";

/// A visitor's page that listens.
struct Listener {
    stream: Response,
    /// What has arrived and is not read.
    arrived: String,
}

impl Listener {
    async fn new(gateway: &Gateway) -> Self {
        Self::of(gateway.request(Method::GET, CHANGES)).await
    }

    /// As browsers listen again after a break.
    async fn again(gateway: &Gateway) -> Self {
        let request = gateway.request(Method::GET, CHANGES);
        Self::of(request.header("last-event-id", "0")).await
    }

    async fn of(request: reqwest::RequestBuilder) -> Self {
        let stream = request.send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        Self {
            stream,
            arrived: String::new(),
        }
    }

    /// The data of the next event.
    async fn next(&mut self) -> Value {
        let reading = self.read();
        timeout(PATIENCE, reading).await.expect("nothing is told")
    }

    async fn read(&mut self) -> Value {
        loop {
            if let Some((event, rest)) = self.arrived.split_once("\n\n") {
                let data = event.strip_prefix("data: ").map(str::to_owned);
                self.arrived = rest.to_owned();
                if let Some(data) = data {
                    return serde_json::from_str(&data).unwrap();
                }
            } else {
                let chunk = self.stream.chunk().await.unwrap();
                let chunk = chunk.expect("the stream ended");
                self.arrived += std::str::from_utf8(&chunk).unwrap();
            }
        }
    }

    /// The first event that is as wanted.
    async fn when(&mut self, wanted: impl Fn(&Value) -> bool + Send + Sync) -> Value {
        let looking = async {
            loop {
                let seen = self.next().await;
                if wanted(&seen) {
                    return seen;
                }
            }
        };
        timeout(PATIENCE, looking).await.expect("it never comes")
    }
}

async fn view(gateway: &Gateway) -> Value {
    send(gateway.request(Method::GET, "/live/run")).await.body
}

/// Plays the story to its end.
async fn play(gateway: &Gateway, listener: &mut Listener) {
    let settings = json!({ "ttl_ms": 1500, "pause_ms": 0 });
    let begun = send(gateway.request(Method::POST, "/live/run").json(&settings)).await;
    assert_eq!(begun.status, 202);
    while view(gateway).await["playing"] == true {
        listener.next().await;
    }
}

/// Whoever comes back has missed the whole run, and is told at once that there is something to see,
/// and of everything that comes later.
#[tokio::test]
async fn who_comes_back_after_a_break_is_told_what_one_knows_who_stayed() {
    let gateway = Gateway::start().await;
    let mut stayed = Listener::new(&gateway).await;
    let mut left = Listener::new(&gateway).await;
    let before = left.next().await;
    drop(left);
    play(&gateway, &mut stayed).await;
    let mut back = Listener::again(&gateway).await;
    let missed = back.next().await;
    assert!(missed.as_u64() > before.as_u64(), "{before}, then {missed}");
    let mut new = Listener::new(&gateway).await;
    assert_eq!(new.next().await, missed);
    // Its last one may be read already, while the run came to its end.
    play(&gateway, &mut stayed).await;
    let mut last = Listener::again(&gateway).await;
    let last = last.next().await;
    for mut listener in [back, new] {
        listener.when(|version| *version == last).await;
    }
}
