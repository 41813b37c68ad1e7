//! A gateway of one test, and a client that shows the whole answers.

use std::time::Duration;

use e2e::{observer::until, process::Process};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::contract::CONTRACT;

/// `palisade-demo serve` on a free port, on the in-process lock service and a SQLite file unless
/// the arguments say otherwise.
pub(crate) struct Gateway {
    pub(crate) process: Process,
    pub(crate) url: String,
    http: reqwest::Client,
    folder: TempDir,
}

/// An answer of the gateway.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    /// The body, or null if it is no JSON.
    pub(crate) body: Value,
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        Self::start_on("memory:").await
    }

    pub(crate) async fn start_on(lock: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        Self::serve(folder, &["--lock", lock, "--store", &store]).await
    }

    /// Starts a gateway at which every account can be written without a fence, too.
    pub(crate) async fn start_with_unfenced_twins() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        Self::serve(folder, &["--store", &store, "--unfenced"]).await
    }

    /// Starts a gateway whose tokens have no signature, so that any client can make them up.
    pub(crate) async fn start_unsigned() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        Self::serve(folder, &["--store", &store, "--unsigned"]).await
    }

    /// Starts a gateway with these arguments, among which there is a store.
    pub(crate) async fn start_with(arguments: &[&str]) -> Self {
        Self::serve(tempfile::tempdir().unwrap(), arguments).await
    }

    /// Starts `palisade`, which serves only leases, with these arguments.
    pub(crate) async fn start_alone(arguments: &[&str]) -> Self {
        let arguments = ["serve", "--addr", "127.0.0.1:0"].iter().chain(arguments);
        let process = Process::spawn("palisade", arguments);
        Self::of(process, tempfile::tempdir().unwrap()).await
    }

    /// Starts a gateway that waits so long for clients that do nothing, with further arguments.
    pub(crate) async fn start_with_silence(silence: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        let arguments = ["--store", &store, "--silence", silence];
        Self::serve(folder, &[&arguments[..], more].concat()).await
    }

    /// Starts a gateway whose log is in a file: see [`log`](Self::log).
    pub(crate) async fn start_with_log(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let arguments = ["serve", "--addr", "127.0.0.1:0"].iter().chain(arguments);
        let log = folder.path().join("log");
        let process = Process::spawn_with_log("palisade-demo", arguments, &log);
        Self::of(process, folder).await
    }

    /// The log of the gateway so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// The log, as soon as it has this text: a separate thread writes the log.
    pub(crate) async fn logged(&self, what: &str) -> String {
        until(what, async || self.log().contains(what)).await;
        self.log()
    }

    async fn serve(folder: TempDir, arguments: &[&str]) -> Self {
        let arguments = ["serve", "--addr", "127.0.0.1:0"].iter().chain(arguments);
        Self::of(Process::spawn("palisade-demo", arguments), folder).await
    }

    async fn of(mut process: Process, folder: TempDir) -> Self {
        let line = process.line().await.unwrap();
        let url = line
            .strip_prefix("listening on ")
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        // The gateway closes idle connections: a request that goes out in that moment fails.
        let http = reqwest::Client::builder().pool_idle_timeout(Duration::from_millis(500));
        let http = http.no_proxy().build().unwrap();
        Self {
            process,
            url: url.to_owned(),
            http,
            folder,
        }
    }

    /// `HOST:PORT`, for tests that do not speak HTTP as they should.
    pub(crate) fn addr(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// The default place of the store.
    pub(crate) fn database(&self) -> std::path::PathBuf {
        self.folder.path().join("accounts.db")
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn acquire(&self, resource: &str, body: Value) -> Answer {
        let request = self.request(Method::POST, &format!("/v1/leases/{resource}"));
        send(request.json(&body)).await
    }

    /// Acquires a free resource, and returns the `Fencing-Token` to send.
    pub(crate) async fn token(&self, resource: &str, ttl_ms: u64) -> String {
        let answer = self.acquire(resource, patient(ttl_ms)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.body["fencing_token"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn renew(&self, resource: &str, token: &str) -> Answer {
        let request = self.request(Method::PUT, &format!("/v1/leases/{resource}"));
        send(
            request
                .header("fencing-token", token)
                .json(&json!({ "ttl_ms": 60_000 })),
        )
        .await
    }

    pub(crate) async fn release(&self, resource: &str, token: &str) -> Answer {
        let request = self.request(Method::DELETE, &format!("/v1/leases/{resource}"));
        send(request.header("fencing-token", token)).await
    }

    pub(crate) async fn write(&self, path: &str, token: Option<&str>, balance: i64) -> Answer {
        let mut request = self
            .request(Method::PUT, path)
            .json(&json!({ "balance": balance }));
        if let Some(token) = token {
            request = request.header("fencing-token", token);
        }
        send(request).await
    }

    /// Writes 5 to account 1, and returns the `Fencing-Token` of its lease.
    pub(crate) async fn open_account(&self) -> String {
        let token = self.token("account:1", 60_000).await;
        let written = self.write("/v1/accounts/1", Some(&token), 5).await;
        assert_eq!(written.status, StatusCode::OK, "{written:?}");
        token
    }

    /// Waits until so many clients wait in line for a resource.
    pub(crate) async fn until_waiting(&self, resource: &str, waiters: u64) {
        until("so many wait in line", async || {
            let look = self.request(Method::GET, &format!("/v1/leases/{resource}"));
            send(look).await.body["waiters"] == waiters
        })
        .await;
    }

    /// The balance, which any client may read; none if there is no such account.
    pub(crate) async fn balance(&self, id: &str) -> Option<i64> {
        let answer = send(self.request(Method::GET, &format!("/v1/accounts/{id}"))).await;
        match answer.status {
            StatusCode::OK => answer.body["balance"].as_i64(),
            StatusCode::NOT_FOUND => None,
            _ => panic!("{answer:?}"),
        }
    }
}

/// The body of a request for a lease that is free. Without a wait the lock service would have 2 s
/// for its answer, and a busy machine may need them for its first statement.
pub(crate) fn patient(ttl_ms: u64) -> Value {
    json!({ "ttl_ms": ttl_ms, "wait_ms": 10_000 })
}

impl Answer {
    /// Checks that the answer is a problem document of this kind with this status.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, kind: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.body["type"],
            format!("urn:palisade:problem:{kind}"),
            "{self:?}"
        );
        self.assert_document();
    }

    /// Checks that the answer is a problem document about a mistake of the client.
    #[track_caller]
    pub(crate) fn assert_any_problem(&self) {
        assert!(self.status.is_client_error(), "{self:?}");
        self.assert_document();
    }

    #[track_caller]
    fn assert_document(&self) {
        assert_eq!(
            self.headers["content-type"], "application/problem+json",
            "{self:?}"
        );
        assert_eq!(self.headers["cache-control"], "no-store");
        assert_eq!(self.body["status"], self.status.as_u16());
        assert!(self.body["title"].is_string(), "{self:?}");
    }
}

/// Sends a request, and compares the answer with what the document of the gateway says.
pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let (http, request) = request.build_split();
    let request = request.unwrap();
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let answer = http.execute(request).await.unwrap();
    let (status, headers) = (answer.status(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    let answer = Answer {
        status,
        headers,
        body: serde_json::from_str(&text).unwrap_or_default(),
    };
    if let Err(difference) = CONTRACT.check(&method, &path, &answer, &text) {
        panic!("{method} {path}: {difference}: {answer:?}");
    }
    answer
}
