//! Lock service and store in one file: acquire and claim are one transaction.

use std::{future::IntoFuture, time::Duration};

use fenced_store::{FenceError, SqliteFencedLocks, SqliteFencedStore};
use lock_core::{LeaseGuard, Ttl, backend::StoreSide as _};
use sqlx::SqlitePool;
use tokio::time::timeout;

use crate::world::{Folder, count, manager};

const PATIENCE: Duration = Duration::from_secs(30);
const BALANCE: &str = "SELECT balance FROM account";
const TWIN: &str = "SELECT balance FROM twin";

struct World {
    folder: Folder,
    pool: SqlitePool,
    accounts: SqliteFencedLocks,
}

impl World {
    async fn new() -> Self {
        let folder = Folder::new();
        let pool = folder.pool().await;
        let accounts = palisade::open(pool.clone()).await.unwrap();
        sqlx::raw_sql(
            "CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (100);
             CREATE TABLE twin (balance INTEGER); INSERT INTO twin VALUES (100)",
        )
        .execute(&pool)
        .await
        .unwrap();
        Self {
            folder,
            pool,
            accounts,
        }
    }

    async fn write(&self, table: &'static str, balance: i64) {
        let write = sqlx::query(table).bind(balance);
        write.execute(&self.pool).await.unwrap();
    }
}

const WRITE_TWIN: &str = "UPDATE twin SET balance = ?";

/// The first claim gives the store the name of its lock service, and is made separately.
#[tokio::test]
async fn a_grant_is_claimed_in_its_own_transaction() {
    let world = World::new().await;
    let first = world.accounts.acquire("account:42").await.unwrap();
    assert!(!first.is_claimed(), "it has no issuer yet");
    first.release().await.unwrap();
    let guard = world.accounts.acquire("account:42").await.unwrap();
    assert!(guard.is_claimed());
    let mark = world.accounts.store().high_water(guard.resource()).await;
    assert_eq!(mark.unwrap().unwrap().token(), guard.token());

    let mut tx = guard.begin().await.unwrap();
    let deposit = sqlx::query("UPDATE account SET balance = balance + 1");
    deposit.execute(&mut *tx).await.unwrap();
    tx.commit_and_release(guard).await.unwrap();
    assert_eq!(count(&world.pool, BALANCE).await, 101);
    let held = "SELECT count(*) FROM fenced_lease WHERE holder <> ''";
    assert_eq!(count(&world.pool, held).await, 0);
}

/// Catches: a lease that is granted with a claim that the store would have refused.
#[tokio::test]
async fn a_store_of_another_lock_service_is_not_claimed() {
    let world = World::new().await;
    let issuer = "INSERT INTO fenced_lock_service (only_row, name) VALUES (1, 'redis')";
    sqlx::query(issuer).execute(&world.pool).await.unwrap();
    let refused = world.accounts.acquire("account:42").wait(PATIENCE).await;
    let refused = refused.unwrap_err();
    assert!(format!("{refused:?}").contains("redis"), "{refused:?}");
    let marks = "SELECT count(*) FROM fenced_high_water_mark";
    assert_eq!(count(&world.pool, marks).await, 0);
}

/// A holder reads, and is paused until its lease has run out and another holder has written. Then
/// it goes on as if nothing had happened. The twin account is the control: it is written without
/// the fence.
#[tokio::test]
async fn a_paused_holder_is_refused_and_loses_an_update_of_the_unfenced_twin() {
    let world = World::new().await;
    let acquire = world.accounts.acquire("account:42").ttl(Ttl::millis(200));
    let paused = acquire.renew(false).await.unwrap();
    let read = count(&world.pool, BALANCE).await;

    let next = world.accounts.acquire("account:42").into_future();
    let next = timeout(PATIENCE, next).await.expect("its turn").unwrap();
    let mut tx = next.begin().await.unwrap();
    let deposit = sqlx::query("UPDATE account SET balance = balance + 50");
    deposit.execute(&mut *tx).await.unwrap();
    tx.commit().await.unwrap();
    world.write(WRITE_TWIN, read + 50).await;

    // The fence refuses the paused holder, whatever the holder believes about its lease.
    let stale = paused.sequencer().clone();
    let refused = world.accounts.store().begin(&stale).await.unwrap_err();
    assert!(matches!(refused, FenceError::Stale { .. }), "{refused}");
    world.write(WRITE_TWIN, read + 10).await;
    assert_eq!(count(&world.pool, BALANCE).await, 150);
    assert_eq!(
        count(&world.pool, TWIN).await,
        110,
        "the control has lost 50"
    );
    next.release().await.unwrap();
}

/// Catches: renewals that are never executed while others write without a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_are_renewed_beside_an_application_that_writes_all_the_time() {
    const TTL: Ttl = Ttl::secs(4);
    let world = World::new().await;
    let others = manager(&world.folder).await;
    let held: LeaseGuard = others.acquire("other").ttl(TTL).await.unwrap();
    let store = SqliteFencedStore::new(world.pool.clone());
    let guard = world.accounts.acquire("account:42").await.unwrap();
    let mut writes = 0;
    let over = tokio::time::Instant::now() + 2 * TTL.get();
    while tokio::time::Instant::now() < over {
        let mut tx = store.begin(guard.sequencer()).await.unwrap();
        let deposit = sqlx::query("UPDATE account SET balance = balance + 1");
        deposit.execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        writes += 1;
    }
    held.remaining().unwrap();
    assert_eq!(count(&world.pool, BALANCE).await, 100 + writes);
}
