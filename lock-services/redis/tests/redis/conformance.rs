//! The contract of a lock service, on each topology of Redis.

use std::{sync::Arc, time::Duration};

use e2e::servers::{Redis, RedisCluster, RedisWithSentinels, redis};
use lock_core::{Extension, FencingToken, InitialToken, backend::SystemClock};
use lock_testing::conformance::{Harness, RealTime};
use palisade_redis::{RedisBackend, RedisOptions};
use tokio::sync::OnceCell;

async fn standalone(initial: InitialToken) -> RealTime {
    redis_at(redis().await.url(), options(initial)).await
}

async fn sentinel() -> RealTime {
    static SHARED: OnceCell<RedisWithSentinels> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisWithSentinels::start).await;
    redis_at(&servers.url(), options(InitialToken::Clock)).await
}

/// Every grant is in both replicas before it is returned.
async fn replicated() -> RealTime {
    static SHARED: OnceCell<RedisWithSentinels> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisWithSentinels::start).await;
    let options = options(InitialToken::Clock).replicas(2, Duration::from_millis(1500));
    redis_at(&servers.url(), options).await
}

async fn cluster() -> RealTime {
    static SHARED: OnceCell<RedisCluster> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisCluster::start).await;
    redis_at(&servers.url(), options(InitialToken::Clock)).await
}

/// A user who may do what the documentation says, and nothing else.
async fn least_rights() -> RealTime {
    static SHARED: OnceCell<Redis> = OnceCell::const_new();
    let server = SHARED.get_or_init(Redis::start).await;
    let url = server.allow_documented("").await;
    redis_at(&url, options(InitialToken::Clock)).await
}

fn options(initial: InitialToken) -> RedisOptions {
    RedisOptions::default()
        .prefix(prefix())
        .initial_token(initial)
}

async fn redis_at(url: &str, options: RedisOptions) -> RealTime {
    let backend = RedisBackend::connect(url, options, Arc::new(SystemClock)).await;
    RealTime::new(Arc::new(backend.unwrap()))
}

fn prefix() -> String {
    format!("palisade:{:016x}", rand::random::<u64>())
}

/// A case is left out where its extension is not claimed: what is claimed is pinned here.
#[tokio::test]
async fn redis_claims_the_extensions_that_its_cases_check() {
    let extensions = |world: &RealTime| world.backend().capabilities().extensions;
    for redis in [
        standalone(InitialToken::Clock).await,
        sentinel().await,
        cluster().await,
        least_rights().await,
        replicated().await,
    ] {
        assert_eq!(extensions(&redis), Extension::ALL);
    }
}

lock_testing::conformance_tests!(redis_one_server, standalone(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    redis_counting_from_one,
    standalone(InitialToken::At(FencingToken::MIN)).await,
    only order floor implausible_floor replay ended_acquisition_stays_ended force_release_revokes
    list_shows_what_is_held together_is_all_or_none
);
lock_testing::conformance_tests!(redis_sentinel, sentinel().await);
lock_testing::conformance_tests!(redis_cluster, cluster().await);
lock_testing::conformance_tests!(redis_least_rights, least_rights().await);
lock_testing::conformance_tests!(redis_replicated, replicated().await);
