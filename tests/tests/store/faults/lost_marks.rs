//! A database that has forgotten claims: a failover that lost the end of the log, and a restore.
//!
//! These are the stories of docs/operations.md.

use e2e::{
    observer::until,
    servers::{DatabaseServer, Redis},
};
use fenced_store::{FenceError, FencedStore, PgFencedStore, Protected, ProtectedGuard};
use lock_core::{ResourceName, Ttl};
use sqlx::{Executor, PgPool, Postgres};

const RESOURCE: &str = "account:1";

/// A lock service, a database, and a pool that goes where it is told to after a failover.
struct World {
    lock: Redis,
    database: DatabaseServer,
    accounts: Protected<Postgres>,
}

async fn world() -> World {
    let (lock, database) = tokio::join!(Redis::start(), DatabaseServer::postgres(&[]));
    let store: PgFencedStore = FencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let table = "CREATE TABLE journal (token bigint NOT NULL)";
    store.pool().execute(table).await.unwrap();
    let locks = palisade::connect(lock.url()).await.unwrap();
    World {
        accounts: Protected::new(locks, store),
        lock,
        database,
    }
}

impl World {
    async fn acquire(&self) -> ProtectedGuard<Postgres> {
        // For as long as the test takes, whatever happens to it at the lock service.
        let acquire = self.accounts.acquire(RESOURCE);
        let acquire = acquire.with(|lease| lease.ttl(Ttl::secs(60)).renew(false));
        acquire.await.unwrap()
    }

    /// The guard of the next holder, while the former one does not know that its lease has ended.
    async fn acquire_after(&self, former: &ProtectedGuard<Postgres>) -> ProtectedGuard<Postgres> {
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

async fn write(guard: &ProtectedGuard<Postgres>) -> Result<(), FenceError> {
    let mut tx = guard.begin().await?;
    let row = sqlx::query("INSERT INTO journal VALUES ($1)").bind(i64::from(guard.token()));
    row.execute(&mut *tx).await?;
    tx.commit().await.map(drop)
}

/// A replica that has all that there is by now, and gets nothing any more.
async fn lagging_replica(primary: &DatabaseServer) -> DatabaseServer {
    let replica = primary.standby().await;
    let (ahead, behind) = tokio::join!(
        PgPool::connect(primary.url()),
        PgPool::connect(replica.url())
    );
    let (ahead, behind) = (ahead.unwrap(), behind.unwrap());
    let senders = async |which: &'static str| -> i64 {
        sqlx::query_scalar(which).fetch_one(&ahead).await.unwrap()
    };
    const CAUGHT_UP: &str =
        "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()";
    until("it has caught up", async || senders(CAUGHT_UP).await == 1).await;
    let cut_off = "ALTER SYSTEM SET primary_conninfo = ''";
    behind.execute(cut_off).await.unwrap();
    behind.execute("SELECT pg_reload_conf()").await.unwrap();
    let any = "SELECT count(*) FROM pg_stat_replication";
    until("it is cut off", async || senders(any).await == 0).await;
    replica
}

async fn promote(replica: &DatabaseServer) {
    let pool = PgPool::connect(replica.url()).await.unwrap();
    let promoted: bool = sqlx::query_scalar("SELECT pg_promote()")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!(promoted);
}

/// The control of the next test, and the reason to replicate synchronously: until the resource is
/// claimed again, whoever the replica knows as the newest holder is let in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_that_loses_a_claim_is_noticed_by_its_holder_and_over_with_the_next_claim() {
    let world = world().await;
    let first = world.acquire().await;
    let replica = lagging_replica(&world.database).await;
    let second = world.acquire_after(&first).await;
    write(&second).await.unwrap();
    // Not by the guard, which would remember it.
    let refused = world.accounts.store().begin(first.sequencer()).await;
    assert!(
        matches!(refused, Err(FenceError::Stale { .. })),
        "{refused:?}"
    );

    world.fail_over_to(&replica).await;
    promote(&replica).await;
    let told = write(&second).await.unwrap_err();
    assert!(matches!(told, FenceError::MarkLost { .. }), "{told:?}");
    assert!(told.is_fenced() && !told.is_retryable());
    write(&first).await.unwrap();

    second.release().await.unwrap();
    let third = world.acquire().await;
    write(&third).await.unwrap();
    let refused = write(&first).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    assert_eq!(world.accounts.floor_repairs(), 0);
}

/// Even if the application's own commits do not wait for the replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_for_a_synchronous_replica_survives_a_failover() {
    let world = world().await;
    let replica = world.database.standby().await;
    let pool = world.accounts.store().pool();
    pool.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        .await
        .unwrap();
    pool.execute("ALTER SYSTEM SET synchronous_commit = 'local'")
        .await
        .unwrap();
    pool.execute("SELECT pg_reload_conf()").await.unwrap();
    let waits = async || {
        let waits = "SELECT current_setting('synchronous_standby_names') = '*' AND EXISTS
            (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')";
        sqlx::query_scalar(waits).fetch_one(pool).await.unwrap()
    };
    until("commits wait for the replica", waits).await;
    let first = world.acquire().await;
    let second = world.acquire_after(&first).await;

    world.fail_over_to(&replica).await;
    promote(&replica).await;
    let refused = write(&first).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    write(&second).await.unwrap();
}

/// Tokens go on where the lock service is, above all that the restored marks show.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restore_of_an_older_database_holders_are_told_and_acquire_afresh() {
    let world = world().await;
    let first = world.acquire().await;
    let backup = world.database.copy().await;
    let second = world.acquire_after(&first).await;
    write(&second).await.unwrap();

    world.fail_over_to(&backup).await;
    let told = write(&second).await.unwrap_err();
    assert!(matches!(told, FenceError::MarkLost { .. }), "{told:?}");
    second.release().await.unwrap();
    let third = world.acquire().await;
    write(&third).await.unwrap();
    let refused = write(&first).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused:?}");
    assert_eq!(world.accounts.floor_repairs(), 0);
}

/// Neither of the two knows the last holder any more. The clock, where tokens start, does.
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
    assert!(matches!(told, FenceError::MarkLost { .. }), "{told:?}");
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
