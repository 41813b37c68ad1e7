use std::{sync::Arc, time::Duration};

use e2e::{observer::Observer, proxy::Proxy, servers::Redis};
use lock_core::{
    FencingToken, InitialToken, LockManager, ResourceName,
    backend::{ConnectOptions, LockService, TokioRuntime},
};
use palisade_redis::RedisBackend;

pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_millis(300);

/// A manager behind a proxy, another manager with a good network, and an observer.
pub(crate) struct World {
    pub(crate) locks: LockManager,
    pub(crate) proxy: Proxy,
    pub(crate) rival: LockManager,
    pub(crate) observer: Observer,
    pub(crate) server: Redis,
}

impl World {
    /// Tokens count from 1, and both managers have run every script before.
    pub(crate) async fn new() -> Self {
        let server = Redis::start().await;
        let proxy = Proxy::start(server.url()).await;
        let world = Self {
            locks: impatient(&proxy.url("redis")).await,
            rival: impatient(server.url()).await,
            observer: Observer::of(server.url()).await,
            proxy,
            server,
        };
        for locks in [&world.locks, &world.rival] {
            let guard = locks.acquire("warm-up").await.unwrap();
            guard.release().await.unwrap();
        }
        world
    }
}

/// A manager that soon gives up on an answer.
pub(crate) async fn impatient(url: &str) -> LockManager {
    let builder = LockManager::builder();
    builder.build(impatient_service(url).await).unwrap()
}

/// The lock service of such a manager.
pub(crate) async fn impatient_service(url: &str) -> LockService {
    let runtime = Arc::new(TokioRuntime);
    RedisBackend::connect(options(url), runtime)
        .await
        .unwrap()
        .into()
}

pub(crate) fn options(url: &str) -> ConnectOptions {
    ConnectOptions::from(url)
        .response_timeout(RESPONSE_TIMEOUT)
        .initial_token(InitialToken::At(FencingToken::MIN))
}

pub(crate) async fn is_free(locks: &LockManager, resource: &str) -> bool {
    let resource = ResourceName::new(resource).unwrap();
    locks.inspect(&resource).await.unwrap().holder.is_none()
}
