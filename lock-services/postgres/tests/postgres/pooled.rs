//! PgBouncer between the clients and the database.

use std::time::Duration;

use e2e::servers::{PgBouncer, PoolMode, until};
use lock_core::Ttl;
use sqlx::PgPool;
use tokio::time::timeout;

use crate::world::{count, database, manager};

const PATIENCE: Duration = Duration::from_secs(20);

/// `LISTEN` in a session that others get, too: their driver reads a notice where it expects an
/// answer. So nobody listens through a pooler.
#[tokio::test]
async fn nobody_listens_through_a_pooler_and_who_waits_is_served() {
    const HANDOVERS: usize = 20;
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
    let listening = "select count(*) from pg_stat_activity
        where datname = current_database() and query ilike 'listen%'";
    assert_eq!(count(&pool, listening).await, 0);
}
