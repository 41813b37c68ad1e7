//! A client of several gateways behind one address, which goes on if one of them fails.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use e2e::history::{Event, History};
use fenced_http::FencingHeader;
use lock_core::{
    Sequencer,
    backend::{Runtime, TokioRuntime},
};
use reqwest::{Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::balancer::ANSWERED_BY;

/// The deposits of all clients together.
pub(crate) struct Tally {
    pub(crate) history: History,
    /// How many deposits were accepted behind the fence so far.
    pub(crate) fenced: watch::Sender<u64>,
    /// How many deposits were accepted where there is no fence.
    pub(crate) unfenced: AtomicU64,
    /// How many deposits were refused as stale.
    pub(crate) stale: AtomicU64,
    /// How many leases were acquired, renewed and released at three different gateways.
    pub(crate) well_travelled: AtomicU64,
    /// How many repeated requests found the lease of the first request, at another gateway.
    pub(crate) found_again: AtomicU64,
    /// How many requests were sent again, because no gateway was there that could answer.
    pub(crate) sent_again: AtomicU64,
}

#[derive(Clone)]
pub(crate) struct Depositor {
    http: reqwest::Client,
    url: String,
    account: String,
    tally: Arc<Tally>,
}

/// A lease, and the gateways that took part in it.
struct Held {
    header: String,
    grant: Sequencer,
    gateways: BTreeSet<String>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Tally {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            history: History::default(),
            fenced: watch::Sender::new(0),
            unfenced: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            well_travelled: AtomicU64::new(0),
            found_again: AtomicU64::new(0),
            sent_again: AtomicU64::new(0),
        })
    }
}

impl Depositor {
    pub(crate) fn new(url: String, account: &str, tally: &Arc<Tally>) -> Self {
        Self {
            // A connection of its own for every request, as from many clients.
            http: reqwest::Client::builder()
                .no_proxy()
                .pool_max_idle_per_host(0)
                .build()
                .unwrap(),
            url,
            account: account.to_owned(),
            tally: Arc::clone(tally),
        }
    }

