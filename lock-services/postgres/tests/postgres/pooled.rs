//! PgBouncer between the clients and the database.

use std::time::Duration;

use e2e::servers::{PgBouncer, PoolMode, until};
use futures_util::future::try_join_all;
use lock_core::Ttl;
use sqlx::{AssertSqlSafe, PgPool, Row as _};
use tokio::time::timeout;

use crate::{
    outages::proxied,
    world::{count, database, manager},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// If a client sent `LISTEN` in a session that a pooler shares, the drivers of other clients would
/// read a notice where they expect an answer. So a client does not listen through a pooler, whether
/// the pooler refuses settings of connections or leaves them out.
#[tokio::test]
async fn no_client_listens_through_a_pooler_and_waiters_are_served() {
    for settings in [
        &[][..],
        &["ignore_startup_parameters = extra_float_digits, options"],
    ] {
        waits_through_a_pooler(settings).await;
    }
}

async fn waits_through_a_pooler(settings: &[&str]) {
    const HANDOVERS: usize = 20;
    const SESSIONS: usize = 10;
    let database = database().await;
    let pooler = PgBouncer::start_with(&database, PoolMode::Transaction, settings).await;
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
        guard = next.await.unwrap().expect("it is not served").unwrap();
    }
    guard.release().await.unwrap();
    // The queries run at the same time, so that they get all sessions that the pooler has.
    let listening = "select count(*) from pg_listening_channels(), pg_sleep(0.5)";
    let through = PgPool::connect(&pooler.url(&database)).await.unwrap();
    let looks = (0..SESSIONS).map(|_| sqlx::raw_sql(listening).fetch_one(&through));
    for row in try_join_all(looks).await.unwrap() {
        assert_eq!(row.get::<i64, _>(0), 0);
    }
}

/// A session that a pooler shares loses prepared statements. Also, a prepared call cannot set its
/// isolation level.
#[tokio::test]
async fn statements_are_prepared_only_in_sessions_of_ones_own() {
    let expected = [
        (false, "read committed", true),
        (false, "repeatable read", false),
        (true, "read committed", false),
    ];
    let pooled = database().await;
    let pooler = PgBouncer::start(&pooled, PoolMode::Transaction).await;
    for (is_pooled, level, is_prepared) in expected {
        let database = if is_pooled {
            &pooled
        } else {
            &database().await
        };
        let pool = PgPool::connect(database.url()).await.unwrap();
        set_default(&pool, level).await;
        let url = if is_pooled {
            pooler.url(database)
        } else {
            database.url().to_owned()
        };
        let locks = manager(&url).await;
        for level in [level, "serializable"] {
            let guard = locks.acquire(level.replace(' ', "_")).await.unwrap();
            let what = format!("{is_pooled} {level}");
            let now = is_prepared && level != "serializable";
            assert_eq!(acquired_prepared(&pool).await, now, "{what}");
            guard.release().await.unwrap();
            // An administrator sets the level later, and new sessions are made.
            set_default(&pool, "serializable").await;
        }
    }
}

/// A proxy that forwards bytes has an address of its own, as a mapped port has.
/// Catches: a proxy that counts as a pooler, so that waiters poll and no statement is prepared.
#[tokio::test]
async fn behind_a_proxy_of_bytes_everything_is_as_without_it() {
    let database = database().await;
    let (_proxy, url) = proxied(database.url()).await;
    let locks = manager(&url).await;
    let pool = PgPool::connect(database.url()).await.unwrap();
    let guard = locks.acquire("r").ttl(Ttl::secs(60)).await.unwrap();
    assert!(acquired_prepared(&pool).await);
    let waiter = locks.clone();
    let next = tokio::spawn(timeout(PATIENCE, async move { waiter.acquire("r").await }));
    let listens = "select count(*) from pg_stat_activity
                   where datname = current_database() and query ~* '^listen '";
    until("it listens", async || count(&pool, listens).await == 1).await;
    guard.release().await.unwrap();
    next.await
        .unwrap()
        .unwrap()
        .unwrap()
        .release()
        .await
        .unwrap();
}

/// Whether the last acquire had parameters, by the server's view of its sessions.
async fn acquired_prepared(pool: &PgPool) -> bool {
    let query = "select strpos(query, '($1,') > 0 from pg_stat_activity
                 where datname = current_database()
                   and strpos(query, concat('fenced.', 'acquire(')) > 0
                 order by query_start desc limit 1";
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

/// Sets the isolation level of all other sessions from here on.
async fn set_default(pool: &PgPool, level: &str) {
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(pool)
        .await
        .unwrap();
    let set = format!(
        "alter database {name} set default_transaction_isolation to '{level}';
         select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and pid <> pg_backend_pid()"
    );
    sqlx::raw_sql(AssertSqlSafe(set))
        .execute(pool)
        .await
        .unwrap();
}
