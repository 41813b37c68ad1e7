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
use sqlx::{AssertSqlSafe, PgPool};

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

/// Promotes the standby. From here on the name of the server leads to it.
async fn fail_over(server: &DatabaseServer, standby: &DatabaseServer, pools: &[&PgPool]) {
    server.kill().await;
    standby.promote().await;
    for pool in pools {
        pool.set_connect_options(standby.url().parse().unwrap());
    }
}

/// The standby does not know of the first holder, so there are two holders. The store refuses the
/// holder with the smaller token as soon as the other has claimed.
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
    // The other client acquires without waiting for the end of the ttl.
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

/// This holds even if commits need not wait for the standby by default.
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

/// Makes the table of waiters as it was before `0009_tickets`, when its sequence was not in the
/// log.
const UNLOGGED_TICKETS: &str = "alter table fenced.waiter alter column ticket drop default;
    alter table fenced.waiter alter column ticket add generated always as identity";

/// A standby that is promoted as soon as it has these tables, before it has written them to disk.
async fn promoted_after(tables: &str) -> DatabaseServer {
    let server = DatabaseServer::postgres(&[]).await;
    let standby = server.standby().await;
    migrate(server.url()).await;
    let pool = PgPool::connect(server.url()).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(tables))
        .execute(&pool)
        .await
        .unwrap();
    let caught_up =
        "select count(*) from pg_stat_replication where replay_lsn = pg_current_wal_lsn()";
    until("it has caught up", async || {
        count(&pool, caught_up).await == 1
    })
    .await;
    server.kill().await;
    standby.promote().await;
    standby
}

/// Since PostgreSQL 15 the sequence of an unlogged table is unlogged, too.
/// Catches: a queue without places on a standby that was promoted right after the migration.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_promoted_right_after_the_migration_has_queues() {
    let standby = promoted_after("").await;
    let (one, other) = (
        palisade::connect(standby.url()).await.unwrap(),
        palisade::connect(standby.url()).await.unwrap(),
    );
    let first = one.acquire("r").ttl(TTL).await.unwrap();
    let next = tokio::spawn(async move { other.acquire("r").ttl(TTL).await.unwrap() });
    until("it waits", async || {
        let seen = one.inspect(&named("r")).await.unwrap();
        next.is_finished() || seen.waiters == Some(1)
    })
    .await;
    let token = first.token();
    first.release().await.unwrap();
    assert!(next.await.unwrap().token() > token);

    // The control.
    let standby = promoted_after(UNLOGGED_TICKETS).await;
    let pool = PgPool::connect(standby.url()).await.unwrap();
    let acquire = async |holder: &str| {
        let acquire = "select outcome from fenced.acquire('r', $1, 'a', 60000, null, '')";
        let acquire = sqlx::query_scalar::<_, String>(acquire).bind(holder.to_owned());
        acquire.fetch_one(&pool).await
    };
    assert_eq!(acquire("first").await.unwrap(), "granted");
    let lost = acquire("next").await.unwrap_err();
    assert!(lost.to_string().contains("in sequence"), "{lost}");
}
