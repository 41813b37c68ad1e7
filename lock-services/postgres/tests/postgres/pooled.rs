//! PgBouncer between the clients and the database.

use std::time::Duration;

use e2e::servers::{PgBouncer, PoolMode, until};
use futures_util::future::try_join_all;
use lock_core::Ttl;
use sqlx::{PgPool, Row as _};
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
