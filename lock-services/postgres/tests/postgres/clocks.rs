//! The clock of the database is set, by an hour forward or back.

use std::time::Duration;

use e2e::{
    process::Process,
    servers::{ClockOffset, DatabaseServer, until},
};
use fenced_store::FenceError;
use lock_core::{
    Attempt, ErrorKind, FencingToken, Holder, Issuer, LockManager, LostReason, Sequencer, Ttl,
    backend::{AcquireRequest, AttemptRef, LockBackend as _, LockBackendExt, TokioRuntime},
};
use sqlx::PgPool;
use tokio::time::timeout;

use crate::{
    bank::Bank,
    cases::OnPostgres,
    world::{connect, count, manager, migrate, named},
};

const TTL: Ttl = Ttl::secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(30);

/// A query for the database's clock.
const NOW: &str = "select extract(epoch from clock_timestamp())::bigint";

/// Sets the clock of the database by this offset, also for connections that exist already.
async fn set_clock(server: &DatabaseServer, pool: &PgPool, by: ClockOffset) {
    let before = count(pool, NOW).await;
    server.set_clock(by);
    let jump = count(pool, NOW).await - before;
    assert!(jump.abs() > 3000, "it does not see its clock: {jump} s");
}

/// Acquires and releases. Returns the token.
async fn token(locks: &LockManager, resource: &str) -> FencingToken {
    let guard = locks
        .acquire(resource)
        .ttl(TTL)
        .wait(PATIENCE)
        .await
        .unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_rise_although_the_clock_of_the_database_goes_back_by_an_hour() {
    let server = DatabaseServer::postgres_with_own_clock().await;
    let bank = Bank::<OnPostgres>::open(server.url(), "account:1").await;
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let mut last = token(&locks, "r").await;
    let held = bank.acquire(&locks, TTL).await.unwrap();
    for offset in [
        ClockOffset::Behind(HOUR),
        ClockOffset::Ahead(HOUR),
        ClockOffset::Behind(HOUR),
    ] {
        set_clock(&server, bank.pool(), offset).await;
        for locks in [&locks, &other] {
            let next = token(locks, "r").await;
            assert!(next > last, "{offset:?}: {next} after {last}");
            last = next;
        }
        if offset == ClockOffset::Behind(HOUR) && held.is_held() {
            // The lease lasts longer, and no other client gets it.
            let attempt = other.try_acquire("account:1").await.unwrap();
            assert!(matches!(attempt, Attempt::Held { .. }), "{attempt:?}");
        }
    }
}

/// The lease has ended for all clients but its holder, which counts by a clock of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_whose_lease_ended_by_a_jump_of_the_clock_is_refused_by_the_store() {
    let server = DatabaseServer::postgres_with_own_clock().await;
    let bank = Bank::<OnPostgres>::open(server.url(), "account:1").await;
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let renewing = locks.acquire("renewing").ttl(Ttl::secs(3)).await.unwrap();
    let first = bank.pause(&locks, TTL).await;
    set_clock(&server, bank.pool(), ClockOffset::Ahead(HOUR)).await;
    // The other client acquires without waiting for the end of the ttl.
    bank.overtake(&other).await;
    assert!(first.guard.is_held());
    let refused = first.goes_on(&bank).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    assert_eq!(bank.assert_sound().await, 1);
    // The control.
    assert_eq!(bank.lost_from_twin().await, 1);
    // A holder that renews learns of the loss.
    let lost = timeout(PATIENCE, renewing.lost())
        .await
        .expect("the holder learns of it");
    assert_eq!(lost.reason(), LostReason::NotHolder);
}

/// After the jump the waiter's last sign of life is in the future.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_died_before_the_clock_went_back_is_passed_over() {
    let server = DatabaseServer::postgres_with_own_clock().await;
    migrate(server.url()).await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    let locks = manager(server.url()).await;
    let waiting = async |number| {
        let waiters = "select count(*) from fenced.waiter";
        until("it waits", async || count(&pool, waiters).await == number).await;
    };
    let first = locks.acquire("r").ttl(TTL).await.unwrap();
    let holds = ["hold", "--lock", server.url(), "--resource", "r"];
    let mut dead = Process::spawn("e2e-worker", [&holds[..], &["--ttl-ms", "2000"]].concat());
    waiting(1).await;
    let waiter = locks.clone();
    let next = tokio::spawn(async move { waiter.acquire("r").ttl(TTL).await });
    waiting(2).await;
    dead.kill().await;
    set_clock(&server, &pool, ClockOffset::Behind(HOUR)).await;
    first.release().await.unwrap();
    let next = timeout(PATIENCE, next)
        .await
        .expect("it waits for the dead");
    next.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ended_acquisition_stays_ended_although_the_clock_goes_back() {
    let server = DatabaseServer::postgres_with_own_clock().await;
    migrate(server.url()).await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    let backend = connect(server.url()).await;
    let attempt = AttemptRef::new(&TokioRuntime, named("r"), Holder::random());
    let request = AcquireRequest::new(attempt, TTL);
    let grant = backend.acquire(&request).await.unwrap().granted().unwrap();
    let issuer = Issuer::new("postgres").unwrap();
    let lease = Sequencer::new(issuer, named("r"), grant.token, request.attempt.holder);
    backend.release(&lease, true).await.unwrap();
    set_clock(&server, &pool, ClockOffset::Behind(HOUR)).await;
    let error = backend.acquire(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Released, "{error}");
}
