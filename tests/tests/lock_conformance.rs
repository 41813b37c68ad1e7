//! Every backend passes the same cases: the in-process one on the system's clock, the others on
//! real servers.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use e2e::servers::{
    Etcd, Redis, RedisCluster, RedisWithSentinels, RedlockServers, ZooKeeper, etcd, redis,
    zookeeper,
};
use lock_core::{
    Clock, Extension, FencingToken, InitialToken, LockBackend, SystemClock, Ttl,
    memory::MemoryBackend,
};
use lock_testing::conformance::Harness;
use palisade::etcd::{EtcdBackend, EtcdOptions};
use palisade::redis::{
    RedisBackend, RedisOptions,
    redlock::{RedlockBackend, RedlockOptions},
};
use palisade::zookeeper::{ZooKeeperBackend, ZooKeeperOptions};
use tokio::sync::OnceCell;

/// A backend in real time.
struct RealTime(Arc<dyn LockBackend>);

impl Harness for RealTime {
    fn backend(&self) -> Arc<dyn LockBackend> {
        Arc::clone(&self.0)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn pass(&self, time: Duration) {
        // Expiry on a server is an event that time alone brings.
        tokio::time::sleep(time).await;
    }
}

fn in_process() -> RealTime {
    RealTime(Arc::new(MemoryBackend::new(
        Arc::new(SystemClock),
        InitialToken::Clock,
    )))
}

async fn standalone(initial: InitialToken) -> RealTime {
    redis_at(redis().await.url(), initial).await
}

async fn sentinel() -> RealTime {
    static SHARED: OnceCell<RedisWithSentinels> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisWithSentinels::start).await;
    redis_at(&servers.url(), InitialToken::Clock).await
}

/// Every grant is in both replicas before it is returned.
async fn replicated() -> RealTime {
    static SHARED: OnceCell<RedisWithSentinels> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisWithSentinels::start).await;
    let options = options(InitialToken::Clock).replicas(2, Duration::from_millis(1500));
    connect(&servers.url(), options).await
}

async fn cluster() -> RealTime {
    static SHARED: OnceCell<RedisCluster> = OnceCell::const_new();
    let servers = SHARED.get_or_init(RedisCluster::start).await;
    redis_at(&servers.url(), InitialToken::Clock).await
}

/// A user who may do what the documentation says, and nothing else.
async fn least_rights() -> RealTime {
    static SHARED: OnceCell<Redis> = OnceCell::const_new();
    let server = SHARED.get_or_init(Redis::start).await;
    let url = server.allow_documented("").await;
    redis_at(&url, InitialToken::Clock).await
}

async fn redlock_of_three(initial: InitialToken) -> RealTime {
    static SHARED: OnceCell<RedlockServers> = OnceCell::const_new();
    redlock(
        SHARED.get_or_init(|| RedlockServers::start(3)).await,
        initial,
    )
    .await
}

async fn redlock_of_five() -> RealTime {
    static SHARED: OnceCell<RedlockServers> = OnceCell::const_new();
    let servers = SHARED.get_or_init(|| RedlockServers::start(5)).await;
    redlock(servers, InitialToken::Clock).await
}

async fn redlock(servers: &RedlockServers, initial: InitialToken) -> RealTime {
    let options = RedlockOptions::default()
        .prefix(format!("palisade:{:016x}", rand::random::<u64>()))
        .initial_token(initial);
    let longest = Ttl::secs(60);
    servers.provision(options.clone(), longest).await.unwrap();
    let backend = RedlockBackend::connect(&servers.url(), options, Arc::new(SystemClock)).await;
    RealTime(Arc::new(backend.unwrap()))
}

async fn redis_at(url: &str, initial: InitialToken) -> RealTime {
    connect(url, options(initial)).await
}

fn options(initial: InitialToken) -> RedisOptions {
    RedisOptions::default()
        .prefix(format!("palisade:{:016x}", rand::random::<u64>()))
        .initial_token(initial)
}

async fn connect(url: &str, options: RedisOptions) -> RealTime {
    let backend = RedisBackend::connect(url, options, Arc::new(SystemClock)).await;
    RealTime(Arc::new(backend.unwrap()))
}

async fn ensemble() -> Seconds {
    static SHARED: OnceCell<ZooKeeper> = OnceCell::const_new();
    let servers = SHARED.get_or_init(ZooKeeper::start_ensemble).await;
    zookeeper_at(&servers.url(), InitialToken::Clock).await
}

