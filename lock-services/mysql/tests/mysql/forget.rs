//! Rows of idle leases are forgotten.

use std::time::Duration;

use e2e::servers::MySqlServer;
use fenced_store::{Forget, MySqlFencedStore};
use lock_core::LockManager;
use sqlx::{AssertSqlSafe, Executor, MySqlPool, Row as _};
use tokio::sync::Barrier;

use crate::world::{count, database_of, manager, on_each_server};

const OLD: Forget = Forget::older_than(Duration::from_secs(60 * 60));
const LEASES: &str = "SELECT COUNT(*) FROM fenced_lease";
const FLOOR: &str = "SELECT token FROM fenced_lease_floor";

async fn execute(pool: &MySqlPool, statement: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement));
    pool.execute(statement).await.unwrap();
}

/// Makes the row of a lease two hours old.
async fn age(pool: &MySqlPool, resource: &str) {
    let age = "UPDATE fenced_lease SET token = token - 720000000 WHERE resource";
    execute(pool, &format!("{age} = '{resource}'")).await;
}

/// Acquires and releases. Returns the token.
async fn cycle(locks: &LockManager, resource: &str) -> i64 {
    let guard = locks.acquire(resource).await.unwrap();
    let token = guard.token().into();
    guard.release().await.unwrap();
    token
}

async fn only_rows_of_idle_leases_are_forgotten<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let store = MySqlFencedStore::new(pool.clone());
    let locks = manager(database.url()).await;
    let held = locks.acquire("held").await.unwrap().detach();
    for resource in ["idle", "locked", "awaited", "fresh"] {
        cycle(&locks, resource).await;
    }
    for resource in ["held", "idle", "locked", "awaited"] {
        age(&pool, resource).await;
    }
    let waiters = "INSERT INTO fenced_waiter
          (resource, ticket, holder, attempt, client, wait_until_us, seen_us)
        SELECT 'awaited', 1, 'h', 'a', 'c', end_us, end_us FROM fenced_lease
          WHERE resource = 'held'
        UNION ALL SELECT 'idle', 1, 'h', 'a', 'c', 1, 1";
    execute(&pool, waiters).await;
    let mut other = pool.begin().await.unwrap();
    let lock = "SELECT token FROM fenced_lease WHERE resource = 'locked' FOR UPDATE";
    other.execute(lock).await.unwrap();
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 1);
    assert_eq!(count(&pool, LEASES).await, 4);
    assert_eq!(count(&pool, "SELECT COUNT(*) FROM fenced_waiter").await, 1);
    // The control: nothing keeps the rows any more.
    other.rollback().await.unwrap();
    drop(held);
    execute(
        &pool,
        "UPDATE fenced_lease SET end_us = 1; DELETE FROM fenced_waiter",
    )
    .await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 3);
}

/// Catches: a token that goes back, because the clock went back and the row of the lease is gone.
async fn a_forgotten_lease_goes_on_above_its_token<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let store = MySqlFencedStore::new(pool.clone());
    let locks = manager(database.url()).await;
    let token = cycle(&locks, "idle").await;
    age(&pool, "idle").await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 1);
    assert_eq!(count(&pool, FLOOR).await, token - 720_000_000);
    // This has the same effect as a clock that was set back since.
    let ahead = "UPDATE fenced_lease_floor SET token = token + 810000000";
    execute(&pool, ahead).await;
    let floor = count(&pool, FLOOR).await;
    assert_eq!(cycle(&locks, "idle").await, floor + 1);
    let both = locks.acquire_together(["other", "another"]).await.unwrap();
    for resource in ["other", "another"] {
        let token = both.get(resource).unwrap().token();
        assert_eq!(i64::from(token), floor + 1);
    }
    drop(both);
    // The control: a row that is deleted by hand leaves no floor, and the token falls.
    let by_hand = "DELETE FROM fenced_lease; UPDATE fenced_lease_floor SET token = 0";
    execute(&pool, by_hand).await;
    assert!(cycle(&locks, "idle").await < floor);
}

/// Catches: a late request of an ended acquisition gets a lease, because the row is new.
async fn a_new_row_sees_the_tombstones_of_the_one_before<S: MySqlServer>() {
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let store = MySqlFencedStore::new(pool.clone());
    let call = "SET time_zone = '+00:00';
        CALL fenced_acquire('r', 'h', 'a', 60000, 0, 'c', 0, NULL, NULL, NULL, NULL)";
    execute(&pool, call).await;
    execute(&pool, "CALL fenced_cancel('r', 'h', 'a')").await;
    age(&pool, "r").await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 1);
    execute(&pool, call).await;
    let held = "SELECT COUNT(*) FROM fenced_lease WHERE holder <> ''";
    assert_eq!(count(&pool, held).await, 0);
}

/// Leases are granted while their rows are deleted. No grant fails, and no token goes back.
async fn tokens_rise_while_leases_are_forgotten<S: MySqlServer>() {
    const ROUNDS: usize = 20;
    const FORGET: &str = "CALL fenced_forget_leases(3600000, '', 10, @forgotten, @last);
        SELECT CAST(@forgotten AS SIGNED)";
    let database = database_of::<S>().await;
    let pool = MySqlPool::connect(database.url()).await.unwrap();
    let locks = manager(database.url()).await;
    let mut greatest = cycle(&locks, "r").await;
    let both = Barrier::new(2);
    let forgets = async {
        let mut forgotten = 0;
        for _ in 0..ROUNDS {
            age(&pool, "r").await;
            both.wait().await;
            let rows = pool.fetch_one(sqlx::raw_sql(FORGET)).await.unwrap();
            forgotten += rows.get::<i64, _>(0);
            both.wait().await;
        }
        forgotten
    };
    let grants = async {
        for _ in 0..ROUNDS {
            both.wait().await;
            let token = cycle(&locks, "r").await;
            assert!(token > greatest, "{token} after {greatest}");
            greatest = token;
            both.wait().await;
        }
    };
    let (forgotten, ()) = tokio::join!(forgets, grants);
    assert!(forgotten > 0, "no row was ever forgotten");
}

on_each_server!(
    only_rows_of_idle_leases_are_forgotten,
    a_forgotten_lease_goes_on_above_its_token,
    a_new_row_sees_the_tombstones_of_the_one_before,
    tokens_rise_while_leases_are_forgotten,
);
