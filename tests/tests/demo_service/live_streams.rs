//! The two streams that the live page follows: after a break, and when much happens at once.

use std::{fs, time::Duration};

use futures_util::future::join_all;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, net::TcpStream, time::timeout};

use crate::gateway::{Gateway, send};

/// Ends a test whose event does not come.
const PATIENCE: Duration = Duration::from_secs(60);

const CHANGES: &str = "/live/changes";
const LOCKS: &str = "/live/locks";

/// A visitor's page that listens.
struct Listener {
    stream: Response,
    /// What has arrived and is not read.
    arrived: String,
}

impl Listener {
    async fn new(gateway: &Gateway, path: &str) -> Self {
        Self::of(gateway.request(Method::GET, path)).await
    }

    /// As browsers listen again after a break.
    async fn again(gateway: &Gateway, path: &str) -> Self {
        let request = gateway.request(Method::GET, path);
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

/// Plays the shortest story to its end.
async fn play(gateway: &Gateway, listener: &mut Listener) {
    let settings = json!({ "story": "forgery", "ttl_ms": 1500, "pause_ms": 0 });
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
    let mut stayed = Listener::new(&gateway, CHANGES).await;
    let mut left = Listener::new(&gateway, CHANGES).await;
    let before = left.next().await;
    drop(left);
    play(&gateway, &mut stayed).await;
    let mut back = Listener::again(&gateway, CHANGES).await;
    let missed = back.next().await;
    assert!(missed.as_u64() > before.as_u64(), "{before}, then {missed}");
    let mut new = Listener::new(&gateway, CHANGES).await;
    assert_eq!(new.next().await, missed);
    // Its last one may be read already, while the run came to its end.
    play(&gateway, &mut stayed).await;
    let mut last = Listener::again(&gateway, CHANGES).await;
    let last = last.next().await;
    for mut listener in [back, new] {
        listener.when(|version| *version == last).await;
    }
}

/// What two pages show at one moment, but for the time.
fn shown(look: &Value) -> Value {
    let names = look["resources"].as_array().unwrap().iter();
    let names: Vec<_> = names
        .map(|it| (&it["resource"], &it["lease"]["token"], &it["waiters"]))
        .collect();
    json!({ "counts": look["counts"], "names": names, "more": look["more"] })
}

#[tokio::test]
async fn who_looks_at_the_locks_again_sees_what_one_sees_who_never_looked_away() {
    let gateway = Gateway::start().await;
    let mut stayed = Listener::new(&gateway, LOCKS).await;
    let mut left = Listener::new(&gateway, LOCKS).await;
    assert_eq!(left.next().await["resources"], json!([]));
    drop(left);
    let token = gateway.token("gone", 60_000).await;
    gateway.token("printer", 60_000).await;
    assert_eq!(gateway.release("gone", &token).await.status, 204);
    let is_seen = |look: &Value| look["counts"]["releases"] == 1;
    let seen = stayed.when(is_seen).await;
    let back = Listener::again(&gateway, LOCKS).await.next().await;
    assert_eq!(shown(&back), shown(&seen));
    assert_eq!(back["resources"][0]["resource"], "printer", "{back}");
    assert_eq!(back["resources"].as_array().unwrap().len(), 1, "{back}");
}

/// How many bytes the gateway has had in memory at most.
fn peak_memory(gateway: &Gateway) -> u64 {
    let path = format!("/proc/{}/status", gateway.process.id().as_raw_nonzero());
    let status = fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().strip_suffix(" kB").unwrap();
    number.parse::<u64>().unwrap() * 1024
}

const WORKERS: usize = 16;
const ROUNDS: usize = 8;
/// How many resources one worker takes at a time.
const NAMES: usize = 16;

/// Takes several leases and gives them back, over and over; the last ones stay.
async fn churn(gateway: &Gateway, worker: usize) {
    let names: Vec<_> = (0..NAMES)
        .map(|name| format!("r-{worker}-{name}"))
        .collect();
    for round in 0..ROUNDS {
        for name in &names {
            let token = gateway.token(name, 300_000).await;
            if round + 1 < ROUNDS {
                assert_eq!(gateway.release(name, &token).await.status, 204);
            }
        }
    }
}

/// Those who listen are told of no change by itself, so nothing waits for one who reads nothing.
#[tokio::test]
async fn of_very_many_changes_the_last_state_is_told_and_nothing_is_kept() {
    let gateway = Gateway::start().await;
    let mut deaf = Vec::new();
    for path in [LOCKS, CHANGES].repeat(100) {
        let mut stream = TcpStream::connect(gateway.addr()).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        deaf.push(stream);
    }
    let mut listener = Listener::new(&gateway, LOCKS).await;
    listener.next().await;
    churn(&gateway, WORKERS).await;
    let before = peak_memory(&gateway);
    join_all((0..WORKERS).map(|worker| churn(&gateway, worker))).await;

    let rounds = (WORKERS + 1) * ROUNDS * NAMES;
    let held = (WORKERS + 1) * NAMES;
    let is_last = |look: &Value| look["counts"]["grants"] == rounds;
    let last = listener.when(is_last).await;
    assert_eq!(last["counts"]["releases"], rounds - held);
    let shown = last["resources"].as_array().unwrap();
    assert_eq!(shown.len(), 100, "as many as anybody reads");
    assert_eq!(last["more"], held - 100);
    assert!(shown.iter().all(|it| it["lease"].is_object()), "{last}");
    let grown = peak_memory(&gateway) - before;
    assert!(grown < 16 << 20, "{grown} bytes more");
}
