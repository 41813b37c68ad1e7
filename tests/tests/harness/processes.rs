//! The harness runs, stops and kills a program of the workspace.

use std::panic;

use e2e::{process::Process, signal::state};

async fn idle() -> Process {
    let mut process = Process::spawn("e2e-server-owner", ["idle"]);
    assert_eq!(process.line().await.as_deref(), Some("idle"));
    process
}

#[tokio::test]
async fn a_paused_process_stands_still_until_it_is_resumed() {
    let process = idle().await;
    process.pause().await;
    assert_eq!(state(process.id()), Some('T'));
    process.resume();
    assert_ne!(state(process.id()), Some('T'));
    process.pause().await;
    assert_eq!(state(process.id()), Some('T'));
}

#[tokio::test]
async fn a_killed_process_is_gone_even_if_it_was_stopped() {
    let mut process = idle().await;
    process.pause().await;
    process.kill().await;
    assert_eq!(process.line().await, None);
    assert_eq!(state(process.id()), None);
}

#[test]
fn a_program_that_was_not_built_is_named() {
    let spawned = panic::catch_unwind(|| Process::spawn("no-such-program", [""; 0]).id());
    let panic = spawned.unwrap_err();
    let message = panic.downcast_ref::<String>().unwrap();
    assert!(message.contains("scripts/test build"), "{message}");
}
