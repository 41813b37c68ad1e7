//! The contract of a lock service, on each topology of Redis.

use std::sync::Arc;

use e2e::servers::{Redis, RedisCluster, RedisWithSentinels, redis};
use lock_core::{
    Extension, FencingToken, InitialToken,
    backend::{ConnectOptions, TokioRuntime},
};
use lock_testing::conformance::{Harness, RealTime};
use palisade_redis::RedisBackend;
use tokio::sync::OnceCell;

async fn standalone(initial: InitialToken) -> RealTime {
    redis_at(redis().await.url(), initial).await
}

async fn sentinel() -> RealTime {
    static SHARED: OnceCell<RedisWithSentinels> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisWithSentinels::start).await;
    redis_at(&servers.url(), InitialToken::Clock).await
}

/// A lock service that returns a grant only when both replicas have it.
async fn replicated() -> RealTime {
    static SHARED: OnceCell<RedisWithSentinels> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisWithSentinels::start).await;
    let url = format!("{}?replicas=2&replicas_ms=1500", servers.url());
    redis_at(url, InitialToken::Clock).await
}

async fn cluster() -> RealTime {
    static SHARED: OnceCell<RedisCluster> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisCluster::start).await;
    redis_at(&servers.url(), InitialToken::Clock).await
}

/// A lock service whose user has only the documented rights.
async fn least_rights() -> RealTime {
    static SHARED: OnceCell<Redis> = OnceCell::const_new();
    let server = SHARED.get_or_init(Redis::start).await;
    let url = server.allow_documented("").await;
    redis_at(&url, InitialToken::Clock).await
}

async fn redis_at(to: impl Into<ConnectOptions>, initial: InitialToken) -> RealTime {
    let options = to.into().prefix(prefix()).initial_token(initial);
    let backend = RedisBackend::connect(options, Arc::new(TokioRuntime)).await;
    RealTime::new(Arc::new(backend.unwrap()))
}

fn prefix() -> String {
    format!("palisade:{:016x}", rand::random::<u64>())
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
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
