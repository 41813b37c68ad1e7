//! What the README does with curl, done.

use std::process::Command;

use e2e::project::tracked_files;
use serde_json::Value;

use crate::gateway::Gateway;

/// The block of shell commands that talks to the gateway.
fn commands() -> String {
    let readme = tracked_files(Some("md"))
        .into_iter()
        .find(|file| file.path.parent() == Some("".as_ref()) && file.path.ends_with("README.md"));
    let text = readme.unwrap().text;
    let blocks = text.split("```sh\n").skip(1);
    let mut blocks = blocks.map(|block| block.split_once("```").unwrap().0);
    blocks
        .find(|block| block.contains("curl"))
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_client_that_is_too_slow_is_told_by_curl() {
    let gateway = Gateway::start().await;
    let (commands, url) = (commands(), gateway.url.clone());
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &commands])
        .env("GATEWAY", url);
    let output = tokio::task::spawn_blocking(move || bash.output())
        .await
        .unwrap()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [written, refused] = &answers[..] else {
        panic!("two answers are told, there are others: {said}")
    };
    assert_eq!(written["balance"], 150);
    assert_eq!(refused["status"], 412, "{refused}");
    assert!(
        refused["detail"]
            .as_str()
            .unwrap()
            .contains("acquire the lock again"),
        "{refused}"
    );
    assert_eq!(gateway.balance("42").await, Some(150));
}
