//! A process that is killed while it waits, on every lock service that has a queue.

use std::time::Duration;

use e2e::{
    process::Process,
    servers::{apart, etcd, postgres_database, redis, until, zookeeper},
};
use fenced_store::PgFencedStore;
use futures_util::future::join_all;
use lock_core::{
    Ttl,
    backend::{Runtime, TokioRuntime},
};
use sqlx::PgPool;

/// The lease that the killed process waits for.
const TTL_MS: u32 = 4000;

/// The delay that a busy machine adds.
const SLACK: Duration = Duration::from_secs(4);

/// How long the next waiter waits after a release, if the first in line was killed.
async fn delay(lock: &str) -> Duration {
    let locks = palisade::connect(lock).await.unwrap();
    let held = locks.acquire("r").ttl(Ttl::secs(20)).await.unwrap();
    let until_waiting = async |waiters| {
        until("they wait", async || {
            let seen = locks.inspect("r").await.unwrap();
            seen.waiters == Some(waiters)
        })
        .await;
    };
    let ttl = TTL_MS.to_string();
    let of = ["hold", "--lock", lock, "--resource", "r", "--ttl-ms", &ttl];
    let mut killed = Process::spawn("e2e-worker", of);
    until_waiting(1).await;
    let next = async {
        let next = locks.acquire("r").ttl(Ttl::secs(20)).await.unwrap();
        (TokioRuntime.now(), next)
    };
    let kill_and_release = async {
        until_waiting(2).await;
        killed.kill().await;
        held.release().await.unwrap();
        TokioRuntime.now()
    };
    let ((granted, next), released) = tokio::join!(next, kill_and_release);
    next.release().await.unwrap();
    granted.since(released)
}

#[tokio::test]
async fn a_waiter_that_was_killed_delays_the_next_one_no_longer_than_documented() {
    let database = postgres_database().await;
    let store = PgFencedStore::new(PgPool::connect(database.url()).await.unwrap());
    store.migrate().await.unwrap();
    let ttl = Duration::from_millis(TTL_MS.into());
    let services = [
        (apart(redis().await.url()), Duration::from_secs(1)),
        (apart(database.url()), Duration::from_millis(3500)),
        (apart(&etcd().await.url()), ttl),
        (apart(&zookeeper().await.url()), ttl),
    ];
    let delays = services.iter().map(|(lock, _)| delay(lock));
    for ((lock, documented), delay) in services.iter().zip(join_all(delays).await) {
        assert!(delay < *documented + SLACK, "{lock}: {delay:?}");
    }
}
