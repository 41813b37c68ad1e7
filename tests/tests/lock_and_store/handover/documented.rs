//! Runs the commands of docs/operations/another-lock-service.md.

use std::{env, path::Path};

use e2e::{project::tracked_files, warden::workspace_binary};
use serde_json::Value;
use tokio::process::Command;

use crate::handover::{tally::RESOURCE, world::World};

/// The commands of the page, exactly as the page has them.
fn commands() -> String {
    let files = tracked_files(Some("md"));
    let page = files.iter().find(|file| {
        file.path
            .ends_with("docs/operations/another-lock-service.md")
    });
    let blocks = page.unwrap().text.split("```sh\n").skip(1);
    blocks
        .map(|block| block.split_once("```").unwrap().0)
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_handover_goes_there_and_back() {
    let world = World::start().await;
    let old = world.protected(&world.old).await;
    let holder = old.acquire(RESOURCE).await.unwrap();
    let binary = workspace_binary("palisade").unwrap();
    let mut path = vec![binary.parent().map(Path::to_path_buf).unwrap()];
    path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands()])
        .env("PATH", env::join_paths(path).unwrap())
        .env("OLD", world.old.url())
        .env("NEW", world.new.url())
        .env("STORE", world.store_url())
        .output()
        .await
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let [plan, there, back] = &answers[..] else {
        panic!("three answers are printed, there are others: {said}")
    };
    assert_eq!(
        (&plan["dry_run"], &plan["marks"]),
        (&true.into(), &1.into())
    );
    assert_eq!((&there["to"], &there["sealed"]), (&"new".into(), &1.into()));
    assert_eq!((&back["to"], &back["sealed"]), (&"old".into(), &1.into()));
    assert!(holder.begin().await.unwrap_err().is_fenced());
    holder.release().await.unwrap();
    let next = old.acquire(RESOURCE).await.unwrap();
    next.begin().await.unwrap().commit().await.unwrap();
}
