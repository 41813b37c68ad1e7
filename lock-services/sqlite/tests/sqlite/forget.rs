//! Rows of idle leases are forgotten, in the file of a store.

use std::{process::Command, time::Duration};

use fenced_store::{Forget, SqliteFencedStore};
use lock_core::LeaseGuard;
use sqlx::{AssertSqlSafe, Executor, SqlitePool};

use crate::world::{Folder, count, manager};

const OLD: Forget = Forget::older_than(Duration::from_secs(60 * 60));
const LEASES: &str = "SELECT count(*) FROM fenced_lease";
const FLOOR: &str = "SELECT token FROM fenced_lease_floor";

async fn execute(pool: &SqlitePool, statement: &str) -> u64 {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement));
    pool.execute(statement).await.unwrap().rows_affected()
}

/// Makes the row of a lease two hours old. The row is replaced, because a trigger refuses a lower
/// token.
async fn age(pool: &SqlitePool, resource: &str) {
    let age = format!(
        "CREATE TEMP TABLE aged AS SELECT * FROM fenced_lease WHERE resource = '{resource}';
         DELETE FROM fenced_lease WHERE resource = '{resource}';
         INSERT INTO fenced_lease (resource, token, holder, expires_at, attempts)
           SELECT resource, token - 720000000, holder, expires_at, attempts FROM temp.aged;
         DROP TABLE temp.aged"
    );
    execute(pool, &age).await;
}

/// A file with a store and leases. "idle" was released two hours ago.
async fn world() -> (Folder, SqlitePool, SqliteFencedStore) {
    let folder = Folder::new();
    let pool = folder.pool().await;
    let store = SqliteFencedStore::new(pool.clone());
    store.migrate().await.unwrap();
    let locks = manager(&folder).await;
    locks
        .acquire("idle")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    age(&pool, "idle").await;
    (folder, pool, store)
}

/// Raises the floor, or the last token. This has the same effect as a clock that was set back by a
/// quarter of an hour.
async fn set_ahead(pool: &SqlitePool) {
    let ahead = "UPDATE fenced_lease_floor SET token = token + 810000000 WHERE token > 0";
    execute(pool, ahead).await;
}

#[tokio::test]
async fn only_rows_of_idle_leases_are_forgotten() {
    let (folder, pool, store) = world().await;
    let locks = manager(&folder).await;
    let held: LeaseGuard = locks.acquire("held").await.unwrap();
    locks
        .acquire("fresh")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    locks
        .acquire("awaited")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    for resource in ["held", "awaited"] {
        age(&pool, resource).await;
    }
    let waiters = "INSERT INTO fenced_waiter (resource, holder, attempt, wait_until, seen_at)
        SELECT 'awaited', 'h', 'a', 9e15, expires_at FROM fenced_lease WHERE resource = 'held'
        UNION ALL SELECT 'idle', 'h', 'a', 9e15, 1";
    execute(&pool, waiters).await;
    let forgotten = store.forget_marks(&OLD).await.unwrap();
    assert_eq!(forgotten.leases, 1);
    assert_eq!(count(&pool, LEASES).await, 3);
    assert_eq!(count(&pool, "SELECT count(*) FROM fenced_waiter").await, 1);
    // The control: the waiter goes away, and the lease ends.
    drop(held.detach());
    execute(
        &pool,
        "UPDATE fenced_lease SET expires_at = 1; DELETE FROM fenced_waiter",
    )
    .await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 2);
}

/// Catches: a token that goes back, because the clock went back and the row of the lease is gone.
#[tokio::test]
async fn a_forgotten_lease_goes_on_above_its_token() {
    let (folder, pool, store) = world().await;
    let last = count(&pool, "SELECT token FROM fenced_lease").await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 1);
    assert_eq!(count(&pool, FLOOR).await, last);
    set_ahead(&pool).await;
    let floor = count(&pool, FLOOR).await;
    let locks = manager(&folder).await;
    let next = locks.acquire("idle").await.unwrap();
    assert_eq!(i64::from(next.token()), floor + 1);
    next.release().await.unwrap();
    // The control: a row that is deleted by hand leaves no floor, and the token falls.
    execute(
        &pool,
        "DELETE FROM fenced_lease; UPDATE fenced_lease_floor SET token = 0",
    )
    .await;
    let fallen = locks.acquire("idle").await.unwrap();
    assert!(i64::from(fallen.token()) < floor);
}

/// Catches: a floor that binds only this library.
#[tokio::test]
async fn the_documented_statements_of_other_languages_grant_above_the_floor() {
    let (folder, pool, store) = world().await;
    let account = "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER);
        INSERT INTO account VALUES (1, 100);
        UPDATE fenced_lease SET resource = 'account:1'";
    execute(&pool, account).await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 1);
    set_ahead(&pool).await;
    let floor = count(&pool, FLOOR).await;
    // A statement that ignores the row that it finds is refused.
    let plain = "INSERT INTO fenced_lease (resource, token, holder, expires_at, attempts)
        VALUES ('account:1', 5, 'f', 9, 'a')";
    pool.execute(plain).await.unwrap_err();
    for shell in [true, false] {
        execute(
            &pool,
            "DELETE FROM fenced_lease; DELETE FROM fenced_high_water_mark",
        )
        .await;
        let script = match shell {
            true => "sqlite3 -bail \"$1\" < \"$2.sql\"",
            false => "echo | python3 \"$2.py\" \"$1\" 10",
        };
        let examples = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/examples/fenced_deposit_sqlite"
        );
        let run = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(folder.file())
            .arg(examples)
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(out.contains(&(floor + 1).to_string()), "{floor}: {run:?}");
    }
}