async fn zookeeper_at(url: &str, initial: InitialToken) -> Seconds {
    let options = ZooKeeperOptions::default()
        .prefix(format!("palisade:{:016x}", rand::random::<u64>()))
        // Leases of the cases are up to 60 s long.
        .session_timeout(Duration::from_secs(100))
        .initial_token(initial);
    let backend = ZooKeeperBackend::connect(url, options, Arc::new(SystemClock)).await;
    Seconds {
        backend: Arc::new(backend.unwrap()),
        short: Ttl::secs(1),
    }
}

/// etcd counts whole seconds, and looks twice a second which leases have ended. To ZooKeeper a case
/// asks several times within a lease, and on a busy machine an ensemble takes its time to agree.
struct Seconds {
    backend: Arc<dyn LockBackend>,
    short: Ttl,
}

impl Harness for Seconds {
    fn backend(&self) -> Arc<dyn LockBackend> {
        Arc::clone(&self.backend)
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn short(&self) -> Ttl {
        self.short
    }

    fn past_short(&self) -> Duration {
        self.short.get() + Duration::from_millis(1500)
    }
}

async fn etcd_node(initial: InitialToken) -> Seconds {
    etcd_at(&etcd().await.url(), initial, Ttl::secs(1)).await
}

async fn etcd_cluster() -> Seconds {
    static SHARED: OnceCell<Etcd> = OnceCell::const_new();
    let servers = SHARED.get_or_init(Etcd::start_cluster).await;
    etcd_at(&servers.url(), InitialToken::Clock, Ttl::secs(2)).await
}

async fn etcd_at(url: &str, initial: InitialToken, short: Ttl) -> Seconds {
    let options = EtcdOptions::default()
        .prefix(format!("palisade:{:016x}", rand::random::<u64>()))
        .initial_token(initial);
    let backend = EtcdBackend::connect(url, options, Arc::new(SystemClock)).await;
    Seconds {
        backend: Arc::new(backend.unwrap()),
        short,
    }
}

/// A case is left out where its extension is not claimed: what is claimed is pinned here.
#[tokio::test]
async fn backends_claim_the_extensions_that_their_cases_check() {
    let extensions = |world: &RealTime| world.0.capabilities().extensions;
    assert_eq!(extensions(&in_process()), Extension::ALL);
    for redis in [
        standalone(InitialToken::Clock).await,
        sentinel().await,
        cluster().await,
        least_rights().await,
        replicated().await,
    ] {
        assert_eq!(extensions(&redis), Extension::ALL);
    }
    assert_eq!(
        extensions(&redlock_of_five().await),
        [
            Extension::Metadata,
            Extension::ForceRelease,
            Extension::List,
        ]
    );
    let zookeeper = zookeeper_at(&zookeeper().await.url(), InitialToken::Clock).await;
    assert_eq!(
        zookeeper.backend.capabilities().extensions,
        [
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::ForceRelease,
            Extension::List,
        ]
    );
    let etcd = etcd_node(InitialToken::Clock).await;
    assert_eq!(
        etcd.backend.capabilities().extensions,
        [
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::Holds,
            Extension::ForceRelease,
            Extension::List,
        ]
    );
}

lock_testing::conformance_tests!(memory, in_process());
lock_testing::conformance_tests!(redis_standalone, standalone(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    redis_counting_from_one,
    standalone(InitialToken::At(FencingToken::MIN)).await
);
lock_testing::conformance_tests!(redis_sentinel, sentinel().await);
lock_testing::conformance_tests!(redis_cluster, cluster().await);
lock_testing::conformance_tests!(redis_least_rights, least_rights().await);
lock_testing::conformance_tests!(redis_replicated, replicated().await);
lock_testing::conformance_tests!(redlock_three, redlock_of_three(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    redlock_counting_from_one,
    redlock_of_three(InitialToken::At(FencingToken::MIN)).await
);
lock_testing::conformance_tests!(redlock_five, redlock_of_five().await);
lock_testing::conformance_tests!(
    zookeeper_standalone,
    zookeeper_at(&zookeeper().await.url(), InitialToken::Clock).await
);
lock_testing::conformance_tests!(
    zookeeper_counting_from_one,
    zookeeper_at(
        &zookeeper().await.url(),
        InitialToken::At(FencingToken::MIN)
    )
    .await
);
lock_testing::conformance_tests!(zookeeper_ensemble, ensemble().await);
lock_testing::conformance_tests!(etcd_one_node, etcd_node(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    etcd_counting_from_one,
    etcd_node(InitialToken::At(FencingToken::MIN)).await
);
lock_testing::conformance_tests!(etcd_three_nodes, etcd_cluster().await);
