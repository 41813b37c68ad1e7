//! The contract of a lock service, on three nodes and on five.

use std::{sync::Arc, time::Duration};

use e2e::servers::RedlockServers;
use lock_core::{
    Extension, FencingToken, InitialToken, Ttl,
    backend::{ConnectOptions, TokioRuntime},
};
use lock_testing::conformance::{Harness, RealTime};
use palisade_redlock::{RedlockBackend, RedlockNodes};
use tokio::sync::OnceCell;

async fn three(initial: InitialToken) -> RealTime {
    static SHARED: OnceCell<RedlockServers> = OnceCell::const_new();
    let servers = SHARED.get_or_init(|| RedlockServers::start(3)).await;
    connect(servers, initial).await
}

async fn five() -> RealTime {
    static SHARED: OnceCell<RedlockServers> = OnceCell::const_new();
    let servers = SHARED.get_or_init(|| RedlockServers::start(5)).await;
    connect(servers, InitialToken::Clock).await
}

async fn connect(servers: &RedlockServers, initial: InitialToken) -> RealTime {
    let options = ConnectOptions::from(servers.url())
        .prefix(format!("palisade:{:016x}", rand::random::<u64>()))
        // The cases send most requests once, also on a machine that stalls.
        .response_timeout(Duration::from_secs(2))
        .initial_token(initial);
    let longest = Ttl::secs(60);
    let nodes = RedlockNodes::new(options.clone(), Arc::new(TokioRuntime)).unwrap();
    nodes.provision(longest, None).await.unwrap();
    let backend = RedlockBackend::connect(options, Arc::new(TokioRuntime)).await;
    RealTime::new(Arc::new(backend.unwrap()))
}

/// A case is left out if its extension is not claimed, so this test checks the claims.
#[tokio::test]
async fn redlock_claims_the_extensions_that_its_cases_check() {
    let claimed = [
        Extension::Metadata,
        Extension::ForceRelease,
        Extension::List,
    ];
    let world = three(InitialToken::Clock).await;
    assert_eq!(world.backend().capabilities().extensions, claimed);
}

lock_testing::conformance_tests!(redlock_three, three(InitialToken::Clock).await);
lock_testing::conformance_tests!(
    redlock_counting_from_one,
    three(InitialToken::At(FencingToken::MIN)).await,
    only order floor implausible_floor replay ended_acquisition_stays_ended force_release_revokes
    list_shows_what_is_held
);
lock_testing::conformance_tests!(
    redlock_five,
    five().await,
    only order floor implausible_floor replay ended_acquisition_stays_ended force_release_revokes
    list_shows_what_is_held
);
