//! The log of the gateway goes to a pipe without a reader, as of a log collector that is stuck.

use std::{process::Stdio, time::Duration};

use e2e::warden::workspace_binary;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

/// How many requests are sent. Each makes a line of more than a hundred bytes, and a pipe takes 64
/// KiB.
const REQUESTS: usize = 2_000;

/// The time for all requests. They take less than two seconds.
const IN_TIME: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_log_without_a_reader_delays_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let mut gateway = Command::new(workspace_binary("palisade").unwrap())
        .args(["serve", "--addr", "127.0.0.1:0", "--store", &store])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(gateway.stdout.take().unwrap()).lines();
    let line = said.next_line().await.unwrap().unwrap();
    let url = line.split_whitespace().nth(2).unwrap();
    let client = reqwest::Client::new();
    let all = async {
        for _ in 0..REQUESTS {
            let answer = client.get(format!("{url}/healthz")).send().await.unwrap();
            assert!(answer.status().is_success());
        }
    };
    timeout(IN_TIME, all)
        .await
        .expect("the gateway waits for somebody to read its log");
}
