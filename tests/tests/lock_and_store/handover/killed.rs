//! The command that hands over is killed after each step, and is run again or turned back.

use std::process::Stdio;

use fenced_store::{FenceError, FencedLockError};
use lock_core::FencingToken;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::handover::{
    command::{migrate, migrated},
    tally::RESOURCE,
    world::{Service, World},
};

/// The lines that the command prints after each of its steps.
const STEPS: [&str; 2] = ["the store takes no claim of ", "marks sealed: 1"];

/// Kills the command as soon as it has printed this.
async fn killed_after(world: &World, from: &Service, to: &Service, step: &str) {
    let mut command = migrate(world, from, to);
    let mut child = command
        .arg("--yes")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap();
        let line = line.unwrap_or_else(|| panic!("it ended before it said {step:?}"));
        if line.contains(step) {
            break;
        }
    }
    child.kill().await.unwrap();
}

/// Checks that the service is the current one, and grants tokens above all earlier ones.
async fn serves(world: &World, service: &Service, above: FencingToken) -> FencingToken {
    let protected = world.protected(service).await;
    let guard = protected.acquire(RESOURCE).await.unwrap();
    assert!(
        guard.token() > above,
        "{} is not above {above}",
        guard.token()
    );
    guard.begin().await.unwrap().commit().await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// Checks that the replaced service goes on granting, and that the store accepts none of its
/// grants.
async fn is_replaced(world: &World, service: &Service) {
    match world.protected(service).await.acquire(RESOURCE).await {
        Err(FencedLockError::Store(FenceError::WrongIssuer { .. })) => {}
        other => panic!("{} is in place: {other:?}", service.name),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handover_may_be_killed_after_any_step_and_repeated() {
    let world = World::start().await;
    let (mut from, mut to) = (&world.old, &world.new);
    let mut last = serves(&world, from, FencingToken::MIN).await;
    for step in STEPS {
        let stale = from.locks().await.try_acquire(RESOURCE).await.unwrap();
        let stale = stale.granted().unwrap();
        killed_after(&world, from, to, step).await;
        migrated(&world, from, to).await;
        let refused = world.store.claim(stale.sequencer()).await.unwrap_err();
        assert!(refused.is_fenced(), "after {step:?}: {refused}");
        stale.release().await.unwrap();
        last = serves(&world, to, last).await;
        is_replaced(&world, from).await;
        (from, to) = (to, from);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handover_that_was_killed_after_any_step_can_be_turned_back() {
    let world = World::start().await;
    let (old, new) = (&world.old, &world.new);
    let mut last = serves(&world, old, FencingToken::MIN).await;
    for step in STEPS {
        killed_after(&world, old, new, step).await;
        migrated(&world, new, old).await;
        last = serves(&world, old, last).await;
        is_replaced(&world, new).await;
    }
}
