use std::process::{Output, Stdio};

use e2e::warden::workspace_binary;
use serde_json::Value;
use tokio::process::Command;

use crate::handover::world::{Service, World};

/// `palisade migrate` from one service to another, as a script runs it.
pub(crate) fn migrate(world: &World, from: &Service, to: &Service) -> Command {
    let mut command = palisade();
    command
        .args(["migrate", "--from-issuer", from.name])
        .args(["--to", to.url(), "--to-issuer", to.name])
        .args(["--store", world.store_url(), "--json"]);
    command
}

pub(crate) fn palisade() -> Command {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    command
        .env_remove("PALISADE_STORE")
        .env_remove("PALISADE_LOCK")
        .env_remove("PALISADE_ISSUER")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// Runs the command to its end, which must be a success.
pub(crate) async fn migrated(world: &World, from: &Service, to: &Service) -> Value {
    let output = migrate(world, from, to).arg("--yes").output().await;
    told(&output.unwrap())
}

/// The JSON object that the command printed.
pub(crate) fn told(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
