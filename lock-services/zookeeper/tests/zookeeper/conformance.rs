//! The contract of a lock service, on one server and on an ensemble.

use std::{sync::Arc, time::Duration};

use e2e::servers::{ZooKeeper, zookeeper};
use lock_core::{
    Extension, FencingToken, InitialToken, Ttl,
    backend::{ConnectOptions, LockService, TokioRuntime},
};
use lock_testing::conformance::RealTime;
use palisade_zookeeper::ZooKeeperBackend;
use tokio::sync::OnceCell;

async fn connect(url: &str, initial: InitialToken) -> LockService {
    let options = ConnectOptions::from(url)
        .prefix(format!("palisade:{:016x}", rand::random::<u64>()))
        // Leases of the cases are up to 60 s long.
        .parameter("session_ms", "100000")
        .initial_token(initial);
    let backend = ZooKeeperBackend::connect(options, Arc::new(TokioRuntime)).await;
    backend.unwrap().into()
}

async fn server(initial: InitialToken) -> RealTime {
    seconds(connect(&zookeeper().await.url(), initial).await)
}

async fn ensemble() -> RealTime {
    static SHARED: OnceCell<ZooKeeper> = OnceCell::const_new();
    let servers = SHARED.get_or_init(ZooKeeper::start_ensemble).await;
    seconds(connect(&servers.url(), InitialToken::Clock).await)
}

/// The unit of time is long, because a case sends several requests within a lease, and an ensemble
/// on a busy machine is slow to agree.
fn seconds(backend: LockService) -> RealTime {
    RealTime::new(backend).short(Ttl::secs(1), Duration::from_millis(1500))
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
#[tokio::test]
async fn zookeeper_claims_the_extensions_that_its_cases_check() {
    let backend = connect(&zookeeper().await.url(), InitialToken::Clock).await;
    assert_eq!(
        backend.capabilities().extensions,
        [
            Extension::Metadata,
            Extension::QueueLimit,
            Extension::ForceRelease,
            Extension::List,
        ]
    );
}

lock_testing::conformance_tests!(zookeeper_one_server, server(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    zookeeper_counting_from_one,
    server(InitialToken::At(FencingToken::MIN)).await,
    only order floor implausible_floor replay ended_acquisition_stays_ended force_release_revokes
    list_shows_what_is_held
);
lock_testing::conformance_tests!(zookeeper_ensemble, ensemble().await);
