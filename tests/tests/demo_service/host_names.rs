//! A gateway that a browser of the same machine can reach only answers under names that no foreign
//! page can have.

use e2e::process::Process;
use reqwest::{Method, RequestBuilder, header::HOST};
use serde_json::json;
use tempfile::TempDir;

use crate::gateway::{Answer, Gateway, send};

/// Names that others can make point to 127.0.0.1, or that look like ours.
const FOREIGN: [&str; 6] = [
    "evil.example",
    "evil.example:8080",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "10.0.0.1",
    "",
];

async fn as_host(request: RequestBuilder, host: &str) -> Answer {
    send(request.header(HOST, host)).await
}

async fn health(gateway: &Gateway, host: &str) -> u16 {
    let answer = as_host(gateway.request(Method::GET, "/healthz"), host).await;
    answer.status.as_u16()
}

#[tokio::test]
async fn under_a_foreign_name_that_points_here_nothing_is_done() {
    let gateway = Gateway::start_with_unfenced_twins().await;
    gateway.write("/v1/unfenced/accounts/1", None, 5).await;
    let token = gateway.token("account:1", 60_000).await;
    let lease = json!({ "ttl_ms": 1000 });
    let balance = json!({ "balance": 666 });
    for host in FOREIGN {
        let requests = [
            gateway.request(Method::POST, "/v1/leases/r").json(&lease),
            gateway
                .request(Method::DELETE, "/v1/leases/account:1")
                .header("fencing-token", &token),
            gateway
                .request(Method::PUT, "/v1/unfenced/accounts/1")
                .json(&balance),
            gateway
                .request(Method::PUT, "/v1/accounts/1")
                .header("fencing-token", &token)
                .json(&balance),
            gateway.request(Method::GET, "/v1/accounts/1"),
            gateway.request(Method::GET, "/healthz"),
            gateway.request(Method::GET, "/openapi.json"),
            gateway.request(Method::GET, "/docs/"),
            gateway.request(Method::GET, "/nothing"),
        ];
        for request in requests {
            let answer = as_host(request, host).await;
            answer.assert_problem(421, "misdirected");
        }
    }
    assert_eq!(gateway.balance("1").await, Some(5));
    let free = send(gateway.request(Method::GET, "/v1/leases/r")).await;
    assert!(free.body["lease"].is_null(), "{free:?}");
    assert_eq!(gateway.release("account:1", &token).await.status, 204);
}

#[tokio::test]
async fn under_names_of_the_machine_it_answers_whatever_the_port() {
    let gateway = Gateway::start().await;
    let port = gateway.addr().rsplit(':').next().unwrap();
    for name in ["localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "[::1]"] {
        for host in [
            name.to_owned(),
            format!("{name}:{port}"),
            format!("{name}:9"),
        ] {
            assert_eq!(health(&gateway, &host).await, 200, "{host}");
        }
    }
    let [one, other] = ["localhost", "evil.example"].map(|name| format!("{name}:{port}"));
    let request = gateway.request(Method::GET, "/healthz").header(HOST, one);
    let two = as_host(request, &other).await;
    two.assert_problem(421, "misdirected");
}

#[tokio::test]
async fn other_names_are_allowed_by_a_setting() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let names = "locks.example, other.example, 10.0.0.7, fd00::7";
    let gateway = Gateway::start_with(&["--store", &store, "--allowed-hosts", names]).await;
    for host in [
        "locks.example",
        "Locks.Example:443",
        "other.example",
        "10.0.0.7:8080",
        "[fd00::7]:8080",
        "localhost",
    ] {
        assert_eq!(health(&gateway, host).await, 200, "{host}");
    }
    for host in [
        "example",
        "evil.locks.example",
        "locks.example.evil",
        "[fd00::8]",
    ] {
        assert_eq!(health(&gateway, host).await, 421, "{host}");
    }
}

