//! Processes that are killed or stopped while they hold or wait.

use std::{future::IntoFuture, time::Duration};

use e2e::process::Process;
use lock_core::{
    ErrorKind, LeaseGuard, LockManager, Released, Ttl,
    backend::{Runtime, TokioRuntime},
};
use serde_json::{Value, json};
use sqlx::Pool;
use tokio::{task::JoinHandle, time::timeout};

use super::{Database, until_waiting};

const PATIENCE: Duration = Duration::from_secs(30);

/// After this time a waiter without a sign of life is passed over.
const SILENCE: Duration = Duration::from_secs(3);

/// The time that is allowed for the delay of a busy machine, and for the pause between two looks.
const SLACK: Duration = Duration::from_secs(4);

struct World<D: Database> {
    database: D,
    pool: Pool<D::Db>,
    locks: LockManager,
}

impl<D: Database> World<D> {
    async fn new() -> Self {
        let database = D::fresh().await;
        Self {
            pool: database.pool().await,
            locks: palisade::connect(database.url()).await.unwrap(),
            database,
        }
    }

    fn worker(&self, ttl_ms: &str) -> Process {
        let url = self.database.url();
        let arguments = [
            "hold",
            "--lock",
            &url,
            "--resource",
            "r",
            "--ttl-ms",
            ttl_ms,
        ];
        Process::spawn("e2e-worker", arguments)
    }

    async fn acquire(&self) -> LeaseGuard {
        next(self.locks.clone()).await
    }

    fn waiter(&self) -> JoinHandle<LeaseGuard> {
        tokio::spawn(next(self.locks.clone()))
    }

    /// Stops a process, but not in the middle of a write, because that stops all users of a file.
    async fn stop(&self, process: &mut Process) {
        loop {
            process.pause().await;
            match self.locks.acquire("free").await {
                Ok(free) => {
                    free.release().await.unwrap();
                    return;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
            process.resume();
        }
    }

    async fn until_waiting(&self, waiters: i64) {
        until_waiting::<D>(&self.pool, "r", waiters).await;
    }
}

async fn next(locks: LockManager) -> LeaseGuard {
    let acquire = locks.acquire("r").ttl(Ttl::secs(60)).into_future();
    timeout(PATIENCE, acquire).await.expect("its turn").unwrap()
}

fn token(held: &Value) -> u64 {
    held["acquired"].as_u64().unwrap()
}

async fn is_passed_over<D: Database>(stop: bool) {
    let world = World::<D>::new().await;
    let first = world.acquire().await;
    let mut failing = world.worker("2000");
    world.until_waiting(1).await;
    let next = world.waiter();
    world.until_waiting(2).await;
    if stop {
        world.stop(&mut failing).await;
    } else {
        failing.kill().await;
    }
    first.release().await.unwrap();
    let failed = TokioRuntime.now();
    let next = next.await.unwrap();
    let took = TokioRuntime.now().since(failed);
    println!("stopped {stop}: {took:?}");
    assert!(took < SILENCE + SLACK, "{took:?}");
    if stop {
        // The process takes a new place, and does not come back to its old place.
        failing.resume();
        world.until_waiting(1).await;
        let token_before = next.token().get();
        assert_eq!(next.release().await.unwrap(), Released::Released);
        let held: Value = failing.event().await;
        assert!(token(&held) > token_before, "{held}");
    }
}

pub(crate) async fn a_waiter_that_was_killed_or_stopped_is_passed_over<D: Database>() {
    tokio::join!(is_passed_over::<D>(false), is_passed_over::<D>(true));
}

async fn costs_its_ttl<D: Database>(stop: bool) {
    const TTL: Duration = Duration::from_secs(1);
    let world = World::<D>::new().await;
    let mut failing = world.worker("1000");
    let held: Value = failing.event().await;
    let next = world.waiter();
    world.until_waiting(1).await;
    if stop {
        world.stop(&mut failing).await;
    } else {
        failing.kill().await;
    }
    let failed = TokioRuntime.now();
    let next = next.await.unwrap();
    let took = TokioRuntime.now().since(failed);
    println!("stopped {stop}: {took:?}");
    assert!(took < TTL + SLACK, "{took:?}");
    assert!(next.token().get() > token(&held));
    if stop {
        failing.resume();
        failing.send(&"release").await;
        let told: Value = failing.event().await;
        assert_eq!(told, json!({ "lost": true, "released": "NotHolder" }));
    }
    assert_eq!(next.release().await.unwrap(), Released::Released);
}

pub(crate) async fn a_holder_that_was_killed_or_stopped_costs_the_next_one_its_ttl<D: Database>() {
    tokio::join!(costs_its_ttl::<D>(false), costs_its_ttl::<D>(true));
}

/// Catches: a release that only the waiters of the same process see.
pub(crate) async fn a_waiter_sees_the_release_of_another_process<D: Database>() {
    let world = World::<D>::new().await;
    let mut holder = world.worker("60000");
    let held: Value = holder.event().await;
    let next = world.waiter();
    world.until_waiting(1).await;
    holder.send(&"release").await;
    let next = next.await.unwrap();
    assert!(next.token().get() > token(&held));
}
