//! Handovers that are not possible, and dry runs.

use std::process::Stdio;

use e2e::servers::until;
use lock_core::{LockManager, ResourceName, Ttl};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::handover::{
    command::{migrate, migrated, palisade, told},
    tally::RESOURCE,
    world::{Service, World},
};

/// One grant that was claimed.
async fn in_use(world: &World) {
    let protected = world.protected(&world.old).await;
    let guard = protected.acquire(RESOURCE).await.unwrap();
    guard.release().await.unwrap();
}

async fn mark(world: &World) -> u64 {
    let resource = ResourceName::new(RESOURCE).unwrap();
    let mark = world.store.high_water(&resource).await.unwrap();
    mark.unwrap().token().get()
}

async fn issuer(world: &World) -> String {
    let issuer = world.store.admin().issuer().await.unwrap();
    issuer.unwrap().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_tells_what_would_be_and_changes_nothing() {
    let world = World::start().await;
    in_use(&world).await;
    let dry = async || {
        let mut command = migrate(&world, &world.old, &world.new);
        told(&command.arg("--dry-run").output().await.unwrap())
    };
    for _ in 0..2 {
        let plan: Value = dry().await;
        assert_eq!(
            (&plan["issuer"], &plan["marks"]),
            (&"old".into(), &1.into())
        );
        assert!(plan["floor"].as_u64() > Some(mark(&world).await));
        assert_eq!(issuer(&world).await, "old");
    }
    in_use(&world).await;
    migrated(&world, &world.old, &world.new).await;
    let plan = dry().await;
    assert_eq!(
        (&plan["issuer"], &plan["marks"]),
        (&"new".into(), &0.into())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_for_an_impossible_handover_says_what_to_do() {
    let world = World::start().await;
    in_use(&world).await;
    let (new, store) = (world.new.url(), world.store_url());
    let closed = "redis://127.0.0.1:1";
    let to = |to| ["--to", to, "--store", store, "--yes"];
    let names = ["--from-issuer", "old", "--to-issuer", "new"];
    let third = ["--from-issuer", "third", "--to-issuer", "new"];
    let same = ["--from-issuer", "old", "--to-issuer", "old"];
    let memory = "--to memory: is in this process alone";
    for (arguments, more, code, says) in [
        (&to(new)[..], &same[..], 2, "with --to-issuer"),
        (&to(new), &third, 1, "takes tokens of \"old\""),
        (&to("memory:"), &names, 2, memory),
        (&to("reddis://h"), &names, 2, "--to reddis:"),
        (&to(closed), &names, 3, "--to is right"),
        (&to(new), &[], 2, "--from-issuer"),
        (&to(new)[..4], &names, 2, "no --yes"),
    ] {
        let mut command = palisade();
        let command = command.arg("migrate").args(arguments).args(more);
        let output = command.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(says), "{says:?} is not in: {said}");
        assert_eq!(issuer(&world).await, "old");
        in_use(&world).await;
    }
}

/// Nothing was changed, although each node has to be asked separately whether it serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redlock_that_does_not_serve_yet_is_an_error_before_anything_is_changed() {
    let world = World::moving_to(Service::new_redlock("new").await).await;
    in_use(&world).await;
    let mut command = migrate(&world, &world.old, &world.new);
    let output = command.arg("--yes").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("provision the nodes"), "{said}");
    in_use(&world).await;
}

/// The nodes grant only leases of at most 3 s, so the command has to ask for a short lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redlock_with_short_leases_is_handed_over_to() {
    let world = World::moving_to(Service::redlock_for("new", Ttl::secs(3)).await).await;
    in_use(&world).await;
    migrated(&world, &world.old, &world.new).await;
    let next = world.protected(&world.new).await;
    let acquire = next.acquire(RESOURCE);
    let guard = acquire.ttl(Ttl::secs(3)).await.unwrap();
    guard.begin().await.unwrap().commit().await.unwrap();
}

/// The new service answers, so a dry run finds no fault.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_service_that_cannot_grant_is_an_error_before_anything_is_changed() {
    let world = World::moving_to(Service::redis_that_cannot_grant("new").await).await;
    in_use(&world).await;
    let migrate = || migrate(&world, &world.old, &world.new);
    told(&migrate().arg("--dry-run").output().await.unwrap());
    let output = migrate().arg("--yes").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("the new lock service failed: nothing was changed"),
        "{said}"
    );
    in_use(&world).await;
}

/// The old server is gone. The command needs only its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_gone_for_good_is_handed_over_from() {
    let world = World::start().await;
    let zombie = world.protected(&world.old).await;
    let zombie = zombie.acquire(RESOURCE).await.unwrap();
    world.old.stop();
    let done = migrated(&world, &world.old, &world.new).await;
    assert!(done["floor"].as_u64() > Some(zombie.token().get()));
    assert!(zombie.begin().await.unwrap_err().is_fenced());
    let next = world.protected(&world.new).await;
    let guard = next.acquire(RESOURCE).await.unwrap();
    guard.begin().await.unwrap().commit().await.unwrap();
}

/// An open transaction holds a mark, so the command has to wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_leaves_a_handover_to_be_finished() {
    let world = World::start().await;
    let protected = world.protected(&world.old).await;
    let guard = protected.acquire(RESOURCE).await.unwrap();
    let tx = guard.begin().await.unwrap();
    let mut command = migrate(&world, &world.old, &world.new);
    let command = command.arg("--yes").stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until("the issuer changes", || async {
        issuer(&world).await == "new"
    })
    .await;
    let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("run it again to finish"), "{said}");
    tx.rollback().await.unwrap();
    migrated(&world, &world.old, &world.new).await;
    assert!(guard.begin().await.unwrap_err().is_fenced());
}

/// Operators and gateways say by which name the store knows the lock service.
/// Catches: a lease that is ended before the store was found to know its service by another name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_shut_out_by_force_under_the_name_of_its_service() {
    let world = World::start().await;
    let protected = world.protected(&world.old).await;
    let force = async |name: &[&str]| {
        let mut command = palisade();
        command
            .args(["force-release", "--lock", world.old.url(), RESOURCE])
            .args(["--store", world.store_url(), "--yes"])
            .args(name);
        command.output().await.unwrap()
    };
    let guard = protected.acquire(RESOURCE).await.unwrap();
    let nameless = force(&[]).await;
    assert_eq!(nameless.status.code(), Some(2), "{nameless:?}");
    // The command has noticed the mistake before anything was changed.
    let locks: LockManager = world.old.locks().await;
    let held = locks.inspect(guard.resource()).await.unwrap().holder;
    assert_eq!(held.map(|holder| holder.token), Some(guard.token()));
    let named = force(&["--issuer", "old"]).await;
    assert!(named.status.success(), "{named:?}");
    assert!(guard.begin().await.unwrap_err().is_fenced());
    assert!(
        locks
            .inspect(guard.resource())
            .await
            .unwrap()
            .holder
            .is_none()
    );
}
