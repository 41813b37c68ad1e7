//! The clients in `examples/clients`, run against a gateway.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

use crate::gateway::Gateway;

fn client(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../examples/clients", name]
        .iter()
        .collect()
}

/// Runs a client that writes late, and checks the answers that it prints.
async fn is_told(client: Command) {
    let gateway = Gateway::start().await;
    let mut client = client;
    client.env("GATEWAY", &gateway.url);
    let output = tokio::task::spawn_blocking(move || client.output()).await;
    let Output {
        status,
        stdout,
        stderr,
    } = output.unwrap().unwrap();
    let (said, errors) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{said}{errors}");
    let [stored, refused] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("two answers are printed, there are others: {said}{errors}")
    };
    assert!(stored.contains("150"), "{said}");
    assert!(
        refused.contains("412") && refused.contains("acquire the lock again"),
        "{said}"
    );
    assert_eq!(gateway.balance("42").await, Some(150));
}

#[tokio::test]
async fn a_client_in_curl_that_is_too_slow_learns_of_it() {
    let mut bash = Command::new("bash");
    bash.arg(client("too_slow.sh"));
    is_told(bash).await;
}

#[tokio::test]
async fn a_client_in_python_that_is_too_slow_learns_of_it() {
    let mut python = Command::new("python3");
    python.arg(client("too_slow.py"));
    is_told(python).await;
}

#[tokio::test]
async fn a_client_in_typescript_that_is_too_slow_learns_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let compiled = Command::new("tsc")
        .args(["--strict", "--target", "es2022", "--module", "es2022"])
        .args(["--lib", "es2022,dom", "--outDir"])
        .arg(folder.path())
        .arg(client("too_slow.mts"))
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let mut node = Command::new("node");
    node.arg(folder.path().join("too_slow.mjs"));
    is_told(node).await;
}
