//! A transaction that is left open keeps old versions of the rows of leases alive.

use e2e::documented::query_for_operators;
use lock_core::Ttl;
use sqlx::{AssertSqlSafe, PgPool, Row as _};

use crate::world::{database, manager};

/// Acquires and releases so often that a snapshot from before counts as old. Each of them leaves an
/// old version of the row.
async fn cycles(url: &str) {
    let locks = manager(url).await;
    for _ in 0..600 {
        let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
        guard.release().await.unwrap();
    }
}

/// Sessions that the query of docs/operations/postgres.md names.
async fn named(pool: &PgPool) -> Vec<i32> {
    let query = AssertSqlSafe(query_for_operators("old snapshots"));
    let rows = sqlx::raw_sql(query).fetch_all(pool).await.unwrap();
    rows.iter().map(|row| row.get("pid")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_snapshot_that_stays_open_leases_are_granted_and_its_session_is_named() {
    let database = database().await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let mut open = pool.begin().await.unwrap();
    let snapshot = "set transaction isolation level repeatable read; select 1 from fenced.lease";
    sqlx::raw_sql(snapshot).execute(&mut *open).await.unwrap();
    let session: i32 = sqlx::query_scalar("select pg_backend_pid()")
        .fetch_one(&mut *open)
        .await
        .unwrap();
    assert!(!named(&pool).await.contains(&session), "it is not old");
    cycles(database.url()).await;
    assert!(
        named(&pool).await.contains(&session),
        "the query does not name it"
    );
    open.rollback().await.unwrap();
    assert!(!named(&pool).await.contains(&session), "it is over");
}
