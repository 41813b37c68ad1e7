//! An immediate stop of the server loses what was not flushed. No lease, and no token twice.

use std::{future::IntoFuture, time::Duration};

use e2e::servers::{DatabaseServer, until};
use lock_core::{FencingToken, LockManager, Ttl};
use sqlx::PgPool;
use tokio::time::timeout;

use crate::world::{count, manager, migrate, named};

const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(30);

async fn waits(url: &str) {
    let pool = PgPool::connect(url).await.unwrap();
    let waiters = "select count(*) from fenced.waiter";
    until("it waits", async || count(&pool, waiters).await == 1).await;
    pool.close().await;
}

async fn holder_of(locks: &LockManager) -> Option<FencingToken> {
    let seen = locks.inspect(&named("r")).await.unwrap();
    seen.holder.map(|holder| holder.token)
}

#[tokio::test]
async fn a_crash_loses_no_lease_and_who_waits_is_served_after_it() {
    let server = DatabaseServer::postgres(&[]).await;
    migrate(server.url()).await;
    let (locks, others) = (manager(server.url()).await, manager(server.url()).await);
    let mut last = None;
    for round in 0..ROUNDS {
        let guard = timeout(
            PATIENCE,
            locks.acquire("r").ttl(Ttl::secs(20)).into_future(),
        )
        .await;
        let guard = guard.expect("an answer").unwrap();
        assert!(Some(guard.token()) > last, "round {round}");
        let waiter = others.clone();
        let next = async move { waiter.acquire("r").ttl(Ttl::secs(20)).await };
        let next = tokio::spawn(timeout(PATIENCE, next));
        waits(server.url()).await;
        server.stop_immediately().await;
        server.start_again().await;
        until("it answers", async || {
            locks.inspect(&named("r")).await.is_ok()
        })
        .await;
        assert_eq!(
            holder_of(&locks).await,
            Some(guard.token()),
            "round {round}"
        );
        let first = guard.token();
        guard.release().await.unwrap();
        let next = next.await.unwrap().expect("nobody serves it").unwrap();
        assert!(next.token() > first, "round {round}");
        last = Some(next.token());
        next.release().await.unwrap();
    }
}
