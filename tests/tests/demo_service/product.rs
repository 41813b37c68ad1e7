//! `palisade` alone: the program for production has nothing of the story.

use std::process::Command;

use e2e::warden::workspace_binary;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    contract::CONTRACT,
    exit_codes::run,
    gateway::{Gateway, send},
};

/// Paths that only the demo has.
const OF_THE_DEMO: [&str; 8] = [
    "/",
    "/live/run",
    "/live/recording.json",
    "/v1/accounts/1",
    "/v1/jobs/1/s",
    "/v1/unfenced/accounts/1",
    "/v1/unfenced/jobs/1/s",
    "/v1/accounts/42",
];

async fn alone() -> (Gateway, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("store.db").display());
    (Gateway::start_alone(&["--store", &store]).await, folder)
}

/// Catches: an endpoint that reads, writes or starts processes for all clients, in production.
#[tokio::test]
async fn the_program_serves_leases_and_nothing_of_the_story() {
    let (gateway, _folder) = alone().await;
    let token = gateway.token("account:1", 60_000).await;
    let renewed = gateway.renew("account:1", &token).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    for path in OF_THE_DEMO {
        for method in [Method::GET, Method::PUT, Method::POST] {
            let request = gateway.request(method, path).json(&json!({ "balance": 1 }));
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
            let problem: Value = answer.json().await.unwrap();
            assert_eq!(
                problem["type"], "urn:palisade:problem:route-unknown",
                "{path}"
            );
        }
    }
    let released = gateway.release("account:1", &token).await;
    assert_eq!(released.status, 204, "{released:?}");
}

/// Catches: a document with a path that the gateway does not have, or without a path that it has.
#[tokio::test]
async fn its_document_is_that_of_the_demo_without_accounts_and_jobs() {
    let printed = Command::new(workspace_binary("palisade").unwrap())
        .arg("openapi")
        .output();
    let printed: Value = serde_json::from_slice(&printed.unwrap().stdout).unwrap();
    let whole = CONTRACT.document()["paths"].as_object().unwrap();
    let of_the_demo = |path: &&String| path.contains("/accounts") || path.contains("/jobs");
    let (theirs, ours): (Vec<_>, Vec<_>) = whole.keys().partition(of_the_demo);
    assert_eq!(theirs.len(), 4, "{theirs:?}");
    let paths = printed["paths"].as_object().unwrap();
    assert_eq!(paths.keys().collect::<Vec<_>>(), ours);
    assert!(!printed.to_string().contains("account-unknown"));
    let (gateway, _folder) = alone().await;
    let served = send(gateway.request(Method::GET, "/openapi.json")).await;
    assert!(served.body["paths"]["/v1/leases/{resource}"].is_object());
    assert!(served.body["paths"]["/v1/accounts/{id}"].is_null());
}

/// Catches: a program in production that starts and stops processes.
#[test]
fn palisade_plays_nothing() {
    for command in ["scenario", "draw", "worker"] {
        let output = run_product(&[command]);
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
    }
    for option in ["--live-page", "--unfenced"] {
        let output = run(&["serve", option]);
        assert_eq!(output.status.code(), Some(2), "{option}: {output:?}");
    }
}

fn run_product(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    command.args(arguments).output().unwrap()
}