/// A gateway that other machines can reach, and its address for this test.
pub(crate) async fn for_other_machines(more: &[&str]) -> (Process, TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let arguments = ["serve", "--addr", "0.0.0.0:0", "--store", &store];
    let mut process = Process::spawn("palisade-demo", arguments.iter().chain(more));
    let line = process.line().await.unwrap();
    let port = line.split_once("0.0.0.0:").unwrap().1;
    let port = port.split(' ').next().unwrap();
    (process, folder, format!("http://127.0.0.1:{port}"))
}

#[tokio::test]
pub(crate) async fn for_other_machines_it_answers_under_any_name() {
    let (_process, _folder, url) = for_other_machines(&[]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for host in FOREIGN {
        let answer = as_host(http.get(format!("{url}/v1/leases/r")), host).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    // For other machines there is no page that starts processes.
    for path in ["", "live/run", "live/changes"] {
        let answer = send(http.get(format!("{url}/{path}"))).await;
        answer.assert_problem(404, "route-unknown");
    }
}

/// An operator who names hosts wants all others refused, wherever the gateway listens. Balancers
/// ask for its health under the address that they know.
#[tokio::test]
pub(crate) async fn for_other_machines_it_answers_under_the_names_that_are_given_and_no_others() {
    let (_process, _folder, url) =
        for_other_machines(&["--unfenced", "--allowed-hosts", "locks.example"]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    for host in [
        "locks.example",
        "Locks.Example:443",
        "localhost",
        "127.0.0.1:1",
    ] {
        let answer = as_host(http.get(format!("{url}/v1/leases/r")), host).await;
        assert_eq!(answer.status, 200, "{host}");
    }
    for host in FOREIGN {
        for path in ["/healthz", "/readyz"] {
            let answer = as_host(http.get(format!("{url}{path}")), host).await;
            assert_eq!(answer.status, 200, "{host} {path}");
        }
        for path in [
            "/v1/accounts/1",
            "/metrics",
            "/openapi.json",
            "/healthz/",
            "/",
        ] {
            let answer = as_host(http.get(format!("{url}{path}")), host).await;
            answer.assert_problem(421, "misdirected");
        }
        let write = http.put(format!("{url}/v1/unfenced/accounts/1"));
        let answer = as_host(write.json(&json!({ "balance": 666 })), host).await;
        answer.assert_problem(421, "misdirected");
    }
    let unwritten = as_host(http.get(format!("{url}/v1/accounts/1")), "locks.example").await;
    unwritten.assert_problem(404, "account-unknown");
}

/// Clients of a proxy, and of a gateway whose operator names hosts, get the live page only if the
/// operator asks for this.
#[tokio::test]
async fn the_live_page_is_not_for_clients_of_a_proxy_unless_it_is_asked_for() {
    let proxied = ["--allowed-hosts", "locks.example"];
    let operated = ["--admin-token", "0123456789abcdef"];
    for (more, has_page) in [
        (&[][..], true),
        (&["--live-page=false"], false),
        (&proxied, false),
        (&operated, false),
        (&[&proxied[..], &["--live-page"]].concat(), true),
        (&[&operated[..], &["--live-page"]].concat(), true),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
        let gateway = Gateway::start_with(&[&["--store", &store][..], more].concat()).await;
        for path in ["/", "/live/run", "/live/changes"] {
            let asked = gateway.request(Method::GET, path).send().await.unwrap();
            let expected = if has_page { 200 } else { 404 };
            assert_eq!(asked.status().as_u16(), expected, "{more:?} {path}");
        }
    }
}

/// The live page starts processes for each visitor.
#[tokio::test]
async fn the_live_page_is_for_no_other_machine() {
    let arguments = [
        "serve",
        "--addr",
        "0.0.0.0:0",
        "--store",
        "sqlite::memory:",
        "--live-page",
    ];
    let mut process = Process::spawn("palisade-demo", arguments);
    assert_eq!(process.finish().await.code(), Some(2));
}
