//! The server is killed under load. No lease and no accepted write is lost, and no token is issued
//! twice.

use std::{
    future::IntoFuture,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use e2e::servers::{MySqlServer, until};
use fenced_store::FenceError;
use lock_core::{FencingToken, LeaseGuard, LockManager, Ttl};
use sqlx::MySqlPool;
use tokio::time::timeout;

use crate::{
    bank::Bank,
    world::{count, manager, named, on_each_server},
};

const ROUNDS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(30);
const TTL: Ttl = Ttl::secs(20);

/// Over before the server is up again.
const SHORT: Ttl = Ttl::millis(200);

async fn waits(url: &str) {
    let pool = MySqlPool::connect(url).await.unwrap();
    let waiters = "select count(*) from fenced_waiter where resource = 'r'";
    until("it waits", async || count(&pool, waiters).await == 1).await;
    pool.close().await;
}

async fn holder_of(locks: &LockManager) -> Option<FencingToken> {
    let seen = locks.inspect(&named("r")).await.unwrap();
    seen.holder.map(|holder| holder.token)
}

async fn acquire(locks: LockManager) -> LeaseGuard {
    let acquire = locks.acquire("r").ttl(TTL).into_future();
    timeout(PATIENCE, acquire)
        .await
        .expect("an answer")
        .unwrap()
}

/// In each round one client holds, one waits, one stands still past the end of its lease, and
/// others write without a pause.
async fn a_crash_loses_no_lease_and_waiters_are_served_after_it<S: MySqlServer>() {
    let server = S::start().await;
    let (bank, stale) = (
        Arc::new(Bank::open(server.url(), "account:1").await),
        Bank::open(server.url(), "account:2").await,
    );
    let (locks, others) = (manager(server.url()).await, manager(server.url()).await);
    let over = Arc::new(AtomicBool::new(false));
    let workers = bank.work(vec![locks.clone(), others.clone(), others.clone()], &over);
    let mut last = None;
    for round in 0..ROUNDS {
        let paused = stale.pause(&locks, SHORT).await;
        let guard = acquire(locks.clone()).await;
        assert!(Some(guard.token()) > last, "round {round}");
        let next = tokio::spawn(acquire(others.clone()));
        waits(server.url()).await;
        server.kill().await;
        server.start_again().await;
        until("it answers", async || {
            locks.inspect(&named("r")).await.is_ok()
        })
        .await;
        let held = holder_of(&locks).await;
        assert_eq!(held, Some(guard.token()), "round {round}");
        let first = guard.token();
        guard.release().await.unwrap();
        let next = next.await.unwrap();
        assert!(next.token() > first, "round {round}");
        last = Some(next.token());
        next.release().await.unwrap();

        stale.overtake(&others).await;
        let refused = paused.goes_on(&stale).await.unwrap_err();
        assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    }
    over.store(true, Ordering::Relaxed);
    workers.join_all().await;
    let written = bank.assert_sound().await;
    println!(
        "{ROUNDS} crashes, {written} writes, {} accepted",
        bank.accepted()
    );
    assert!(bank.accepted() > ROUNDS, "hardly anybody wrote");
    assert_eq!(stale.assert_sound().await, ROUNDS);
    // The control.
    assert_eq!(stale.lost_from_twin().await, i64::try_from(ROUNDS).unwrap());
}

on_each_server!(a_crash_loses_no_lease_and_waiters_are_served_after_it);
