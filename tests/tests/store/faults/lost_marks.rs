//! A database that has forgotten claims: a failover that lost the end of the log, and a restore.
//!
//! These are the cases of docs/operations/failover.md and restore.md.

use e2e::servers::{DatabaseServer, Redis};
use fenced_store::{FenceError, FencedGuard, FencedLocks, FencedStore, PgFencedStore};
use lock_core::{ResourceName, Ttl};
use sqlx::{Executor, PgPool, Postgres};

use crate::rule::assert_kind;

const RESOURCE: &str = "account:1";

/// A lock service, a database, and a pool that goes to another server after a failover.
struct World {
    lock: Redis,
    database: DatabaseServer,
    accounts: FencedLocks<Postgres>,
}

async fn world() -> World {
    let (lock, database) = tokio::join!(Redis::start(), DatabaseServer::postgres(&[]));
    let store: PgFencedStore = FencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let table = "CREATE TABLE journal (token bigint NOT NULL)";
    store.pool().execute(table).await.unwrap();
    let locks = palisade::connect(lock.url()).await.unwrap();
    World {
        accounts: FencedLocks::new(locks, store),
        lock,
        database,
    }
}

impl World {
    async fn acquire(&self) -> FencedGuard<Postgres> {
        // The lease lasts for the whole test, whatever happens to it at the lock service.
        let acquire = self.accounts.acquire(RESOURCE);
        let acquire = acquire.ttl(Ttl::secs(60)).renew(false);
        acquire.await.unwrap()
    }

    /// The guard of the next holder, while the former one does not know that its lease has ended.
    async fn acquire_after(&self, former: &FencedGuard<Postgres>) -> FencedGuard<Postgres> {
        let resource = ResourceName::new(RESOURCE).unwrap();
        self.accounts
            .locks()
            .force_release(&resource)
            .await
            .unwrap();
        let guard = self.acquire().await;
        assert!(guard.token() > former.token());
        guard
    }

    /// From here on there is another server behind the name of this one.
    async fn fail_over_to(&self, other: &DatabaseServer) {
        let pool = self.accounts.store().pool();
        pool.set_connect_options(other.url().parse().unwrap());
        self.database.kill().await;
    }
}

async fn write(guard: &FencedGuard<Postgres>) -> Result<(), FenceError> {
    let mut tx = guard.begin().await?;
    let row = sqlx::query("INSERT INTO journal VALUES ($1)").bind(i64::from(guard.token()));
    row.execute(&mut *tx).await?;
    tx.commit().await.map(drop)
}

/// The control of the next test, and the reason to replicate synchronously: until the resource is
/// claimed again, the holder that the replica knows as the newest can write.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_loses_a_claim_is_noticed_by_its_holder_and_over_with_the_next_claim() {
    let world = world().await;
    let first = world.acquire().await;
    let replica = world.database.lagging_standby().await;
    let second = world.acquire_after(&first).await;
    write(&second).await.unwrap();
    // Not by the guard, because the guard would remember the refusal.
    let refused = world.accounts.store().begin(first.sequencer()).await;
    assert!(
        matches!(refused, Err(FenceError::Stale { .. })),
        "{refused:?}"
    );

    world.fail_over_to(&replica).await;
    replica.promote().await;
    let told = write(&second).await.unwrap_err();
    assert_kind!(told, MarkLost);
    assert!(told.is_fenced() && !told.is_retryable());
    write(&first).await.unwrap();

    second.release().await.unwrap();
    let third = world.acquire().await;
    write(&third).await.unwrap();
    let refused = write(&first).await.unwrap_err();
    assert_kind!(refused, Stale);
    assert_eq!(world.accounts.floor_repairs(), 0);
}

/// This holds even if the application's own commits do not wait for the replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_for_a_synchronous_replica_survives_a_failover() {
    let world = world().await;
    let replica = world.database.standby().await;
    world.database.wait_for_standby().await;
    let first = world.acquire().await;
    let second = world.acquire_after(&first).await;

    world.fail_over_to(&replica).await;
    replica.promote().await;
    let refused = write(&first).await.unwrap_err();
    assert_kind!(refused, Stale);
    write(&second).await.unwrap();
}

/// Tokens go on at the lock service, above all that the restored marks show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restore_of_an_older_database_holders_get_an_error_and_acquire_afresh() {
    let world = world().await;
    let first = world.acquire().await;
    let backup = world.database.copy().await;
    let second = world.acquire_after(&first).await;
    write(&second).await.unwrap();

    world.fail_over_to(&backup).await;
    let told = write(&second).await.unwrap_err();
    assert_kind!(told, MarkLost);
    second.release().await.unwrap();
    let third = world.acquire().await;
    write(&third).await.unwrap();
    let refused = write(&first).await.unwrap_err();
    assert_kind!(refused, Stale);
    assert_eq!(world.accounts.floor_repairs(), 0);
}

/// Neither lock service nor store knows the last holder any more. But tokens start at the clock, so
/// the next token is greater.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_both_have_lost_the_last_holder_it_is_refused_all_the_same() {
    let world = world().await;
    let first = world.acquire().await;
    let backup = world.database.copy().await;
    let second = world.acquire_after(&first).await;
    write(&second).await.unwrap();

    world.lock.restart_empty().await;
    world.fail_over_to(&backup).await;
    let told = write(&second).await.unwrap_err();
    assert_kind!(told, MarkLost);
    let third = world.acquire().await;
    assert!(third.token() > second.token());
    write(&third).await.unwrap();
    for late in [&first, &second] {
        let refused = world.accounts.store().begin(late.sequencer()).await;
        assert!(
            matches!(refused, Err(FenceError::Stale { .. })),
            "{refused:?}"
        );
    }
}
