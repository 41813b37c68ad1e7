//! A standby takes the place of the server, with the last grants or without them.

use std::sync::Arc;

use e2e::{
    servers::{DatabaseServer, until},
    signal,
};
use fenced_store::FenceError;
use lock_core::{
    Attempt, LockManager, Ttl,
    backend::{ConnectOptions, TokioRuntime},
};
use palisade_postgres::PostgresBackend;
use rustix::process::{Pid, Signal, kill_process};
use sqlx::PgPool;

use crate::{
    bank::Bank,
    cases::OnPostgres,
    world::{count, migrate, named},
};

const TTL: Ttl = Ttl::secs(60);

/// Clients whose connections the test can send to another server.
struct Clients {
    pool: PgPool,
    locks: LockManager,
}

impl Clients {
    async fn of(server: &DatabaseServer) -> Self {
        let pool = PgPool::connect(server.url()).await.unwrap();
        let (options, runtime) = (ConnectOptions::default(), Arc::new(TokioRuntime));
        let backend = PostgresBackend::on(pool.clone(), options, runtime)
            .await
            .unwrap();
        Self {
            pool,
            locks: LockManager::builder().build(backend).unwrap(),
        }
    }
}

/// From here on there is the standby behind the name of the server.
async fn fail_over(server: &DatabaseServer, standby: &DatabaseServer, pools: &[&PgPool]) {
    server.kill().await;
    standby.promote().await;
    for pool in pools {
        pool.set_connect_options(standby.url().parse().unwrap());
    }
}

/// It does not know of the first holder, so there are two. The store refuses the one with the
/// smaller token, as soon as the other one has claimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_holders_by_a_standby_that_lacked_the_last_grant_the_store_refuses_the_older_one() {
    let server = DatabaseServer::postgres(&[]).await;
    let bank = Bank::<OnPostgres>::open(server.url(), "account:1").await;
    let (one, other) = (Clients::of(&server).await, Clients::of(&server).await);
    let earlier = bank.acquire(&one.locks, TTL).await.unwrap();
    bank.deposit(earlier.sequencer()).await.unwrap();
    earlier.release().await.unwrap();
    let standby = server.lagging_standby().await;
    let first = bank.pause(&one.locks, TTL).await;

    fail_over(&server, &standby, &[bank.pool(), &one.pool, &other.pool]).await;
    // The end of the lease was not waited for.
    bank.overtake(&other.locks).await;
    assert!(
        first.guard.remaining().is_ok(),
        "it knows that it has lost its lease"
    );
    let refused = first.goes_on(&bank).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    assert_eq!(bank.assert_sound().await, 2);
    // The control.
    assert_eq!(bank.lost_from_twin().await, 1);
}

/// The process of a standby that receives what the server has flushed.
struct Receiver(Pid);

impl Receiver {
    async fn of(standby: &DatabaseServer) -> Self {
        let pool = PgPool::connect(standby.url()).await.unwrap();
        let receiver = "select pid::bigint from pg_stat_wal_receiver";
        let id = i32::try_from(count(&pool, receiver).await).unwrap();
        Self(Pid::from_raw(id).unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).unwrap();
    }
}

/// Even if commits need not wait for it by default.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_gets_a_grant_that_a_synchronous_standby_does_not_have() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let standby = server.standby().await;
    server.wait_for_standby().await;
    let (one, other) = (Clients::of(&server).await, Clients::of(&server).await);
    let receiver = Receiver::of(&standby).await;
    receiver.signal(Signal::STOP);
    until("it stands still", async || {
        signal::state(receiver.0) == Some('T')
    })
    .await;
    let locks = one.locks.clone();
    let granted = tokio::spawn(async move { locks.acquire("r").ttl(TTL).await.unwrap() });
    let hanging = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
    until("it is asked for", async || {
        granted.is_finished() || count(&one.pool, hanging).await > 0
    })
    .await;
    assert!(!granted.is_finished(), "the standby does not have it");
    receiver.signal(Signal::CONT);
    let guard = granted.await.unwrap();

    fail_over(&server, &standby, &[&one.pool, &other.pool]).await;
    let attempt = other.locks.try_acquire("r").await.unwrap();
    assert!(matches!(attempt, Attempt::Held { .. }), "{attempt:?}");
    let seen = other.locks.inspect(&named("r")).await.unwrap();
    assert_eq!(seen.holder.unwrap().token, guard.token());
    let token = guard.token();
    guard.release().await.unwrap();
    let next = other.locks.acquire("r").ttl(TTL).await.unwrap();
    assert!(next.token() > token);
}
