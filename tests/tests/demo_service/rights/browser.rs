//! A page of another site, whose name leads to the gateway, and a client without a lease. Neither
//! gets a lease, nor changes anything.

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use e2e::{observer::until, process::Process, project::root};
use reqwest::{Method, header::HOST};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    gateway::{Gateway, send},
    host_names::for_other_machines,
};

/// The value of a variable in a file of `deploy`, where it is set to a name or has one by default.
fn deployed(file: &str, variable: &str) -> String {
    let text = fs::read_to_string(root().join("deploy").join(file)).unwrap();
    let mut lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches("ENV "));
    let value = lines.find_map(|line| line.strip_prefix(variable)?.strip_prefix([':', '=']));
    let value = value.unwrap_or_default().trim();
    let default = value
        .split_once(":-")
        .map(|(_, default)| default.trim_end_matches('}'));
    default.unwrap_or(value).to_owned()
}

/// In a container the gateway listens on all addresses. It is reached by a port of this machine's
/// loopback address, which every browser can reach.
#[tokio::test]
async fn dns_rebinding_gets_no_lease_and_no_write_of_a_container() {
    for file in ["Containerfile", "compose.yaml"] {
        let names = deployed(file, "PALISADE_ALLOWED_HOSTS");
        let (_process, _folder, url) = for_other_machines(&["--allowed-hosts", &names]).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let lease = http.post(format!("{url}/v1/leases/account:1"));
        let write = http.put(format!("{url}/v1/unfenced/accounts/1"));
        let list = http.get(format!("{url}/metrics"));
        for request in [
            lease.json(&json!({ "ttl_ms": 1000 })),
            write.json(&json!({ "balance": 666 })),
            list,
        ] {
            let answer = send(request.header(HOST, "evil.example:8080")).await;
            answer.assert_problem(421, "misdirected");
        }
        // The control: clients for whom the gateway is meant.
        let free = send(http.get(format!("{url}/v1/leases/account:1"))).await;
        assert_eq!(free.status, 200, "{free:?}");
    }
}

/// Catches: a check that is off, without a warning.
#[tokio::test]
async fn a_gateway_for_other_machines_that_checks_nothing_says_so() {
    const SAID: &str = "is answered under every name";
    let names = ["--allowed-hosts", "locks.example"];
    let operators = ["--admin-token", "0123456789abcdef"];
    for (addr, more, is_told) in [
        ("0.0.0.0:0", &[][..], true),
        ("0.0.0.0:0", &names, false),
        ("0.0.0.0:0", &operators, false),
        ("127.0.0.1:0", &[], false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        let log = folder.path().join("log");
        let arguments = ["serve", "--addr", addr, "--store", &store];
        let mut process = Process::spawn_with_log("palisade", arguments.iter().chain(more), &log);
        process.line().await.unwrap();
        // The log is complete when the gateway has ended.
        kill_process(process.id(), Signal::TERM).unwrap();
        process.finish().await;
        let log = fs::read_to_string(&log).unwrap();
        assert_eq!(
            log.matches(SAID).count(),
            usize::from(is_told),
            "{more:?}: {log}"
        );
        assert!(!is_told || log.contains("WARN"), "{log}");
    }
}

#[tokio::test]
async fn an_unfenced_write_is_refused_unless_unfenced_writes_were_asked_for() {
    let gateway = Gateway::start().await;
    gateway.open_account().await;
    let add = json!({ "add": 661 });
    for (request, method) in [
        ("accounts/1", "PUT"),
        ("accounts/1", "GET"),
        ("jobs/1/s", "PUT"),
    ] {
        let path = format!("/v1/unfenced/{request}");
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let body = if request.starts_with("jobs") {
            &add
        } else {
            &json!({ "balance": 666 })
        };
        let refused = send(gateway.request(method, &path).json(body)).await;
        refused.assert_problem(404, "route-unknown");
    }
    assert_eq!(gateway.balance("1").await, Some(5));
    let document = send(gateway.request(Method::GET, "/openapi.json")).await;
    assert!(
        !document.body.to_string().contains("nfenced/"),
        "it offers what it does not have"
    );

    let gateway = Gateway::start_with_unfenced_twins().await;
    let written = gateway.write("/v1/unfenced/accounts/1", None, 5).await;
    assert_eq!(written.status, 200, "{written:?}");
}

/// The story needs two accounts without a fence, and opens no third one.
#[tokio::test]
async fn while_the_live_page_plays_no_other_account_can_be_written_without_a_fence() {
    let gateway = Gateway::start().await;
    gateway.open_account().await;
    let settings = json!({ "ttl_ms": 500, "pause_ms": 600 });
    let play = gateway.request(Method::POST, "/live/run").json(&settings);
    assert_eq!(play.send().await.unwrap().status(), 202);
    let view = async || {
        let view = gateway.request(Method::GET, "/live/run").send().await;
        view.unwrap().json::<Value>().await.unwrap()
    };
    let tries = AtomicU32::new(0);
    until("it is played", async || {
        let refused = gateway.write("/v1/unfenced/accounts/1", None, 666).await;
        refused.assert_problem(404, "route-unknown");
        tries.fetch_add(1, Ordering::Relaxed);
        view().await["playing"] == json!(false)
    })
    .await;
    assert!(tries.into_inner() > 3, "it was over at once");
    let view = view().await;
    assert!(view["failure"].is_null(), "{view}");
    assert_eq!(gateway.balance("1").await, Some(5));
}