    /// Adds one to both accounts, or learns that it has lost its lease. It reads, checks its lease,
    /// and writes.
    pub(crate) async fn deposit(&self) {
        let mut held = self.acquire(20_000).await;
        let Some(seen) = self.read(&held).await else {
            return;
        };
        let renew = self
            .lease(Method::PUT, &held)
            .json(&json!({ "ttl_ms": 20_000 }));
        let renewed = self.send(renew).await;
        held.gateways.insert(by(&renewed));
        self.write(&held, seen).await;
        let released = self.send(self.lease(Method::DELETE, &held)).await;
        held.gateways.insert(by(&released));
        if held.gateways.len() == 3 {
            self.tally.well_travelled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// As [`deposit`](Self::deposit), but between reading and writing it sleeps past its lease,
    /// until another client has made a deposit.
    pub(crate) async fn deposit_late(&self) {
        let held = self.acquire(300).await;
        let Some(seen) = self.read(&held).await else {
            return;
        };
        while self.balance("accounts", None).await == Some(seen.0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.write(&held, seen).await;
    }

    /// The balance as it is in the end.
    pub(crate) async fn balance(&self, path: &str, token: Option<&str>) -> Option<i64> {
        let mut read = self.account(Method::GET, path);
        if let Some(token) = token {
            read = read.header("fencing-token", token);
        }
        let answer = self.send(read).await;
        match answer.status.as_u16() {
            200 => answer.body["balance"].as_i64(),
            404 => Some(0),
            412 => None,
            _ => panic!("{}: {}", answer.status, answer.body),
        }
    }

    /// Waits in line without bound. Every other request is sent twice, as by a client that has lost
    /// the answer.
    async fn acquire(&self, ttl_ms: u64) -> Held {
        let draw = || format!("{:032x}", rand::random::<u128>());
        let acquire = |key: &str| {
            self.http
                .post(format!("{}/v1/leases/account:{}", self.url, self.account))
                .header("idempotency-key", key)
                .json(&json!({ "ttl_ms": ttl_ms, "wait_ms": 10_000 }))
        };
        let (mut key, mut asked) = (draw(), TokioRuntime.now());
        let granted = loop {
            let answer = self.send(acquire(&key)).await;
            let problem = answer.body["type"].as_str().unwrap_or_default();
            match (answer.status.as_u16(), problem) {
                (201, _) => break answer,
                // The wait is over, and others are before us still.
                (409, "urn:palisade:problem:lock-held") => {}
                // The short lease was over before its gateway had claimed it, or before the next
                // gateway was asked, because the first one died with the answer.
                (
                    409 | 412,
                    "urn:palisade:problem:idempotency-key-spent"
                    | "urn:palisade:problem:fencing-token-stale",
                ) if ttl_ms < 1000 => (key, asked) = (draw(), TokioRuntime.now()),
                _ => panic!("{}: {}", answer.status, answer.body),
            }
        };
        let header = granted.body["fencing_token"].as_str().unwrap().to_owned();
        if ttl_ms > 10_000 && rand::random::<bool>() {
            let again = self.send(acquire(&key)).await;
            assert_eq!(
                again.status, 201,
                "its own lease is not found: {}",
                again.body
            );
            assert_eq!(again.body["fencing_token"], header);
            if by(&again) != by(&granted) {
                self.tally.found_again.fetch_add(1, Ordering::Relaxed);
            }
        }
        let parsed = FencingHeader::parse(header.as_bytes()).unwrap();
        let grant = parsed.to_sequencer().unwrap();
        let event = Event::answered(&grant, asked);
        self.tally.history.granted(event.clone());
        self.tally.history.claimed(event);
        Held {
            gateways: BTreeSet::from([by(&granted)]),
            header,
            grant,
        }
    }

    /// Both balances, if the lease is still good.
    async fn read(&self, held: &Held) -> Option<(i64, i64)> {
        let fenced = self.balance("accounts", Some(&held.header)).await?;
        Some((fenced, self.balance("unfenced/accounts", None).await?))
    }

    /// A write of an absolute value may be sent again: under the fence it is the same.
    async fn write(&self, held: &Held, (fenced, unfenced): (i64, i64)) {
        let write = self.account(Method::PUT, "unfenced/accounts");
        let written = self
            .send(write.json(&json!({ "balance": unfenced + 1 })))
            .await;
        assert_eq!(written.status, 200, "{}", written.body);
        self.tally.unfenced.fetch_add(1, Ordering::Relaxed);

        let asked = TokioRuntime.now();
        let write = self.account(Method::PUT, "accounts");
        let write = write.header("fencing-token", &held.header);
        let written = self
            .send(write.json(&json!({ "balance": fenced + 1 })))
            .await;
        if written.status == StatusCode::OK {
            assert!(written.headers.contains_key("fencing-accepted"));
            self.tally
                .history
                .written(Event::answered(&held.grant, asked));
            self.tally.fenced.send_modify(|deposits| *deposits += 1);
        } else {
            let kind = &written.body["type"];
            assert_eq!(
                kind, "urn:palisade:problem:fencing-token-stale",
                "{}",
                written.body
            );
            self.tally.stale.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends a request until a gateway has answered it.
    async fn send(&self, request: RequestBuilder) -> Answer {
        loop {
            let answer = request.try_clone().unwrap().send().await.unwrap();
            let (status, headers) = (answer.status(), answer.headers().clone());
            let body = answer.text().await.unwrap();
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            match status.as_u16() {
                502 | 503 => {
                    self.tally.sent_again.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                500.. => panic!("{status}: {body}"),
                _ => {
                    return Answer {
                        status,
                        headers,
                        body,
                    };
                }
            }
        }
    }

    fn lease(&self, method: Method, held: &Held) -> RequestBuilder {
        let url = format!("{}/v1/leases/account:{}", self.url, self.account);
        self.http
            .request(method, url)
            .header("fencing-token", &held.header)
    }

    fn account(&self, method: Method, path: &str) -> RequestBuilder {
        // The unfenced account is a separate one: otherwise its writes would spoil the fenced one.
        let twin = if path == "accounts" { "" } else { "-unfenced" };
        let url = format!("{}/v1/{path}/{}{twin}", self.url, self.account);
        self.http.request(method, url)
    }
}

fn by(answer: &Answer) -> String {
    answer.headers[ANSWERED_BY].to_str().unwrap().to_owned()
}
