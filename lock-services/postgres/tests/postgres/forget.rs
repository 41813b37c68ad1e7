//! Idle rows are forgotten: leases, and marks whose leases are in the same database.

use std::time::Duration;

use fenced_store::{Forget, PgFencedLocks, PgFencedStore};
use lock_core::backend::ConnectOptions;
use sqlx::{AssertSqlSafe, Executor, PgPool};

use crate::world::{count, database, manager, named};

const OLD: Forget = Forget::older_than(Duration::from_secs(60 * 60));

/// Makes all marks and leases two hours old, but does not change the ends of leases.
const AGE: &str = "update fenced.high_water_mark
                     set claimed_at = now() - interval '2 h', token = token - 720000000;
                   update fenced.lease set token = token - 720000000";

async fn execute(pool: &PgPool, statement: &str) {
    let statement = sqlx::raw_sql(AssertSqlSafe(statement));
    pool.execute(statement).await.unwrap();
}

#[tokio::test]
async fn a_mark_whose_lease_lives_stays() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let store = PgFencedStore::new(pool.clone());
    let plain = PgFencedLocks::new(manager(database.url()).await, store.clone());
    let options = ConnectOptions::from(database.url()).prefix("jobs");
    let jobs = palisade::connect(options).await.unwrap();
    let jobs = PgFencedLocks::new(jobs, store.clone());
    let held = plain.acquire("held").await.unwrap().detach();
    let job = jobs.acquire("held-job").await.unwrap().detach();
    plain
        .acquire("free")
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    execute(&pool, AGE).await;
    let forgotten = store.forget_marks(&OLD).await.unwrap();
    assert_eq!((forgotten.marks, forgotten.leases), (1, 1));
    for (resource, stays) in [("held", true), ("held-job", true), ("free", false)] {
        let mark = store.high_water(&named(resource)).await.unwrap();
        assert_eq!(mark.is_some(), stays, "{resource}");
    }
    // The control: rows are forgotten after their leases have ended.
    drop((held, job));
    execute(
        &pool,
        "update fenced.lease set expires_at = now() - interval '2 h'",
    )
    .await;
    let forgotten = store.forget_marks(&OLD).await.unwrap();
    assert_eq!((forgotten.marks, forgotten.leases), (2, 2));
}

/// Catches: a token that goes back, because the clock went back and the row of the lease is gone.
/// Also a row that is forgotten although it has waiters.
#[tokio::test]
async fn a_forgotten_lease_goes_on_above_its_token() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let store = PgFencedStore::new(pool.clone());
    let locks = manager(database.url()).await;
    for resource in ["idle", "awaited", "fresh"] {
        let guard = locks.acquire(resource).await.unwrap();
        guard.release().await.unwrap();
        if resource != "fresh" {
            let age = format!(
                "update fenced.lease set token = token - 720000000 where resource = '{resource}'"
            );
            execute(&pool, &age).await;
        }
    }
    execute(
        &pool,
        "insert into fenced.waiter (resource, holder, attempt, channel, wait_until, seen_at)
         values ('awaited', 'h', 'a', '', 'infinity', clock_timestamp() + interval '2 s'),
                ('idle', 'h', 'a', '', 'infinity', clock_timestamp() - interval '1 h')",
    )
    .await;
    assert_eq!(store.forget_marks(&OLD).await.unwrap().leases, 1);
    let left = "select count(*) from fenced.lease where resource in ('awaited', 'fresh')";
    assert_eq!(count(&pool, left).await, 2);
    assert_eq!(count(&pool, "select count(*) from fenced.waiter").await, 1);
    let floor = "select leases from fenced.forgotten";
    assert!(count(&pool, floor).await > 0);

    // This has the same effect as a clock that was set back since.
    let ahead = "update fenced.forgotten
                   set leases = fenced.token_of(clock_timestamp()) + 100000000";
    execute(&pool, ahead).await;
    let next = locks.acquire("idle").await.unwrap();
    let floor = count(&pool, floor).await;
    assert_eq!(i64::from(next.token()), floor + 1);
    // The floor is only for rows that are gone.
    let fresh = locks.acquire("fresh").await.unwrap();
    assert!(i64::from(fresh.token()) < floor);
}
