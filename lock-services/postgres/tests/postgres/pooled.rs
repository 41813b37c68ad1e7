//! PgBouncer between the clients and the database.

use std::{sync::Arc, time::Duration};

use e2e::servers::{PgBouncer, PoolMode, until};
use futures_util::future::try_join_all;
use lock_core::{LockManager, SystemClock, Ttl};
use palisade_postgres::{PostgresBackend, PostgresOptions};
use sqlx::{AssertSqlSafe, PgPool, Row as _, postgres::PgPoolOptions};
use tokio::time::timeout;

use crate::world::{count, database, manager};

const PATIENCE: Duration = Duration::from_secs(20);

/// `LISTEN` in a session that others get, too: their driver reads a notice where it expects an
/// answer. So nobody listens through a pooler.
#[tokio::test]
async fn nobody_listens_through_a_pooler_and_who_waits_is_served() {
    const HANDOVERS: usize = 20;
    const SESSIONS: usize = 10;
    let database = database().await;
    let pooler = PgBouncer::start(&database, PoolMode::Transaction).await;
    let locks = manager(&pooler.url(&database)).await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let waiting = "select count(*) from fenced.waiter";
    let mut guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    for _ in 0..HANDOVERS {
        let waiter = locks.clone();
        let next = async move { waiter.acquire("r").ttl(Ttl::secs(60)).await };
        let next = tokio::spawn(timeout(PATIENCE, next));
        until("it waits", async || count(&pool, waiting).await == 1).await;
        guard.release().await.unwrap();
        guard = next.await.unwrap().expect("nobody serves it").unwrap();
    }
    guard.release().await.unwrap();
    // At the same time, so that they get all sessions that the pooler has.
    let listening = "select count(*) from pg_listening_channels(), pg_sleep(0.5)";
    let through = PgPool::connect(&pooler.url(&database)).await.unwrap();
    let looks = (0..SESSIONS).map(|_| sqlx::raw_sql(listening).fetch_one(&through));
    for row in try_join_all(looks).await.unwrap() {
        assert_eq!(row.get::<i64, _>(0), 0);
    }
}

/// A session that others get, too, loses prepared statements; and a prepared call cannot set its
/// isolation level.
#[tokio::test]
async fn statements_are_prepared_only_in_sessions_of_ones_own() {
    let database = database().await;
    let pooler = PgBouncer::start(&database, PoolMode::Transaction).await;
    let prepared = "select count(*) from pg_prepared_statements \
                    where strpos(statement, concat('fenced.', 'acquire(')) > 0";
    let expected = [
        (database.url(), "read committed", true),
        (database.url(), "repeatable read", false),
        (&pooler.url(&database), "read committed", false),
    ];
    for (url, level, is_prepared) in expected {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .connect(url)
            .await
            .unwrap();
        set_default(&pool, level).await;
        let clock = Arc::new(SystemClock);
        let backend = PostgresBackend::on(pool.clone(), PostgresOptions::default(), clock).await;
        let locks = LockManager::builder().build(backend.unwrap()).unwrap();
        for level in [level, "serializable"] {
            let guard = locks.acquire(level.replace(' ', "_")).await.unwrap();
            assert_eq!(
                count(&pool, prepared).await > 0,
                is_prepared,
                "{url} {level}"
            );
            guard.release().await.unwrap();
            // Somebody does that to a session later on.
            set_default(&pool, "serializable").await;
        }
    }
}

async fn set_default(pool: &PgPool, level: &str) {
    let set = format!("set default_transaction_isolation to '{level}'");
    sqlx::raw_sql(AssertSqlSafe(set))
        .execute(pool)
        .await
        .unwrap();
}
