//! Operators bring the nodes of a Redlock service into service and take them out.

use std::process::Stdio;

use e2e::{servers::RedlockServers, warden::workspace_binary};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::operator_commands::run;

/// A subcommand of `redlock`: its exit code, and the states of the nodes in its output.
async fn redlock(arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let output = run(&[&["redlock"], arguments, &["--json"]].concat()).await;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let nodes = told["nodes"].as_array().into_iter().flatten();
    let states = nodes.map(|node| node["state"].as_str().unwrap().to_owned());
    (output.status.code(), states.collect())
}

fn with_lock<'a>(words: &[&'a str], url: &'a str) -> Vec<&'a str> {
    [words, &["--lock", url]].concat()
}

/// Runs `heal` until it only waits for leases that may go on, and kills it.
async fn killed_while_it_heals(url: &str, node: &str) {
    let mut heal = tokio::process::Command::new(workspace_binary("palisade").unwrap())
        .args(["redlock", "heal", "--yes", "--json", "--lock", url, node])
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(heal.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("it goes on");
        let told: Value = serde_json::from_str(&line).unwrap();
        if told["quiet_ms"].is_u64() {
            break;
        }
        assert!(told["counters_seen"].is_u64(), "{line}");
    }
    heal.kill().await.unwrap();
}

#[tokio::test]
async fn nodes_are_provisioned_healed_and_retired_from_the_command_line() {
    let servers = RedlockServers::start(3).await;
    let url = servers.url();
    let all = |state: &str| vec![state.to_owned(); 3];
    assert_eq!(
        redlock(&with_lock(&["status"], &url)).await,
        (Some(1), all("uninitialised"))
    );
    let early = run(&["scenario", "--lock", &url, "--quiet"]).await;
    assert_eq!(early.status.code(), Some(3), "{early:?}");
    let told = String::from_utf8(early.stderr).unwrap();
    assert!(told.contains("provision"), "{told}");
    let unsure = run(&with_lock(&["redlock", "provision"], &url)).await;
    assert_eq!(unsure.status.code(), Some(2), "{unsure:?}");
    assert_eq!(
        redlock(&with_lock(&["status"], &url)).await.1,
        all("uninitialised")
    );
    let provision = with_lock(&["provision", "--yes", "--longest-ttl", "10s"], &url);
    assert_eq!(redlock(&provision).await, (Some(0), all("serving")));
    assert_eq!(redlock(&provision).await, (Some(0), all("serving")));

    let node = servers.nodes()[1].address();
    servers.nodes()[1].restart_empty().await;
    let (code, states) = redlock(&with_lock(&["status"], &url)).await;
    assert_eq!((code, states[1].as_str()), (Some(0), "uninitialised"));
    assert_eq!(redlock(&provision).await.0, Some(1), "some serve");
    killed_while_it_heals(&url, node).await;
    let (code, states) = redlock(&with_lock(&["status"], &url)).await;
    assert_eq!((code, states[1].as_str()), (Some(0), "healing"));
    for _ in 0..2 {
        let (code, states) = redlock(&with_lock(&["heal", "--yes", node], &url)).await;
        assert_eq!((code, states[1].as_str()), (Some(0), "serving"));
    }
    let (code, states) = redlock(&with_lock(&["retire", "--yes", node], &url)).await;
    assert_eq!((code, states[1].as_str()), (Some(0), "retired"));
    assert_eq!(
        redlock(&with_lock(&["heal", "--yes", node], &url)).await.0,
        Some(1)
    );

    assert_eq!(
        redlock(&with_lock(&["heal", "--yes", "127.0.0.1:1"], &url))
            .await
            .0,
        Some(2)
    );
    let two = url.rsplit_once(',').unwrap().0;
    assert_eq!(redlock(&["status", "--lock", two]).await.0, Some(2));
    let words = run(&with_lock(&["redlock", "status"], &url)).await;
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.contains(&format!("{node}: retired\n")), "{words}");
    servers.nodes()[1].kill().await;
    assert_eq!(
        redlock(&with_lock(&["heal", "--yes", node], &url)).await.0,
        Some(3)
    );
}
